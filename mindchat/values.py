"""Nouns: the frozen values that every room speaks in.

Owns: plain data without behaviour beyond small derived properties. Does not own: identity, storage, or how anything is
computed. Conventions: spans are half-open; entropies and log-probabilities are in nats; times in seconds; a higher
score is better.
Source: the terms are those of MIND (arXiv:2503.23095) and CoRe (arXiv:2410.07103); see DESIGN.md, Glossary.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from msgspec import Struct, field

Role = Literal["system", "user", "assistant"]
Channel = Literal["reasoning", "answer"]
MAX_QUESTION = 500_000
"""Characters of a message of the user: more than any window holds, and searched in seconds."""


class Signal(StrEnum):
    """What a model can measure while it generates, and what a policy may need."""

    LOGPROB = "logprob"
    ENTROPY = "entropy"
    ATTENTION = "attention"
    HIDDEN = "hidden"


class Finish(StrEnum):
    """Why a draft ended."""

    EOS = "eos"
    """The model closed its turn."""
    STOP = "stop"
    """A stop string appeared; it is not part of the text."""
    LENGTH = "length"
    """The token limit or the window was reached."""
    CUT = "cut"
    """A limit ended the sentence; the generation goes on with its rest."""
    OPEN = "open"
    """The consumer stopped pulling; nothing is known about what would follow."""


class Span(Struct, frozen=True):
    """A half-open range [start, end); the owner says of what (characters of a text, or tokens of a draft)."""

    start: int
    end: int


# ── prompts ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Text(Struct, frozen=True, tag="text"):
    """New words of a prompt, with where they come from (shown in the context pane)."""

    text: str
    origin: Literal["instruction", "question", "passage", "memory", "history", "reasoning", "exemplar"] = "instruction"
    passage: str | None = None
    """Passage id if these words are one passage."""
    copy: int = 0
    """0 for the first presentation of the context, 1 for its first repetition (CoRe), and so on."""


class Kept(Struct, frozen=True, tag="kept"):
    """Words that the model generated itself and that stay: continued by id, never tokenised again."""

    ids: tuple[int, ...]
    text: str


Segment = Text | Kept


class Message(Struct, frozen=True):
    """One turn of the chat template."""

    role: Role
    segments: tuple[Segment, ...]

    @property
    def text(self) -> str:
        """The message's words, all segments joined."""
        return "".join(segment.text for segment in self.segments)


class Prompt(Struct, frozen=True):
    """What is sent to a model. A final assistant message is a prefill: the model continues it."""

    messages: tuple[Message, ...]


# ── generation ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Prefilled(Struct, frozen=True):
    """Progress of the prefill: emitted after each chunk; the last one has done == total."""

    done: int
    """Prompt tokens held now, cached ones included."""
    total: int
    cached: int
    """Prompt tokens that were taken from the KV cache (not computed again)."""
    seconds: float


class Token(Struct, frozen=True):
    """One generated token."""

    index: int
    """Position in its draft, from 0."""
    id: int
    """The model's own id."""
    text: str
    """The characters that became final with this token; "" while a character is incomplete. Joined, they are the
    draft's text.
    """
    logprob: float | None = None
    """Natural log of its probability under the raw (untempered) distribution, ≤ 0. None if not measured."""
    entropy: float | None = None
    """Entropy of the distribution that this token was taken from, nats, ≥ 0 (MIND Eq 1). None if not measured."""


class Attended(Struct, frozen=True):
    """The attention that generated token `query` pays to generated tokens 0..query-1 (last layer, mean over heads)."""

    query: int
    paid: tuple[float, ...]
    """Length `query`; softmax is over the whole context, so the values sum to at most 1."""


class Finished(Struct, frozen=True):
    """The stream's last item."""

    finish: Finish


StreamItem = Prefilled | Token | Attended | Finished


class Draft(Struct, frozen=True):
    """Generated text that is not (yet) accepted, with its signals."""

    text: str
    tokens: tuple[Token, ...] = ()
    received: tuple[float, ...] | None = None
    """Per token: the maximum attention received from later tokens of this draft (MIND Eq 2), in [0, 1]; 0.0 for the
    last. None if not measured.
    """
    finish: Finish = Finish.OPEN
    hidden: Any = None
    """Sampled drafts only: hidden state at the end, a (d,) float array, or None."""

    @property
    def ids(self) -> tuple[int, ...]:
        """The model's token ids."""
        return tuple(token.id for token in self.tokens)

    def offsets(self) -> tuple[Span, ...]:
        """Character span of each token in `text`."""
        spans, at = [], 0
        for token in self.tokens:
            spans.append(Span(at, at + len(token.text)))
            at += len(token.text)
        return tuple(spans)


class Choice(Struct, frozen=True):
    """One option's score from `Model.choose`."""

    option: str
    logprob: float
    """Sum of the log-probabilities of its tokens given the prompt, nats."""
    tokens: int


class Piece(Struct, frozen=True):
    """Attention paid to one earlier token of prompt or draft (DRAGIN's QFS)."""

    text: str
    weight: float
    """Last layer, mean over heads, mean over the attending tokens, in [0, 1]."""
    origin: str
    """The Text.origin of its segment, "reasoning" for generated text, "template" for the chat template's own tokens."""


# ── decisions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class WordScore(Struct, frozen=True):
    """One word of a sentence and every factor of its score S = H · a · s."""

    text: str
    start: int
    """Character offset in the judged sentence."""
    end: int
    entropy: float | None
    """H: mean over its tokens, nats."""
    attention: float | None
    """a: the value used in S, after the normalisation named in Verdict.formula."""
    attention_raw: float | None
    """Maximum attention received over its tokens, in [0, 1]."""
    content: bool
    """Whether it carries information: False for stop words and punctuation. Only content words count in θ's means."""
    score: float
    """S; 0 when s is 0, that is for a word without content and for an anchor."""
    anchor: bool = False
    """A word of the question: given, not guessed. It counts in θ's means but never triggers."""


class Trigger(Struct, frozen=True):
    """Why a retrieval is needed, and from which word on the draft is not trusted."""

    word: str
    start: int
    """Character offset in the judged sentence from which text is retracted."""
    score: float
    threshold: float | None
    entropy: float | None = None
    attention: float | None = None
    reason: str = ""
    stands: bool = True
    """Whether the sentence may stay after all if the search brings nothing new."""


class Verdict(Struct, frozen=True):
    """A policy's judgement of one sentence; carries all factors, also without a trigger."""

    words: tuple[WordScore, ...] = ()
    threshold: float | None = None
    """θ. None if the policy has none."""
    terms: tuple[tuple[str, float], ...] = ()
    """The named factors of θ (alpha, mean_entropy, beta, mean_attention …), from which it recomputes."""
    formula: str = ""
    trigger: Trigger | None = None


class Entity(Struct, frozen=True):
    """A name, date or thing at stake."""

    text: str
    kind: str = "other"
    span: Span | None = None
    """Token span in the judged draft; None: an anchor, known from the question only."""
    confidence: float | None = None
    """conf(e) of Eq 4 with the configured aggregate, in (0, γ+δ]. None for anchors."""
    aggregates: tuple[tuple[str, float], ...] = ()
    """Eq 4 with every aggregate: max, mean, min, first."""


class Sifted(Struct, frozen=True):
    """An entity after the filter."""

    entity: Entity
    kept: bool
    why: str


class Relation(Struct, frozen=True):
    """subject - predicate - object, as extracted."""

    subject: str
    predicate: str
    object: str = ""


class Query(Struct, frozen=True):
    """A sub-query for the retriever and the memory."""

    text: str
    by: str = "model"
    """Who wrote it: model, relation, entities, attention, template, sentence, question."""


class Filters(Struct, frozen=True):
    """Which documents a search may look into; all of them if nothing is set. Each kind must hold; of several values of
    one kind, one.
    """

    types: tuple[str, ...] = ()
    """Suffixes of files, lower case, with their dot."""
    within: tuple[str, ...] = ()
    """Absolute paths of files and folders."""
    paths: tuple[str, ...] = ()
    """Parts of paths, or patterns with * and ?; compared without case."""
    after_ns: int | None = None
    """Changed at this time or later; nanoseconds since 1970, as Document.mtime_ns."""
    before_ns: int | None = None
    """Changed earlier than this."""

    def __bool__(self) -> bool:
        return self != Filters()


EVERYTHING = Filters()


class Sought(Query, frozen=True):
    """A query as somebody typed it: its words, and what must hold of every passage that is found."""

    phrases: tuple[str, ...] = ()
    """Each must stand in the passage word for word; case and accents aside."""
    filters: Filters = Filters()


# ── documents ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Document(Struct, frozen=True):
    """A readable document, decoded and normalised. Offsets everywhere count characters of `text`."""

    uri: str
    """Absolute path; for a line of a corpus file, path#id."""
    title: str
    text: str
    collection: str = "user"
    external_id: str | None = None
    """Id of a corpus line; its passage keeps it."""
    mtime_ns: int = 0
    size: int = 0
    """Of the source file, bytes."""


class Chunk(Struct, frozen=True):
    """A stretch of one document's text."""

    start: int
    end: int
    page: int | None = None
    heading: str = ""


class Found(Struct, frozen=True):
    """Why a search answers with a passage."""

    by: Literal["words", "link", "dense", "memory"] = "words"
    """Its own words, a name that leads to it, its meaning, or memory."""
    name: str = ""
    """The name that leads to it, spelt as where it stands; "" if none does."""
    source: str | None = field(default=None, name="from")
    """Id of the passage that names it; None: the question does, or nothing."""


class Passage(Struct, frozen=True):
    """A chunk as found: text == document.text[start:end]."""

    id: str
    document: str
    """The document's uri."""
    title: str
    text: str
    start: int
    end: int
    score: float = 0.0
    rank: int = 0
    """From 1 in a result list; 0 if not from a search."""
    page: int | None = None
    heading: str = ""
    """Path of the headings below the title, " › " between two."""
    found: Found | None = None
    """Why it was found; None if it is not from a search."""

    shown: tuple[Span, ...] = ()
    """Stretches of `text` that the prompt holds, in order; (): all of it. Set only on what an answer is read from."""

    @property
    def name(self) -> str:
        """What the passage is called before people and models: its title and the headings that it stands under."""
        return " › ".join(part for part in (self.title, self.heading) if part)

    @property
    def read(self) -> str:
        """The words that the prompt holds: stretches that are not neighbours are joined by a blank."""
        return " ".join(self.text[span.start : span.end] for span in self.shown) if self.shown else self.text


def foreign_id(passage: Passage) -> str:
    """The id that a corpus line brought along, as JSON and evaluation report it; the passage's own id if it has none.

    Two corpora may use one id; then the later passage's own id has its document's number behind it
    (storage.document_registry).
    """
    base, mark, number = passage.id.rpartition("~")
    return base if mark and number.isdigit() and passage.document.endswith(f"#{base}") else passage.id


class Absent(Struct, frozen=True):
    """A name of the question that no document has."""

    name: str
    near: tuple[str, ...] = ()
    """Names that exist and are like it, best first."""


class WordCounts(Struct, frozen=True):
    """How many passages of the index hold each searchable word of a text."""

    passages: int
    """In the index."""
    words: tuple[tuple[str, int], ...]
    """(word as it stands, passages that hold it or another form of it), in text order without repeats; stop words are
    left out.
    """


class Evidence(Struct, frozen=True):
    """A stretch of a found passage that the prompt holds: document text[start:end], one sentence or several neighbours."""

    passage: str
    """Passage id."""
    start: int
    """Characters of the document's text, as in Passage and Citation."""
    end: int


class Answerable(Struct, frozen=True):
    """What the search alone says about a question, before any model call."""

    p: float
    """Probability that the found passages hold an answer, 0..1."""
    enough: bool
    """Whether p reaches the cut below which documents do not say."""
    features: tuple[tuple[str, float], ...] = ()
    """What it was judged by, the weightiest first (mindchat.evidence.features)."""


class Citation(Struct, frozen=True):
    """Where an answer stands in a prompted passage; document text[start:end] == quote."""

    n: int
    document: str
    passage: str
    start: int
    end: int
    quote: str
    by: Literal["span", "model"]


# ── memory ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Fact(Struct, frozen=True):
    """A remembered statement with its source."""

    id: str
    """Seven characters shown to people."""
    subject: str
    predicate: str
    object: str
    confidence: float
    """0..1."""
    source: str = ""
    """Short description of where it stands: document uri, or "you"."""
    passage: str | None = None
    quote: str = ""
    status: str = "active"
    kind: str = "document"


class Recalled(Struct, frozen=True):
    """What memory says to a sub-query."""

    facts: tuple[Fact, ...] = ()
    skip: tuple[Passage, ...] = ()
    """Stored source passages that stand in for the search; empty: search."""
    why: str = ""


class Filled(Struct, frozen=True):
    """A slot (subject, relation) with its value, and where a document states it."""

    subject: str
    relation: str
    """A predicate of memory."""
    phrase: str
    """The relation as people read it."""
    value: str
    passage: str
    """Passage id."""
    document: str
    start: int
    """Of the value; characters of the document's text, as in Citation."""
    end: int
    sentence: Span
    """Of the sentence that states it; characters of the document's text."""
    by: Literal["pattern", "memory", "model"] = "pattern"
    """Who read it."""
    confidence: float = 0.0
    """0..1: how often readings of this relation are right, as measured."""


class Harvest(Struct, frozen=True):
    """What one finished hop offers to memory: the sub-question, the words that answered it, and what was read."""

    hop: int
    subquery: str
    answer: Draft
    """The sentence that was accepted after the retrieval, with its signals."""
    passages: tuple[Passage, ...]


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


VerdictWord = Literal["sourced", "doubtful", "unresolved", "not_in_documents"]
"""sourced: a cited passage is about the question. doubtful: none is. unresolved: no answer was found. not_in_documents:
the documents have none.
"""


class Trust(Struct, frozen=True):
    """How often answers like this one are right, as fitted for the model on questions with known answers."""

    p: float
    """0..1."""
    auroc: float | None
    """0..1: how well p tells right answers from wrong ones; None where one number stands for all of them."""
    n: int
    """Questions of the fit."""


class Answer(Struct, frozen=True):
    """The end of a turn."""

    text: str
    """What people read."""
    short: str
    """A few words: what is scored, remembered and located in the passages."""
    abstained: bool
    verdict: VerdictWord = "doubtful"
    citations: tuple[Citation, ...] = ()
    why: str = ""
    """Explains the verdict in one line."""
    trust: Trust | None = None
    """None: this model cannot tell."""
    cut_after: int = 0
    """Tokens after which a limit ended the answer; 0: it came to its own end."""
    unsupported: int = 0
    """Sentences of a full answer whose names and numbers stand in no passage."""

    @property
    def cut(self) -> bool:
        """Whether a limit ended the answer."""
        return self.cut_after > 0

    @property
    def confidence(self) -> float | None:
        """trust.p, 0..1, or None."""
        return self.trust.p if self.trust is not None else None


class Cut(Struct, frozen=True):
    """An answer that a limit ended, with all that going on with it takes."""

    question: str
    standalone: str
    prompt: Prompt
    """What its newest words continue."""
    kept: Kept
    """These words."""
    text: str
    """All words so far, as they were generated."""
    answer: Answer
    passages: tuple[Passage, ...]
    """As the prompt numbers them."""
    model: str
    """Id of the model that wrote it: its token ids are that model's own."""


class TurnState(Struct, frozen=True):
    """The read-only state of a turn that every plug-in receives."""

    number: int
    """0 before the first retrieval, then the number of the retrieval under way."""
    question: str
    """Standalone form."""
    accepted: str = ""
    """Reasoning accepted so far."""
    passages: tuple[Passage, ...] = ()
    """In the prompt now, best first."""
    facts: tuple[Fact, ...] = ()
    queries: tuple[str, ...] = ()
    """Sub-queries asked so far in this turn."""
    sentences: tuple[str, ...] = ()
    seed: int = 0


class Budget(Struct, frozen=True):
    """How many tokens a prompt may have."""

    window: int
    """The model's window."""
    room: int
    """Tokens kept free for what will be generated."""
