"""The table of rankers: ways from the scores of a question's words to an order of passages, with reasons.

Owns: the table, the protocols between engine and ranker, ranking by words alone. Does not own: the other rankers
(links, pagerank, dense), which one is in force (retrieve.links, retrieve.dense).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from mindchat.config import RetrieveSection
from mindchat.plugins import Table, resolve
from mindchat.text.nearest_name import unknown

if TYPE_CHECKING:
    from mindchat.corpus.search.graph import Graph

SEEDS = 3
"""Passages whose names are followed, in each step."""
CANDIDATES = 20
"""Passages by words alone that compete, at least."""


class Words(Protocol):
    """Scores of one question's words, however an engine makes them. Rows are those of the graph."""

    def best(self, n: int) -> list[tuple[int, float]]:
        """(row, score) of at most n passages with a positive score, best first."""
        ...

    def of(self, row: int) -> float:
        """The score of any passage, ≥ 0; 0.0 if the engine did not look at it."""
        ...

    def allowed(self, row: int) -> bool:
        """Whether the search may answer with it."""
        ...

    def nearest(self, n: int) -> list[tuple[int, float]]:
        """(row, cosine) of at most n allowed passages nearest to the question in meaning, nearest first; [] without
        vectors, or if nobody asked for them.
        """
        ...


class Hit(Struct, frozen=True):
    """One passage of a ranking."""

    row: int
    score: float
    """In units of the words' scores."""
    words: float
    """The part of its words."""
    name: int = -1
    """The name by which it is linked; -1: none."""
    source: int = -1
    """The row that names it; -1: the question does."""
    meaning: float = 0.0
    """The part of its meaning; what is left of the score beside both is the link's."""


class Ranker(Protocol):
    """Made once for a graph and its settings, used for many questions, from one thread at a time.

    A class with `needs_graph = False` is made without a graph too; in place of others, words alone then rank.
    """

    def __init__(self, graph: Graph, settings: RetrieveSection) -> None: ...

    def rank(self, words: Words, question: str, k: int) -> list[Hit]:
        """At most k passages, best first; [] if nothing is found by words, nor by meaning."""
        ...


class ByWords:
    """Ranker without a graph."""

    def __init__(self, graph: Graph | None = None, settings: RetrieveSection | None = None) -> None:
        del graph, settings

    def rank(self, words: Words, question: str, k: int) -> list[Hit]:
        """See Ranker."""
        del question
        return [Hit(row, score, score) for row, score in words.best(k)]


RANKERS = Table(
    "mindchat.rankers",
    {
        "words": "mindchat.corpus.search.rankers:ByWords",
        "links": "mindchat.corpus.search.links:Links",
        "pagerank": "mindchat.corpus.search.pagerank:PageRank",
        "dense": "mindchat.corpus.search.dense:Dense",
    },
)
"""Name → "module:class" of a Ranker; modules are imported when they are used."""


def chosen(settings: RetrieveSection) -> str:
    """The ranker that the settings name."""
    return "dense" if settings.dense == "on" else followed(settings)


def followed(settings: RetrieveSection) -> str:
    """The ranker beside vectors, or without them."""
    return "links" if settings.links == "on" else "words"


def needs_graph(name: str, settings: RetrieveSection) -> bool:
    """Whether a ranker follows names."""
    return name != "words" and (name != "dense" or settings.links == "on")


def make_ranker(name: str, graph: Graph | None, settings: RetrieveSection) -> Ranker:
    """The ranker of a name; without a graph, by words alone. Raises UsageError for an unknown name."""
    if name not in RANKERS:
        raise unknown("ranker", name, RANKERS)
    kind = resolve(RANKERS[name])
    if graph is None and getattr(kind, "needs_graph", True):
        return ByWords()
    made: Ranker = kind(graph, settings)
    return made
