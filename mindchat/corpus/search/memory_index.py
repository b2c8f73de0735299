"""A search index over a handful of passages, in memory: the same analysis and formula, no files.

Owns: ports.Retriever for evaluation, where a question brings its own passages. Does not own: anything that must outlive
the process.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

import numpy as np

from mindchat.config import IndexSection, RetrieveSection
from mindchat.corpus.search.analyze import Analyzer
from mindchat.corpus.search.answers import SPARE, Scored, answered, reasoned
from mindchat.corpus.search.bm25f import FIELDS, Params
from mindchat.corpus.search.graph import Graph
from mindchat.corpus.search.impact_matrix import assemble
from mindchat.corpus.search.narrow import Narrowing
from mindchat.corpus.search.near import Known, Searched, absent
from mindchat.corpus.search.rankers import chosen, make_ranker
from mindchat.corpus.search.weave import Weaver
from mindchat.corpus.search.whoosh_index import Dump, Rows, searchable_title
from mindchat.text.language import Language
from mindchat.values import Absent, Passage, Query, WordCounts


class MemoryIndex:
    """ports.Retriever over the given passages; ranks exactly as an Index over the same passages would."""

    def __init__(
        self,
        passages: Sequence[Passage],
        section: IndexSection | None = None,
        analyzer: Analyzer | None = None,
        retrieve: RetrieveSection | None = None,
    ) -> None:
        section, retrieve = section or IndexSection(), retrieve or RetrieveSection()
        self._passages = {passage.id: passage for passage in passages}
        self._ids = list(self._passages)
        self._analyzer = analyzer or Analyzer(section.language)
        self._counted = _count(list(self._passages.values()), self._analyzer)
        self._matrix = assemble(*self._counted, Params(section.k1, section.b, section.title_boost))
        self._graph = _woven(self._passages.values(), self._analyzer) if retrieve.links == "on" else None
        self._ranker = make_ranker(chosen(retrieve), self._graph, retrieve)

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
        narrowing = Narrowing(query)
        scores = self._matrix.scores(list(dict.fromkeys(self._analyzer.terms(query.text))))
        if k < 1:
            return []
        texts = [self._passages[id_] for id_ in self._ids]
        demanding = narrowing.documents or narrowing.phrases
        fits = [narrowing.allows(passage.document) and narrowing.accepts(passage) for passage in texts]
        if narrowing.unseen(self._analyzer.terms(query.text)):
            scores = np.array(fits, np.float64)
        words = Scored(scores, self._ids, np.array(fits, np.bool_) if demanding else None)
        hits = self._ranker.rank(words, query.text, k + SPARE)
        return answered(reasoned(hits, self._ids, self._graph), query.text, k, self._passages.get)

    def absent(self, question: str, words: Language) -> tuple[Absent, ...]:
        """See ports.KnowsNames."""
        titles = [passage.title for passage in self._passages.values()]
        return absent(question, Searched(self.search, lambda: Known(titles), self._analyzer), words)


def _woven(passages: Iterable[Passage], analyzer: Analyzer) -> Graph:
    weaver = Weaver(analyzer)
    for passage in passages:
        weaver.offer(passage)
    return weaver.graph(passages)


def _count(passages: Sequence[Passage], analyzer: Analyzer) -> tuple[Dump, Rows]:
    vocabulary: dict[bytes, int] = {}
    postings: list[tuple[int, int, int, int]] = []
    lengths = {field: np.zeros(len(passages)) for field in FIELDS}
    for number, passage in enumerate(passages):
        for field, text in zip(FIELDS, (searchable_title(passage), passage.text), strict=True):
            counts = analyzer.counts(text)
            lengths[field][number] = counts.total()
            postings += [
                (vocabulary.setdefault(term, len(vocabulary)), FIELDS.index(field), number, tf)
                for term, tf in counts.items()
            ]
    term, field_, where, tf = zip(*postings, strict=True) if postings else ((), (), (), ())
    dump = Dump(
        vocabulary,
        np.array(term, np.int32),
        np.array(field_, np.int8),
        np.array(where, np.int32),
        np.array(tf, np.int32),
    )
    ids, uris = [passage.id for passage in passages], [passage.document for passage in passages]
    return dump, Rows(ids, uris, [b""] * len(ids), np.ones(len(ids), np.bool_), lengths)
