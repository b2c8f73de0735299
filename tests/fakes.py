"""Parts of a turn without a network: an engine on a tape, retrievers and a memory that play what a test gives them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar

from mindchat.config import Config, load_config
from mindchat.engine.loop import LoopEngine, Parts
from mindchat.engine.metered_model import MeteredAsk
from mindchat.entities import FILTERS
from mindchat.entities.extract import ModelExtractor
from mindchat.errors import IndexMissingError
from mindchat.events import Event, FactLearned
from mindchat.models.scripted import Reply, ScriptedModel
from mindchat.policies import POLICIES
from mindchat.ports import NEVER, Ask, Cancel, Memory, Model, Retriever
from mindchat.prompts import COMPOSERS
from mindchat.values import Attended, Draft, Harvest, Kept, Passage, Prompt, Query, Recalled, Signal, Token
from mindchat.word_signals import received

E = TypeVar("E")
ALL = frozenset(Signal)


def passage(id: str, text: str, title: str = "", start: int = 0, rank: int = 1) -> Passage:
    """A passage that stands at `start` of its document."""
    return Passage(id, f"{id}.txt", title, text, start, start + len(text), 1.0 / rank, rank)


METROPOLIS = passage("p1", "Metropolis is a film of 1927 that was directed by Fritz Lang.", "Metropolis")
LANG = passage("p2", "Fritz Lang was born in Vienna on 5 December 1890.", "Fritz Lang", 100)
CURIE = passage("p3", "Marie Curie was born in Warsaw.", "Marie Curie")
WORLD = (METROPOLIS, LANG, CURIE)


class KeywordRetriever:
    """Passages that share a word with the query, most shared words first; keeps the queries."""

    def __init__(self, world: Sequence[Passage] = WORLD) -> None:
        self.world = world
        self.queries: list[Query] = []

    def search(self, query: Query, k: int) -> Sequence[Passage]:
        self.queries.append(query)
        asked = _words(query.text)
        hits = sorted((-len(asked & _words(f"{p.title} {p.text}")), i) for i, p in enumerate(self.world))
        return [_ranked(self.world[i], rank) for rank, (n, i) in enumerate([hit for hit in hits if hit[0] < 0][:k], 1)]


class ListRetriever:
    """Answers the n-th search with the n-th list; afterwards with nothing."""

    def __init__(self, *lists: Sequence[Passage]) -> None:
        self.lists = list(lists)
        self.queries: list[Query] = []

    def search(self, query: Query, k: int) -> Sequence[Passage]:
        self.queries.append(query)
        return [_ranked(p, rank) for rank, p in enumerate(self.lists.pop(0)[:k], 1)] if self.lists else []


class NoIndex:
    """Nothing was ever indexed."""

    def search(self, query: Query, k: int) -> Sequence[Passage]:
        raise IndexMissingError("Nothing is indexed yet.", "mindchat index add FOLDER")


class ListMemory:
    """Says what it is given for a sub-query that contains a key; keeps what it was offered."""

    def __init__(self, said: Mapping[str, Recalled] | None = None) -> None:
        self.said = said or {}
        self.harvests: list[Harvest] = []

    def recall(self, query: Query) -> Recalled:
        return next((recalled for key, recalled in self.said.items() if key in query.text), Recalled())

    def learn(self, harvests: Sequence[Harvest], ask: Ask) -> tuple[Sequence[FactLearned], Mapping[str, int]]:
        self.harvests += harvests
        return [], {}


def _words(text: str) -> set[str]:
    return {word.strip(".,?'\"").casefold() for word in text.split()} - {
        "the",
        "of",
        "was",
        "in",
        "a",
        "is",
        "that",
        "on",
        "by",
        "who",
        "where",
    }


def _ranked(p: Passage, rank: int) -> Passage:
    return Passage(p.id, p.document, p.title, p.text, p.start, p.end, 1.0 / rank, rank)


def config(*assignments: str) -> Config:
    """Default settings with `section.key=value` changes; the scripted tests run MIND from its own start, without
    repeated context.
    """
    return load_config(
        environ={}, assignments=("engine.policy=mind", "layout.repeat=0", "rind.first=false", *assignments)
    ).config


def plug(table: Mapping[str, str], name: str, settings: Config) -> Any:
    """The plug-in of a table, made with the settings."""
    module, _, attribute = table[name].partition(":")
    return getattr(import_module(module), attribute)(settings)


def engine(
    tape: Sequence[Reply | str] | Model,
    *assignments: str,
    retriever: Retriever | None = None,
    memory: Memory | None = None,
    given: tuple[Passage, ...] = (),
    provides: frozenset[Signal] = ALL,
    window: int = 4096,
) -> LoopEngine:
    """The loop on a tape, or on a model."""
    settings = config(*assignments)
    model = ScriptedModel(tape, provides=provides, window=window) if isinstance(tape, Sequence) else tape
    return LoopEngine(
        Parts(
            model,
            plug(POLICIES, settings.engine.policy, settings),
            ModelExtractor(settings),
            plug(FILTERS, settings.engine.filter, settings),
            retriever or KeywordRetriever(),
            memory,
            plug(COMPOSERS, settings.layout.role, settings),
            given=given,
        ),
        settings,
    )


def run(
    question: str, tape: Sequence[Reply | str] | Model, *assignments: str, cancel: Cancel = NEVER, **parts: Any
) -> list[Event]:
    """All events of one turn."""
    history = parts.pop("history", ())
    return list(engine(tape, *assignments, **parts).run(question, history=history, cancel=cancel))


def of(events: Sequence[Event], kind: type[E]) -> list[E]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def ask(tape: Sequence[Reply | str] = (), provides: frozenset[Signal] = ALL) -> MeteredAsk:
    """Metered access to a tape."""
    return MeteredAsk(ScriptedModel(tape, provides=provides), NEVER, 0)


def draft(*cells: tuple[str, float, float] | tuple[str, float], probability: float | None = None) -> Draft:
    """A draft of (text, entropy[, attention received]) tokens; each later token pays the same attention to a token."""
    pulls = [cell[2] if len(cell) == 3 else 0.1 for cell in cells]
    tokens = tuple(
        Token(i, i, cell[0], math.log(probability) if probability else -cell[1], cell[1])
        for i, cell in enumerate(cells)
    )
    rows = [Attended(i, tuple(pulls[:i])) for i in range(len(cells))]
    return Draft("".join(cell[0] for cell in cells), tokens, received(rows, len(cells)))


class ByPrompt(ScriptedModel):
    """Answers by what the prompt asks for: the words that the assistant's turn begins with. Unlike a tape it cannot run
    out.
    """

    def __init__(self, answers: Mapping[str, str], **rest: Any) -> None:
        super().__init__([], provides=rest.pop("provides", ALL), **rest)
        self.answers = answers
        self._sampling = False
        self.calls: list[str] = []
        """The kind of each call: extract, cot, query, ask, answer, decompose, rewrite, sample, draft, redraft."""

    def _next(self, prompt: Prompt) -> Reply:
        self.prompts.append(prompt)
        last = prompt.messages[-1]
        opening = last.text if last.role == "assistant" else ""
        written = any(isinstance(segment, Kept) for segment in last.segments)
        kind = "sample" if self._sampling else KINDS.get(opening, "redraft" if written else "draft")
        self.calls.append(kind)
        return Reply(self.answers.get(kind, ""))

    def sample(self, prompt: Prompt, **rest: Any) -> Sequence[Draft]:
        self._sampling = True
        try:
            return super().sample(prompt, **rest)
        finally:
            self._sampling = False


KINDS = {
    "Names:": "extract",
    "1": "cot",
    "Look up:": "query",
    "Ask:": "ask",
    "Answer:": "answer",
    "1.": "decompose",
    "Question:": "rewrite",
}
