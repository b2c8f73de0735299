"""Following names: a passage is also found if a good passage, or the question, names what it is about.

Owns: the score BM25F / best + λ · link, and whence each link came. Does not own: the words' scores (the engine), the
graph's weights (graph).
A link counts as much as the passage that names it, times the name's rarity and the bearer's share. Of several links to
a passage the best one counts: adding them up favours hubs, and finds less. Depth 2: what stands best after the first
step names further passages.
Source: the idea of HippoRAG (arXiv:2405.14831), whose walk over such a graph is a ranker too (pagerank).
"""

from __future__ import annotations

import heapq

from msgspec import Struct

from mindchat.config import RetrieveSection
from mindchat.corpus.search.graph import Graph
from mindchat.corpus.search.rankers import CANDIDATES, SEEDS, Hit, Words

DECAY = 0.7
"""What a link of the second step counts against one of the first."""


class Link(Struct, frozen=True):
    """The best link to a passage."""

    weight: float
    """0..1."""
    name: int
    source: int
    """The row that names it; -1: the question does."""


class Walk:
    """The links of one question."""

    def __init__(self, words: Words, graph: Graph, found: list[tuple[int, float]], weight: float) -> None:
        """`found`: the best (row, score) by words, not empty; `weight`: what a full link adds, in best scores."""
        self._words, self._graph, self._scores, self._weight = words, graph, dict(found), weight
        self._best = found[0][1]
        self._links: dict[int, Link] = {}
        self._followed: set[int] = set()

    def step(self, names: list[int], weight: float, source: int = -1) -> None:
        """Follow the names that the question, or a passage, mentions; each once. `weight`: how good it is, 0..1."""
        if source in self._followed:
            return
        self._followed.add(source)
        for name in names:
            rare = weight * self._graph.rarity(name)
            for row, share in self._graph.about(name):
                known = self._links.get(row)
                if row != source and rare * share > (known.weight if known else 0.0) and self._words.allowed(row):
                    self._links[row] = Link(rare * share, name, source)

    def ranked(self, k: int) -> list[Hit]:
        """The k best of all candidates; equal ones in order of passage id."""
        hits = []
        for row in {**self._scores, **self._links}:
            link, score = self._links.get(row), self._scores.get(row)
            own = self._words.of(row) if score is None else score
            if link is None:
                hits.append(Hit(row, own, own))
            else:
                added = self._weight * self._best * link.weight
                hits.append(Hit(row, own + added, own, link.name, link.source))
        return heapq.nsmallest(k, hits, key=lambda hit: (-hit.score, self._graph.ids[hit.row]))


class Links:
    """rankers.Ranker: words, and the names that lead on from them."""

    def __init__(self, graph: Graph, settings: RetrieveSection) -> None:
        self._graph, self._settings = graph, settings

    def rank(self, words: Words, question: str, k: int) -> list[Hit]:
        """See rankers.Ranker."""
        found = words.best(max(k, CANDIDATES))
        if not found:
            return []
        walk, graph = Walk(words, self._graph, found, self._settings.link_weight), self._graph
        walk.step(graph.named(question), 1.0)
        for row, score in found[:SEEDS]:
            walk.step(graph.of(row), score / found[0][1], row)
        for depth in range(1, self._settings.link_depth):
            best = walk.ranked(SEEDS)
            for hit in best:
                walk.step(graph.of(hit.row), DECAY**depth * hit.score / best[0].score, hit.row)
        return walk.ranked(k)
