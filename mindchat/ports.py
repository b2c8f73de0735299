"""Sockets: the protocols through which rooms meet, and the cancel token. Nothing else.

Owns: what a plug-in must offer, in which unit, and what it may raise. Does not own: any implementation.
Every implementation may raise MindChatError subclasses; `Interrupted` and `DeadlineError` come from Cancel.check().
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from mindchat.errors import DeadlineError, Interrupted
from mindchat.events import Event, FactLearned
from mindchat.text.language import Language
from mindchat.values import (
    Absent,
    Choice,
    Chunk,
    Cut,
    Document,
    Draft,
    Entity,
    Harvest,
    Passage,
    Piece,
    Prompt,
    Query,
    Recalled,
    Relation,
    Sifted,
    Signal,
    Sought,
    Span,
    StreamItem,
    Trigger,
    TurnState,
    Verdict,
    WordCounts,
)


class Cancel:
    """A token that another thread may set; generation looks at it at least once a token and once a prefill chunk."""

    def __init__(self, timeout: float | None = None) -> None:
        self._event = threading.Event()
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self.timeout = timeout

    def set(self) -> None:
        """Ask the running turn to stop."""
        self._event.set()

    @property
    def cancelled(self) -> bool:
        """Whether to stop now, by wish or by deadline."""
        return self._event.is_set() or (self._deadline is not None and time.monotonic() > self._deadline)

    def rest(self, seconds: float) -> None:
        """Wait that long, or until it is time to stop, without waking up in between."""
        left = seconds if self._deadline is None else min(seconds, self._deadline - time.monotonic())
        self._event.wait(max(left, 0.0))

    def check(self) -> None:
        """Raise Interrupted or DeadlineError if it is time to stop."""
        if self._event.is_set():
            raise Interrupted("Cancelled.", "What was accepted is kept; /retry asks again.")
        if self.cancelled:
            raise DeadlineError(
                f"The time limit of {self.timeout:g} s has passed.", "Raise --timeout, or lower --repeat or -k."
            )


NEVER = Cancel()
"""A token nobody sets."""


# ── models
# ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Model(Protocol):
    """A language model that measures itself while it generates."""

    @property
    def id(self) -> str:
        """Catalogue id, path or server URL."""
        ...

    @property
    def provides(self) -> frozenset[Signal]:
        """The signals it can measure."""
        ...

    @property
    def window(self) -> int:
        """Most tokens of prompt and generation together."""
        ...

    def stream(
        self,
        prompt: Prompt,
        *,
        want: frozenset[Signal],
        max_tokens: int,
        stop: Sequence[str] = (),
        allow: Sequence[str] | None = None,
        cancel: Cancel = NEVER,
    ) -> Iterator[StreamItem]:
        """Greedy generation: Prefilled…, then Token and Attended as they become known, then one Finished.

        A stop string ends the stream and is not in any Token's text. `allow`: the output is exactly one of these
        strings (token trie); log-probabilities and entropies stay those of the raw distribution. `Attended` (query q)
        comes after Token q+1, or before Finished. Closing the iterator stops the model at once. Raises Interrupted or
        DeadlineError when cancelled.
        """
        ...

    def sample(
        self,
        prompt: Prompt,
        *,
        n: int,
        want: frozenset[Signal],
        max_tokens: int,
        temperature: float = 1.0,
        top_k: int = 50,
        top_p: float = 0.9,
        seed: int = 0,
        stop: Sequence[str] = (),
        cancel: Cancel = NEVER,
    ) -> Sequence[Draft]:
        """n seeded samples over one shared prefill; Signal.HIDDEN fills Draft.hidden (middle layer, at the closing
        position).
        """
        ...

    def choose(self, prompt: Prompt, options: Sequence[str], *, cancel: Cancel = NEVER) -> Sequence[Choice]:
        """Score options as continuations, one batched pass over a shared prefix; in the order given."""
        ...

    def attention(self, prompt: Prompt, draft: Draft, span: Span, *, cancel: Cancel = NEVER) -> Sequence[Piece]:
        """How much the tokens `span` of the draft attend to each earlier token of prompt and draft, in text order."""
        ...

    def count(self, prompt: Prompt) -> int:
        """Tokens of the prompt as it would be sent."""
        ...

    def render(self, prompt: Prompt) -> str:
        """Every character that would be sent, chat template included."""
        ...

    def usage(self) -> tuple[int, int, int]:
        """(prompt tokens new, prompt tokens cached, generated) since the last call of usage(); for ModelAsked."""
        ...


@runtime_checkable
class ReadsAhead(Protocol):
    """A model that keeps what it has read between calls, so that it can read before there is a question."""

    def warm(self, prompt: Prompt, *others: Prompt, cancel: Cancel = NEVER) -> int:
        """Read and keep the longest beginning that these prompts share; its tokens. Looks at `cancel` before each
        prefill chunk.
        """
        ...


@runtime_checkable
class Settles(Protocol):
    """A model whose load leaves work for later, so that it is ready sooner."""

    @property
    def settled(self) -> bool:
        """Whether nothing is left to do."""
        ...

    def settle(self, *, cancel: Cancel = NEVER) -> None:
        """Do what is left. Raises Interrupted when cancelled; what was done stays done."""
        ...


class Ask(Protocol):
    """The model as plug-ins get it: the same verbs, counted by kind and reported as ModelAsked. No plug-in holds the
    Model.
    """

    @property
    def provides(self) -> frozenset[Signal]:
        """The model's signals."""
        ...

    def complete(
        self,
        prompt: Prompt,
        *,
        max_tokens: int,
        kind: str,
        stop: Sequence[str] = (),
        allow: Sequence[str] | None = None,
    ) -> Draft:
        """Greedy completion with LOGPROB and ENTROPY where the model has them."""
        ...

    def sample(
        self, prompt: Prompt, *, n: int, max_tokens: int, kind: str, want: frozenset[Signal], stop: Sequence[str] = ()
    ) -> Sequence[Draft]:
        """See Model.sample; the turn's seed is used."""
        ...

    def choose(self, prompt: Prompt, options: Sequence[str], *, kind: str) -> Sequence[Choice]:
        """See Model.choose."""
        ...

    def attention(self, prompt: Prompt, draft: Draft, span: Span, *, kind: str) -> Sequence[Piece]:
        """See Model.attention."""
        ...

    def count(self, text: str) -> int:
        """Tokens of a plain text; not a model call."""
        ...

    def reasoning(self, hop: TurnState) -> Prompt:
        """The reasoning prompt for this state of the turn, within the window, ending in the accepted words; not a model
        call.
        """
        ...

    def note(self, text: str) -> None:
        """Tell the user something, in one sentence; shown in the order of the calls."""
        ...


Basis = Literal["both", "reasoning", "passages"]
"""What stands in the answer prompt beside the question: accepted sentences, passages, or both."""


# ── plug-ins of the loop
# ─────────────────────────────────────────────────────────────────────────────────────────────────


class Policy(Protocol):
    """When to retrieve, what to ask, which passages to keep."""

    name: str
    needs: frozenset[Signal]
    reasons: bool
    """Whether the model reasons in sentences before the answer; if not, `before` is all there is."""
    extracts: bool
    """Whether `what` is given entities (extraction and filter run first)."""
    retracts: bool
    """Whether a flagged sentence is withdrawn from the flagged word on and written again; otherwise it stays."""
    accumulates: bool
    """Whether new passages join the old ones instead of replacing them."""
    tokens: int
    """0: judged sentence by sentence; n: in units of n tokens, wherever they end."""
    cap: int
    """Most passages in the prompt; 0: retrieve.max_passages."""
    searches: bool
    """Whether it ever looks into the documents."""
    further: int
    """Calls that may follow an answer that is not sure (engine.auto_steps)."""

    def lay(self, prompt: Prompt) -> Prompt:
        """The reasoning prompt in this method's own format; most methods share the loop's. Pure, and keeps the accepted
        words.
        """
        ...

    def before(self, hop: TurnState, ask: Ask) -> Query | None:
        """A query to search before the first word; None: start without documents."""
        ...

    def when(self, draft: Draft, hop: TurnState, ask: Ask) -> Verdict:
        """Judge one finished sentence. The draft holds exactly that sentence; accepted text is in the hop."""
        ...

    def what(
        self,
        trigger: Trigger,
        draft: Draft,
        kept: Sequence[Entity],
        relations: Sequence[Relation],
        hop: TurnState,
        ask: Ask,
    ) -> Query | tuple[Query, ...]:
        """The sub-query, or several of one hop; never empty."""
        ...

    def which(self, found: Sequence[Passage], hop: TurnState, ask: Ask) -> Sequence[Passage]:
        """Choose and order among the found passages."""
        ...

    def basis(self, hop: TurnState, ask: Ask) -> Basis:
        """What the answer rests on; asked once, when there are both sentences and passages."""
        ...


class Extraction(Protocol):
    """The result of an Extractor."""

    @property
    def entities(self) -> tuple[Entity, ...]:
        """In order of appearance."""
        ...

    @property
    def relations(self) -> tuple[Relation, ...]:
        """As extracted."""
        ...

    @property
    def fallback(self) -> bool:
        """Whether the model's output could not be used."""
        ...

    @property
    def raw(self) -> str:
        """The model's output."""
        ...


class Extractor(Protocol):
    """Finds entities and relations in question, reasoning and the flagged sentence (MIND §3.1)."""

    def extract(self, draft: Draft, hop: TurnState, ask: Ask) -> Extraction:
        """Never raises for broken model output; anchors have no span."""
        ...


class EntityFilter(Protocol):
    """Decides which entities are worth asking about (MIND §3.3)."""

    name: str

    def keep(self, found: Sequence[Entity], hop: TurnState, ask: Ask) -> tuple[Sequence[Sifted], bool]:
        """Every entity once, in the order given, kept or dropped with a reason; and whether one was rescued."""
        ...


class Composer(Protocol):
    """Lays out the prompt (CoRe). Pure: the same input gives the same prompt; more copies extend fewer.

    `told`: what the repeated copies say of each passage, by passage id; a passage without entry is not repeated. None:
    the same again.
    """

    def reasoning(self, hop: TurnState, kept: Sequence[Draft], history: Sequence[tuple[str, str]]) -> Prompt:
        """The prompt whose open assistant turn holds the accepted reasoning (as Kept segments) and is to be continued."""
        ...

    def answer(
        self, hop: TurnState, copies: int, history: Sequence[tuple[str, str]], told: Mapping[str, str] | None = None
    ) -> Prompt:
        """The final answer prompt, ending in the prefill 'Answer:'."""
        ...

    def full(
        self, hop: TurnState, copies: int, history: Sequence[tuple[str, str]], told: Mapping[str, str] | None = None
    ) -> Prompt:
        """The same for an answer in sentences, where a few words cannot answer."""
        ...

    def think(
        self, hop: TurnState, copies: int, history: Sequence[tuple[str, str]], told: Mapping[str, str] | None = None
    ) -> Prompt:
        """The same, ending in the invitation to think step by step first."""
        ...


class Rewordings(Protocol):
    """Documents in other words, kept so that each is written once: key → text."""

    def get(self, key: str) -> str | None:
        """What was kept under the key."""
        ...

    def put(self, key: str, text: str) -> None:
        """Keep it. Raises OSError if it cannot be written down."""
        ...


# ── stores
# ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Retriever(Protocol):
    """Finds passages."""

    def search(self, query: Query, k: int) -> Sequence[Passage]:
        """At most k passages, best first, rank from 1. Raises IndexMissingError."""
        ...


@runtime_checkable
class TellsRepairs(Protocol):
    """A store or index that repairs itself, or finds itself damaged, and has something to say about it."""

    def take_notices(self) -> Sequence[str]:
        """Sentences since the last call."""
        ...


@runtime_checkable
class Closes(Protocol):
    """Something with open files."""

    def close(self) -> None:
        """Release them; what is written by then lasts."""
        ...


@runtime_checkable
class KnowsNames(Protocol):
    """A retriever that can tell what its documents name."""

    def absent(self, question: str, words: Language) -> tuple[Absent, ...]:
        """The names of a question that no document has, each with names that exist and are near. Raises
        IndexMissingError.
        """
        ...


@runtime_checkable
class CountsWords(Protocol):
    """A retriever that can tell how rare a word is in what it searches."""

    def count_words(self, text: str) -> WordCounts | None:
        """Of each searchable word of a text, how many passages hold it; None: the engine cannot tell. Raises
        IndexMissingError.
        """
        ...


class Memory(Protocol):
    """Remembered facts."""

    def recall(self, query: Query) -> Recalled:
        """Facts for this sub-query, and passages that may replace the search."""
        ...

    def learn(self, harvests: Sequence[Harvest], ask: Ask) -> tuple[Sequence[FactLearned], Mapping[str, int]]:
        """Store what the gate lets through; and how often each reason refused. Ends the turn as flush() does."""
        ...

    def flush(self) -> None:
        """End a turn that has nothing to learn: write use counts and the audit trail."""
        ...


class Stored(Protocol):
    """One row of the registry."""

    @property
    def uri(self) -> str:
        """See Document.uri."""
        ...

    @property
    def title(self) -> str:
        """See Document.title."""
        ...

    @property
    def sha256(self) -> str:
        """Of the text."""
        ...

    @property
    def mtime_ns(self) -> int:
        """Of the source file."""
        ...

    @property
    def size(self) -> int:
        """Of the source file, bytes."""
        ...

    @property
    def passages(self) -> int:
        """How many it has."""
        ...

    @property
    def collection(self) -> str:
        """The collection it belongs to."""
        ...


Outcome = Literal["added", "updated", "moved", "unchanged"]


class Registry(Protocol):
    """Documents, their decoded texts and their chunks: the truth from which index and citations derive."""

    def put(self, batch: Sequence[tuple[Document, Sequence[Chunk]]], cancel: Cancel = NEVER) -> Sequence[Outcome]:
        """Insert or update documents in one transaction; facts of vanished text are withdrawn by the cascade.

        Raises Interrupted soon after `cancel` is set; then nothing of the batch is stored.
        """
        ...

    def remove(self, uris: Sequence[str]) -> int:
        """Forget documents (and withdraw what was learned from them only); how many were there."""
        ...

    def documents(self, collection: str | None = None) -> Iterator[Stored]:
        """All active documents, by uri."""
        ...

    def passages(self, collection: str | None = None) -> Iterator[Passage]:
        """All active passages, in a stable order: what the index is built from."""
        ...

    def passage(self, id: str) -> Passage | None:
        """One passage by id."""
        ...

    def places(self, id: str) -> tuple[str, ...]:
        """Uris of all documents of the same collection that hold the text of a passage; () for an unknown id."""
        ...

    def text(self, uri: str) -> str | None:
        """A document's decoded text."""
        ...

    def count(self, collection: str | None = None) -> tuple[int, int]:
        """(documents, passages)."""
        ...


class Reader(Protocol):
    """Turns one file into documents."""

    suffixes: frozenset[str]

    def read(self, path: Path) -> Iterator[tuple[Document, Sequence[Chunk] | None]]:
        """Documents of the file; chunks None: let the chunker decide. Raises DocumentError with the reason."""
        ...


class Engine(Protocol):
    """One question in, news out."""

    def run(
        self,
        question: str | Sought,
        *,
        history: Sequence[tuple[str, str]] = (),
        cancel: Cancel = NEVER,
        as_typed: bool = False,
    ) -> Iterator[Event]:
        """`as_typed`: a follow-up is not rewritten. Ends with exactly one of AnswerReady, TurnFailed, TurnCancelled. No
        threads, no printing.

        The filters of a Sought hold for every search of the turn, its phrases for the one with the question's own
        words.
        """
        ...

    def more(self, cut: Cut, *, cancel: Cancel = NEVER) -> Iterator[Event]:
        """Go on with a cut answer, by its token ids; ends like run(). The model must be the one that wrote it."""
        ...

    def read_ahead(self, cancel: Cancel = NEVER) -> int:
        """Have the model read what every question begins with; the tokens of it, 0 if that is impossible. Raises
        Interrupted when cancelled.
        """
        ...
