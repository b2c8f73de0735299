"""Search by meaning beside search by words: what BM25 cannot see, because question and passage share no word.

Owns: mixing both scores by a normalised sum, telling which part of a score is whose. Does not own: vectors and likeness
(the engine gives the nearest passages), following names from what stands best then (links).
The words' score counts as a share of the best one; the likeness as a share of the way from the least near of the
NEAREST passages to the nearest: cosines of an encoder lie close together, and only their differences say something.
Where there are fewer passages, it counts from 0. A passage that is not among these has the words' part alone.
Source: the weighted sum of normalised scores, "convex combination" in Bruch, Gai and Ingber, arXiv:2210.11934.
"""

from __future__ import annotations

import heapq

from msgspec.structs import replace

from mindchat.config import RetrieveSection
from mindchat.corpus.search.graph import Graph
from mindchat.corpus.search.rankers import Hit, Ranker, Words, followed, make_ranker

NEAREST = 100
"""Passages whose meaning counts."""


class Mixed:
    """rankers.Words: both scores as one, in units of the words' scores."""

    def __init__(self, words: Words, near: list[tuple[int, float]], weight: float) -> None:
        """`near`: (row, cosine), nearest first, not empty; `weight`: the share of the meaning, 0..1."""
        self._words, self._weight = words, weight
        self._unit = (words.best(1) or [(-1, 1.0)])[0][1]
        least = max(near[-1][1], 0.0) if len(near) >= NEAREST else 0.0
        span = max(near[0][1] - least, 1e-9)
        self._near = {row: (cosine - least) / span for row, cosine in near if cosine > least}

    def meaning(self, row: int) -> float:
        """The part of its meaning."""
        return self._weight * self._unit * self._near.get(row, 0.0)

    def words(self, row: int) -> float:
        """The part of its words."""
        return (1 - self._weight) * self._words.of(row)

    def best(self, n: int) -> list[tuple[int, float]]:
        """See rankers.Words. Exact: a passage that is not near is among the n best only if it is so by its words."""
        found = {row: (1 - self._weight) * score for row, score in self._words.best(n)}
        found |= {row: self.words(row) for row in self._near if row not in found}
        whole = ((row, score + self.meaning(row)) for row, score in found.items())
        return heapq.nsmallest(n, ((row, score) for row, score in whole if score > 0), key=lambda hit: -hit[1])

    def of(self, row: int) -> float:
        """See rankers.Words."""
        return self.words(row) + self.meaning(row)

    def allowed(self, row: int) -> bool:
        """See rankers.Words."""
        return self._words.allowed(row)

    def nearest(self, n: int) -> list[tuple[int, float]]:
        """See rankers.Words."""
        return self._words.nearest(n)


class Dense:
    """rankers.Ranker: words and meaning, and, where links are followed, the names that lead on from both."""

    needs_graph = False

    def __init__(self, graph: Graph | None, settings: RetrieveSection) -> None:
        self._then: Ranker = make_ranker(followed(settings), graph, settings)
        self._weight = settings.dense_weight

    def rank(self, words: Words, question: str, k: int) -> list[Hit]:
        """See rankers.Ranker. Without vectors as without this ranker."""
        near = words.nearest(NEAREST)
        if not near:
            return self._then.rank(words, question, k)
        mixed = Mixed(words, near, self._weight)
        return [
            replace(hit, words=mixed.words(hit.row), meaning=mixed.meaning(hit.row))
            for hit in self._then.rank(mixed, question, k)
        ]
