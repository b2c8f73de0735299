"""A search index over a handful of passages, in memory: the same analysis and formula, no files.

Owns: ports.Retriever for evaluation, where a question brings its own passages. Does not own: anything that must outlive
the process.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from mindchat.config import IndexSection, RetrieveSection
from mindchat.corpus.search.analyze import Analyzer
from mindchat.corpus.search.answers import SPARE, Scored, answered, reasoned
from mindchat.corpus.search.bm25f import FIELDS, Params
from mindchat.corpus.search.graph import Graph
from mindchat.corpus.search.impact_matrix import assemble
from mindchat.corpus.search.narrow import Narrowing
from mindchat.corpus.search.near import Known, Searched, absent
from mindchat.corpus.search.rankers import chosen, make_ranker
from mindchat.corpus.search.vectors import Vectors, read_text
from mindchat.corpus.search.weave import Weaver
from mindchat.corpus.search.whoosh_index import Dump, Rows, searchable_title
from mindchat.ports import FindsEncoder
from mindchat.text.language import Language
from mindchat.values import EVERYTHING, Absent, Filters, Passage, Query, Sought, WordCounts


class MemoryIndex:
    """ports.Retriever over the given passages; ranks exactly as an Index over the same passages would."""

    def __init__(
        self,
        passages: Sequence[Passage],
        section: IndexSection | None = None,
        analyzer: Analyzer | None = None,
        retrieve: RetrieveSection | None = None,
        encoder: FindsEncoder | None = None,
    ) -> None:
        """`encoder`: loaded at the first search, if retrieve.dense is on."""
        section, retrieve = section or IndexSection(), retrieve or RetrieveSection()
        self._passages = {passage.id: passage for passage in passages}
        self._ids = list(self._passages)
        self._analyzer = analyzer or Analyzer(section.language)
        self._counted = _count(list(self._passages.values()), self._analyzer)
        self._matrix = assemble(*self._counted, Params(section.k1, section.b, section.title_boost))
        self._graph = _woven(self._passages.values(), self._analyzer) if retrieve.links == "on" else None
        self._ranker = make_ranker(chosen(retrieve), self._graph, retrieve)
        self._encoder = encoder
        self._vectors: Vectors | None = None

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
        mask = np.array(fits, np.bool_) if demanding else None
        words = Scored(scores, self._ids, mask, lambda: self._likeness(query.text))
        hits = self._ranker.rank(words, query.text, k + SPARE)
        return answered(reasoned(hits, self._ids, self._graph), query.text, k, self._passages.get)

    def _likeness(self, question: str) -> NDArray[np.float32] | None:
        """The same, to fp16, as an Index with vectors of all passages gives."""
        if self._encoder is None:
            return None
        encoder = self._encoder.load()
        if self._vectors is None:
            rows = encoder.passages([read_text(self._passages[id_]) for id_ in self._ids]).astype(np.float16)
            self._vectors = Vectors(rows, np.ones(len(rows), np.bool_)).widened()
        return self._vectors.likeness(encoder.question(question))

    def absent(self, question: str, words: Language, filters: Filters = EVERYTHING) -> tuple[Absent, ...]:
        """See ports.KnowsNames."""
        allows = Narrowing(Sought("", "names", filters=filters)).allows
        titles = [passage.title for passage in self._passages.values() if allows(passage.document)]
        return absent(question, Searched(self.search, lambda: Known(titles), self._analyzer, filters), words)


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
