"""Verbs: the typed news of one turn, as a tagged union with a strict JSON codec.

Owns: every event that a turn can emit, and to_json/from_json. Does not own: their interpretation (trace.fold is the
only one). Exactly one of AnswerReady, TurnFailed, TurnCancelled ends a turn, and nothing follows it. Keys named
`seconds` are timings: the only part in which two equal runs may differ.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from mindchat.values import (
    Absent,
    Answer,
    Answerable,
    Channel,
    Evidence,
    Fact,
    Filled,
    Passage,
    Prompt,
    Query,
    Relation,
    Sifted,
    Token,
    Verdict,
)


class TurnStarted(Struct, frozen=True, tag_field="type", tag="TurnStarted"):
    """A question was taken."""

    question: str
    standalone: str
    model: str
    policy: str
    filter: str
    repeat: int
    role: str
    as_: str = msgspec.field(name="as")
    cot: bool = False
    seed: int = 0
    versions: dict[str, str] = {}


class QuestionRewritten(Struct, frozen=True, tag_field="type", tag="QuestionRewritten"):
    """A follow-up was turned into a question that stands alone."""

    standalone: str


class ModelLoading(Struct, frozen=True, tag_field="type", tag="ModelLoading"):
    """The model is being fetched, converted or loaded; `done`/`total` are bytes or steps, total 0 if unknown."""

    phase: str
    done: int = 0
    total: int = 0
    seconds: float = 0.0


class NamesAbsent(Struct, frozen=True, tag_field="type", tag="NamesAbsent"):
    """Names of the question that no document has; told before anything is searched or generated, and only if there are
    any.
    """

    absent: tuple[Absent, ...]


class StepStarted(Struct, frozen=True, tag_field="type", tag="StepStarted"):
    """A step that may take seconds began (extract, filter, query, recall, search, verify, answer …)."""

    step: str
    hop: int = 0


class PromptBuilt(Struct, frozen=True, tag_field="type", tag="PromptBuilt"):
    """Exactly what the next generation is given."""

    prompt: Prompt
    sent: str
    """The same, rendered by the model's chat template: every character that was sent."""
    copies: tuple[tuple[str, ...], ...]
    """Passage ids of each copy of the context, in order."""
    tokens: int
    window: int
    purpose: str
    """reasoning | probe (a short answer that decides about repeating) | thinking | answer."""


class DocumentDropped(Struct, frozen=True):
    """One thing that did not fit."""

    passage: str
    why: str


class DocumentsDropped(Struct, frozen=True, tag_field="type", tag="DocumentsDropped"):
    """Whole passages, facts or turns left out because of the window."""

    dropped: tuple[DocumentDropped, ...]


class PromptPrefilled(Struct, frozen=True, tag_field="type", tag="PromptPrefilled"):
    """Prefill progress of the running generation; done == total when finished."""

    done: int
    total: int
    cached: int
    seconds: float = 0.0


class TokenDrafted(Struct, frozen=True, tag_field="type", tag="TokenDrafted"):
    """One token, not yet accepted."""

    token: Token
    channel: Channel


class AttentionSettled(Struct, frozen=True, tag_field="type", tag="AttentionSettled"):
    """The maximum attention each token of the finished sentence received from its later tokens."""

    received: tuple[float, ...]


class SentenceJudged(Struct, frozen=True, tag_field="type", tag="SentenceJudged"):
    """The policy's verdict over one sentence, with θ and every factor, whether or not it triggers."""

    sentence: str
    verdict: Verdict
    policy: str
    hop: int = 0


class TextRetracted(Struct, frozen=True, tag_field="type", tag="TextRetracted"):
    """Draft text withdrawn, from the flagged word on; accepted text never is."""

    text: str
    kept: str
    """The clean beginning of the same sentence, which stays."""
    tokens: int
    """Generated tokens thrown away."""


class RetrievalTriggered(Struct, frozen=True, tag_field="type", tag="RetrievalTriggered"):
    """A hop begins."""

    hop: int
    word: str
    score: float | None
    threshold: float | None
    entropy: float | None
    attention: float | None
    reason: str


class EntitiesExtracted(Struct, frozen=True, tag_field="type", tag="EntitiesExtracted"):
    """What the extraction found (MIND §3.1)."""

    entities: tuple[str, ...]
    relations: tuple[Relation, ...]
    fallback: bool
    """True if the model's output could not be parsed and spans were used instead."""
    raw: str = ""


class EntitiesFiltered(Struct, frozen=True, tag_field="type", tag="EntitiesFiltered"):
    """What the filter kept and dropped, each with a reason (MIND §3.3)."""

    filter: str
    sifted: tuple[Sifted, ...]
    rescued: bool = False
    """True if everything had been pruned and the best one was kept after all."""


class QueryFormed(Struct, frozen=True, tag_field="type", tag="QueryFormed"):
    """The sub-query of this hop; `repeated` if it equals an earlier one of this turn."""

    query: Query
    hop: int
    repeated: bool = False


class FactsRecalled(Struct, frozen=True, tag_field="type", tag="FactsRecalled"):
    """What memory holds for the sub-query (possibly nothing)."""

    facts: tuple[Fact, ...]
    why: str = ""


class SearchSkipped(Struct, frozen=True, tag_field="type", tag="SearchSkipped"):
    """Stored source passages stand in for the search."""

    passages: tuple[Passage, ...]
    why: str


class PassagesFound(Struct, frozen=True, tag_field="type", tag="PassagesFound"):
    """The index's answer."""

    query: str
    passages: tuple[Passage, ...]
    fresh: int
    """How many of them had not been seen in this turn."""
    seconds: float = 0.0


class EvidenceChosen(Struct, frozen=True, tag_field="type", tag="EvidenceChosen"):
    """What of the passages found the answer is read from, and whether they can hold it; before the answer prompt."""

    evidence: tuple[Evidence, ...]
    """In the order of the prompt; () if the passages stand there whole (retrieve.evidence = passages)."""
    words: int
    """Words of the evidence, titles aside."""
    of: int
    """Words of the whole passages."""
    answerable: Answerable | None = None


class SlotFilled(Struct, frozen=True, tag_field="type", tag="SlotFilled"):
    """One relation of the question was read from a sentence, without a model call; its value is the next slot's
    subject, or the answer.
    """

    slot: Filled
    hop: int


class FactLearned(Struct, frozen=True):
    """One fact written to memory."""

    fact: Fact
    new: bool
    """False if only its support grew."""


class FactsLearned(Struct, frozen=True, tag_field="type", tag="FactsLearned"):
    """Memory after the answer."""

    learned: tuple[FactLearned, ...]
    refused: tuple[tuple[str, int], ...] = ()
    """Reason and count of what was not stored."""


class FactsWithdrawn(Struct, frozen=True, tag_field="type", tag="FactsWithdrawn"):
    """Facts whose source changed or went away."""

    facts: tuple[Fact, ...]
    why: str


class DraftAccepted(Struct, frozen=True, tag_field="type", tag="DraftAccepted"):
    """A sentence became part of the reasoning (or, on the answer channel, the answer)."""

    text: str
    channel: Channel
    tokens: int


class ModelAsked(Struct, frozen=True, tag_field="type", tag="ModelAsked"):
    """One finished model call."""

    kind: str
    """draft, redraft, extract, filter, query, rewrite, sample, choose, attention, verify, probe, paraphrase, summary,
    thinking, answer …
    """
    prompt_tokens_new: int
    prompt_tokens_cached: int
    generated: int
    seconds: float = 0.0


class Notice(Struct, frozen=True, tag_field="type", tag="Notice"):
    """Something the user should know, in one sentence."""

    text: str
    level: Literal["info", "warning"] = "info"


class AnswerReady(Struct, frozen=True, tag_field="type", tag="AnswerReady"):
    """The turn succeeded."""

    answer: Answer
    stop: str
    """answered | max_hops | no_new_passages | repeated_query | empty_step | budget."""
    seconds: float = 0.0
    first_token_seconds: float = 0.0


class TurnFailed(Struct, frozen=True, tag_field="type", tag="TurnFailed"):
    """The turn ended in an expected failure."""

    code: str
    message: str
    hint: str
    exit_code: int = 1
    partial: str = ""


class TurnCancelled(Struct, frozen=True, tag_field="type", tag="TurnCancelled"):
    """The user cancelled; what was accepted stays."""

    partial: str
    phase: str = ""


Event = (
    TurnStarted
    | QuestionRewritten
    | NamesAbsent
    | ModelLoading
    | StepStarted
    | PromptBuilt
    | DocumentsDropped
    | PromptPrefilled
    | TokenDrafted
    | AttentionSettled
    | SentenceJudged
    | TextRetracted
    | RetrievalTriggered
    | EntitiesExtracted
    | EntitiesFiltered
    | QueryFormed
    | FactsRecalled
    | SearchSkipped
    | PassagesFound
    | EvidenceChosen
    | SlotFilled
    | FactsLearned
    | FactsWithdrawn
    | DraftAccepted
    | ModelAsked
    | Notice
    | AnswerReady
    | TurnFailed
    | TurnCancelled
)

LAST = (AnswerReady, TurnFailed, TurnCancelled)
"""The events that end a turn."""

_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Event)


def to_json(event: Event) -> str:
    """One line of JSON with "type" first."""
    return msgspec.json.encode(event).decode()


def from_json(line: str | bytes) -> Event:
    """The event of one line; raises msgspec.ValidationError if it is none."""
    try:
        event: Event = _decoder.decode(line)
    except RecursionError:
        raise msgspec.ValidationError("it is nested too deeply") from None
    return event
