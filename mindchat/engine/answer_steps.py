"""The steps from the end of the reasoning to the answer; each yields events and returns its result.

Owns: the answer call (after thinking, if wished), what is made of its words, what people read when there is no answer.
Does not own: how often the documents are read (engine.reading), the reasoning before it (engine.turn), wording
(prompts), citations (engine.answering), sentences and their sources (engine.full), the verdict (engine.verdict).
Source: MIND §3.4; CoRe Tables 4 and 11; Table 7 for thinking first.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from mindchat import events as ev
from mindchat.answers import extract_short, says_unknown
from mindchat.engine.answering import cite, locate, unread
from mindchat.engine.auto_steps import surer
from mindchat.engine.drafting import joined
from mindchat.engine.evidence_steps import choose
from mindchat.engine.full import Written, explain, in_sentences, joined_citations
from mindchat.engine.generation import generate, shown
from mindchat.engine.picking import echoes, pick
from mindchat.engine.reading import Probe, Reading, answer_layout, answer_room, decide, thinking_layout, thinking_room
from mindchat.engine.refusal import NOTHING_SAID, too_little
from mindchat.engine.trust import trust
from mindchat.engine.typed import WORDS, cut_to_span, unfit
from mindchat.engine.verdict import carrying, verdict
from mindchat.events import Event
from mindchat.prompts.core import continued, extraction
from mindchat.text.clean import clean, clean_line
from mindchat.text.names import find_names
from mindchat.values import Answer, Channel, Citation, Draft, Finish, Harvest, Passage, Prompt

if TYPE_CHECKING:
    from mindchat.engine.turn import Turn


class Said(Struct, frozen=True):
    """The short answer."""

    prompt: Prompt
    """It ends in "Answer:"."""
    draft: Draft
    """The model's words."""
    short: str
    overruled: bool = False
    """Whether a span of the passages took the place of the model's words."""

    @property
    def text(self) -> str:
        """What people read of it: one line."""
        return self.short if self.overruled else clean(self.draft.text).strip()

    @property
    def cut(self) -> bool:
        """Whether a limit ended the words that stand."""
        return self.draft.finish is Finish.LENGTH and not self.overruled


def answer(turn: Turn) -> Generator[Event, None, Answer]:
    """One answer over question, facts, passages and reasoning (MIND §3.4), the context repeated (CoRe)."""
    yield turn.step("answer")
    if turn.hop.sentences and turn.hop.passages and not turn.dropped:
        turn.basis = turn.parts.policy.basis(turn.hop, turn.ask)
        yield from turn.ask.drain()
    yield from choose(turn)
    if (refused := too_little(turn)) is not None:
        return refused
    reading = yield from decide(turn)
    full = turn.config.answer.style == "full"
    if (
        full and turn.words.open(turn.hop.question) and not turn.config.layout.cot
    ):  # thinking ends in a short answer (Table 7)
        written = yield from in_sentences(turn, reading)
        return (yield from _ended(turn, Said(written.prompt, written.draft, written.short), written))
    said = yield from _read(turn, reading)
    if turn.parts.policy.further:
        said = yield from surer(turn, said, lambda again: _read(turn, again))
    if full and not says_unknown(said.short):
        return (
            yield from _ended(
                turn, said, (yield from explain(turn, said.prompt, said.draft, said.short, said.overruled))
            )
        )
    return (yield from _ended(turn, said, None))


def _read(turn: Turn, reading: Reading) -> Generator[Event, None, Said]:
    return (yield from _fitted(turn, (yield from _said(turn, reading))))


def _fitted(turn: Turn, said: Said) -> Generator[Event, None, Said]:
    """An answer that is a sentence where a few words are asked is cut to them, if one part alone is of the asked type."""
    if unfit(turn, said.short) != "sentence" or not (span := cut_to_span(turn, said.short)):
        return said
    yield ev.Notice(f"typed: {span!r} was taken of {clean_line(said.short, 80)!r}.")
    return Said(said.prompt, said.draft, span, overruled=True)


def _ended(turn: Turn, said: Said, written: Written | None) -> Generator[Event, None, Answer]:
    """What is told, remembered and judged of an answer; `written`: its sentences, if it has any."""
    short, grounds = said.short, turn.grounds(turn.hop).passages
    abstained = says_unknown(short)
    located = () if abstained else _located(turn, short, said.text if written is None else "", grounds)
    citations = located if written is None else joined_citations(written.citations, located)
    # words that were overruled or cut are nothing to remember
    if not (turn.harvests or abstained or said.overruled or said.cut) and turn.pending is not None:
        turn.harvests.append(Harvest(turn.hop.number, turn.pending[0], said.draft, turn.pending[1]))
    if grounds and not abstained and (missing := unread(turn.question, grounds, turn.words)):
        named = ", ".join(f"“{clean_line(name, 60)}”" for name in missing)
        yield ev.Notice(f"Nothing that was read names {named}.", "warning")
    if written is None:
        yield ev.DraftAccepted(said.text, "answer", 0 if said.overruled else len(said.draft.tokens))
    else:
        yield ev.DraftAccepted(clean(written.draft.text), "answer", len(written.draft.tokens))
    bearing = citations if written is None else _bearing(citations, located, short, written)
    word, why = verdict(turn.hop.question, bearing, grounds, turn.words, abstained=abstained)
    if word == "sourced" and written is None and (misfit := unfit(turn, short)):
        word, why = "doubtful", WORDS[misfit]
    own = not said.overruled and not abstained and (written is None or written.draft is not said.draft)
    sure = trust(turn, said.draft, short, bearing, word, grounds) if own else None
    about = carrying(turn.hop.question, grounds, turn.words)
    citations = tuple(citation for citation in citations if citation.passage in about)
    unsupported = len(written.unsupported) if written is not None else 0
    text = NOTHING_SAID if abstained else said.text if written is None else written.text
    return Answer(
        text, short, abstained, word, citations, why, sure, 0 if abstained else _cut_after(said, written), unsupported
    )


def _bearing(
    citations: tuple[Citation, ...], located: tuple[Citation, ...], short: str, written: Written
) -> tuple[Citation, ...]:
    """The citations that bear the answer itself: of passages in which it stands, none if the sentence that gives it
    stands in no passage.
    """
    if any(locate(short, sentence) is not None for sentence in written.unsupported):
        return ()
    places = {place.passage for place in located}
    return tuple(citation for citation in citations if not places or citation.passage in places)


def _cut_after(said: Said, written: Written | None) -> int:
    """Tokens of an answer that a limit ended, else 0."""
    if written is not None:
        return (len(written.draft.tokens) + (len(said.draft.tokens) if said.cut else 0)) if written.cut else 0
    return len(said.draft.tokens) if said.cut else 0


def _located(turn: Turn, short: str, full: str, grounds: tuple[Passage, ...]) -> tuple[Citation, ...]:
    """Where the short answer stands; of one that is a sentence, what it adds to the question."""
    given = turn.hop.question.casefold()
    parts = [name for name, _, _, _ in find_names(short, turn.words) if name.casefold() not in given]
    return cite(short, full, grounds, parts)


def _said(turn: Turn, reading: Reading) -> Generator[Event, None, Said]:
    """The model's short answer, or the span that is chosen instead."""
    prompt, draft = yield from _draft(turn, reading)
    text = clean(draft.text).strip()
    short = extract_short(f"Answer: {text}") if text else ""
    mode = turn.config.answer.short
    if mode != "span" and not (mode == "auto" and echoes(short, turn.hop.question, turn.words)):
        return Said(prompt, draft, short)
    picked = yield from pick(turn, prompt, short)
    if picked is None or picked.text == short:
        return Said(prompt, draft, short)
    among = f"{picked.candidates} candidates (share {picked.share:.2f})"
    yield ev.Notice(f"span: {picked.text!r} was chosen among {among} instead of {clean_line(short, 80)!r}.")
    return Said(prompt, draft, picked.text, overruled=True)


def _draft(turn: Turn, reading: Reading) -> Generator[Event, None, tuple[Prompt, Draft]]:
    """The answer's words, by the way that settings and reading ask for, and the prompt ending in "Answer:" that they
    continue.
    """
    if reading.probe is not None:
        return reading.probe.prompt, (yield from _completed(turn, reading.probe))
    if turn.config.layout.cot:
        return (yield from _thought(turn, reading))
    prompt = yield from turn.compose("answer", answer_room(turn), answer_layout(turn, reading.copies, reading.told))
    return prompt, (yield from _generated(turn, prompt))


def _generated(turn: Turn, prompt: Prompt) -> Generator[Event, None, Draft]:
    """The short answer's call; its words are shown at once unless sentences take their place."""
    return (
        yield from generate(
            turn, prompt, kind="answer", max_tokens=turn.config.answer.max_tokens, channel=_channel(turn)
        )
    )


def _channel(turn: Turn) -> Channel | None:
    return None if turn.config.answer.style == "full" else "answer"


def _completed(turn: Turn, probed: Probe) -> Generator[Event, None, Draft]:
    """The probe's words become the answer; if the probe's limit cut them, they are continued by their own ids."""
    draft = probed.draft
    for token in draft.tokens if _channel(turn) else ():
        yield shown(turn, token, "answer")
    left = turn.config.answer.max_tokens - len(draft.tokens)
    if draft.finish is not Finish.LENGTH or left <= 0:
        return draft
    prompt = continued(probed.prompt, draft)
    yield turn.built(prompt, "answer", turn.parts.model.count(prompt))
    rest = yield from generate(
        turn, prompt, kind="answer", max_tokens=left, after=len(draft.tokens), channel=_channel(turn)
    )
    return joined(draft, rest) if rest.tokens else replace(draft, finish=rest.finish)


def _thought(turn: Turn, reading: Reading) -> Generator[Event, None, tuple[Prompt, Draft]]:
    """Table 7: think step by step, then give the short answer; the second call only appends to the first."""
    thinking = turn.config.engine.reasoning_tokens
    prompt = yield from turn.compose(
        "thinking", thinking_room(turn), thinking_layout(turn, reading.copies, reading.told)
    )
    thought = yield from generate(turn, prompt, kind="thinking", max_tokens=thinking, stop=(), channel="reasoning")
    yield ev.DraftAccepted(clean(thought.text), "reasoning", len(thought.tokens))
    if thought.finish is Finish.LENGTH:
        yield ev.Notice(f"The thinking was cut after {len(thought.tokens)} tokens.", "warning")
    second = extraction(prompt, thought)
    yield turn.built(second, "answer", turn.parts.model.count(second))
    return second, (yield from _generated(turn, second))
