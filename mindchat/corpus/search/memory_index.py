"""A search index over a handful of passages, in memory: the same analysis and formula, no files.

Owns: ports.Retriever for evaluation, where a question brings its own passages. Does not own: anything that must outlive the process.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from mindchat.config import IndexSection
from mindchat.corpus.search.analyze import Analyzer
from mindchat.corpus.search.bm25f import FIELDS, Params
from mindchat.corpus.search.impact_matrix import assemble, best
from mindchat.corpus.search.whoosh_index import Dump, Rows, searchable_title
from mindchat.values import Passage, Query, WordCounts


class MemoryIndex:
    """ports.Retriever over the given passages; ranks exactly as an Index over the same passages would."""

    def __init__(self, passages: Sequence[Passage], section: IndexSection | None = None, analyzer: Analyzer | None = None) -> None:
        section = section or IndexSection()
        self._passages = {passage.id: passage for passage in passages}
        self._ids = list(self._passages)
        self._analyzer = analyzer or Analyzer(section.language)
        self._counted = _count(list(self._passages.values()), self._analyzer)
        self._matrix = assemble(*self._counted, Params(section.k1, section.b, section.title_boost))

    def with_section(self, section: IndexSection) -> MemoryIndex:
        """The same passages with other k1, b and title boost; nothing is counted again."""
        other = copy.copy(self)
        other._matrix = assemble(*self._counted, Params(section.k1, section.b, section.title_boost))
        return other

    def count_words(self, text: str) -> WordCounts:
        """See ports.CountsWords."""
        words = ((word, min(map(self._matrix.holding, terms))) for word, terms in self._analyzer.words(text))
        return WordCounts(len(self._ids), tuple(words))

    def search(self, query: Query, k: int) -> list[Passage]:
        """At most k passages, best first, rank from 1; [] for a query without searchable terms."""
        scores = self._matrix.scores(list(dict.fromkeys(self._analyzer.terms(query.text))))
        hits = enumerate(best(scores, self._ids, k), 1)
        return [replace(self._passages[self._ids[at]], score=score, rank=rank) for rank, (at, score) in hits]


def _count(passages: Sequence[Passage], analyzer: Analyzer) -> tuple[Dump, Rows]:
    vocabulary: dict[bytes, int] = {}
    postings: list[tuple[int, int, int, float]] = []
    lengths = {field: np.zeros(len(passages)) for field in FIELDS}
    for number, passage in enumerate(passages):
        for field, text in zip(FIELDS, (searchable_title(passage), passage.text), strict=True):
            counts = analyzer.counts(text)
            lengths[field][number] = counts.total()
            postings += [(vocabulary.setdefault(term, len(vocabulary)), FIELDS.index(field), number, float(tf)) for term, tf in counts.items()]
    term, field_, where, tf = zip(*postings, strict=True) if postings else ((), (), (), ())
    dump = Dump(vocabulary, np.array(term, np.int64), np.array(field_, np.int8), np.array(where, np.int64), np.array(tf, np.float64))
    ids, uris = [passage.id for passage in passages], [passage.document for passage in passages]
    return dump, Rows(ids, uris, [b""] * len(ids), np.ones(len(ids), np.bool_), lengths)
