"""The table of rankers: ways from the scores of a question's words to an order of passages, with reasons.

Owns: the table, the protocols between engine and ranker, ranking by words alone. Does not own: the other rankers
(links, pagerank), which one is in force (retrieve.links).
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


class Ranker(Protocol):
    """Made once for a graph and its settings, used for many questions, from one thread at a time."""

    def __init__(self, graph: Graph, settings: RetrieveSection) -> None: ...

    def rank(self, words: Words, question: str, k: int) -> list[Hit]:
        """At most k passages, best first; [] if no word of the question is found anywhere."""
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
    },
)
"""Name → "module:class" of a Ranker; modules are imported when they are used."""


def chosen(settings: RetrieveSection) -> str:
    """The ranker that the settings name."""
    return "links" if settings.links == "on" else "words"


def make_ranker(name: str, graph: Graph | None, settings: RetrieveSection) -> Ranker:
    """The ranker of a name; without a graph, by words alone. Raises UsageError for an unknown name."""
    if name not in RANKERS:
        raise unknown("ranker", name, RANKERS)
    if graph is None:
        return ByWords()
    made: Ranker = resolve(RANKERS[name])(graph, settings)
    return made
