"""Personalised PageRank over the name graph: what a walker visits from the best passages and names.

Owns: the walk. Does not own: the graph (graph). It is a row of the bench, beside one or two steps along the best link
(links).
Source: HippoRAG (arXiv:2405.14831): undirected edges between passages and names, damping 0.5; here without a model:
names instead of triples, BM25F instead of embeddings, and the passages' words count beside the walk, without which it
finds less.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from mindchat.config import RetrieveSection
from mindchat.corpus.search.graph import Graph
from mindchat.corpus.search.rankers import CANDIDATES, SEEDS, Hit, Words

DAMPING = 0.5
STRETCH = 10.0
"""On retrieve.link_weight: a walk spreads thin over all that is named, where the best link counts whole."""
STEPS = 10
"""0.5 to this power is what is left to distribute."""


class PageRank:
    """rankers.Ranker."""

    def __init__(self, graph: Graph, settings: RetrieveSection) -> None:
        self._graph, self._weight = graph, STRETCH * settings.link_weight
        rows, names = len(graph.ids), len(graph.names)
        rarity = np.array([graph.rarity(name) for name in range(names)])
        mentioning = np.repeat(np.arange(rows), np.diff(graph.mention_ends))
        borne = np.repeat(np.arange(names), np.diff(graph.bearer_ends))
        self._row = np.concatenate((mentioning, graph.bearers)).astype(np.int64)
        self._name = np.concatenate((graph.mentions, borne)).astype(np.int64)
        edge = np.concatenate((rarity[graph.mentions], rarity[borne] * graph.shares))
        self._to_name = edge / np.maximum(np.bincount(self._row, edge, rows), 1e-12)[self._row]
        self._to_row = edge / np.maximum(np.bincount(self._name, edge, names), 1e-12)[self._name]

    def rank(self, words: Words, question: str, k: int) -> list[Hit]:
        """See rankers.Ranker."""
        found = words.best(max(k, CANDIDATES))
        if not found:
            return []
        best, visits = found[0][1], self._walk(found[:SEEDS], self._graph.named(question))
        scores = dict(found)
        near = np.argpartition(visits, -min(k + CANDIDATES, len(visits)))[-min(k + CANDIDATES, len(visits)) :].tolist()
        most = max(float(visits.max()), 1e-12)
        hits = []
        for row in {**scores, **dict.fromkeys(near)}:
            if words.allowed(row):
                own = scores[row] if row in scores else words.of(row)
                hits.append(Hit(row, own + self._weight * best * float(visits[row]) / most, own))
        return heapq.nsmallest(k, hits, key=lambda hit: (-hit.score, self._graph.ids[hit.row]))

    def _walk(self, seeds: list[tuple[int, float]], named: list[int]) -> NDArray[np.float64]:
        """How often each passage is visited: (passages,), seeds without their own start."""
        rows, names = len(self._graph.ids), len(self._graph.names)
        start_row, start_name = np.zeros(rows), np.zeros(names)
        for row, score in seeds:
            start_row[row] = score / seeds[0][1]
        for name in named:
            start_name[name] = self._graph.rarity(name)
        total = start_row.sum() + start_name.sum()
        start_row, start_name = start_row / total, start_name / total
        row_mass, name_mass = start_row, start_name
        for _ in range(STEPS):
            to_name = np.bincount(self._name, self._to_name * row_mass[self._row], names)
            to_row = np.bincount(self._row, self._to_row * name_mass[self._name], rows)
            row_mass = (1 - DAMPING) * start_row + DAMPING * to_row
            name_mass = (1 - DAMPING) * start_name + DAMPING * to_name
        visits: NDArray[np.float64] = row_mass - (1 - DAMPING) * start_row
        return visits
