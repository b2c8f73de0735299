"""A generation opened for searching: by its impact matrix, or, visibly, by the index of record.

Owns: answering one query from one generation. Does not own: which generation that is, passages' texts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mindchat.config import IndexSection, RetrieveSection
from mindchat.corpus.builder import live_ids, read_places
from mindchat.corpus.search import names
from mindchat.corpus.search.analyze import Analyzer
from mindchat.corpus.search.answers import SPARE, Scored, answered, reasoned
from mindchat.corpus.search.bm25f import Params
from mindchat.corpus.search.generations import Damaged, Manifest, Store
from mindchat.corpus.search.graph import Graph
from mindchat.corpus.search.impact_matrix import Matrix, Strings, from_record
from mindchat.corpus.search.meaning import Meaning, open_meaning
from mindchat.corpus.search.narrow import Narrowing, lone
from mindchat.corpus.search.rankers import Ranker, chosen, make_ranker, needs_graph
from mindchat.corpus.search.whoosh_index import Record
from mindchat.ports import FindsEncoder
from mindchat.values import Passage, WordCounts

MAX_TERMS = 512
"""Distinct terms of a query that count; a whole page pasted as a question stays fast."""
_MASKS = 8
"""Answers to "which passages may be searched" that are kept."""


class Opened:
    """Immutable once open; safe for several threads."""

    def __init__(
        self,
        name: str,
        manifest: Manifest,
        matrix: Matrix | None,
        record: Record | None,
        params: Params,
        places: dict[str, list[str]],
        graph: Graph | None,
        ranker: Ranker,
        meaning: Meaning | None = None,
    ) -> None:
        self.name, self.manifest, self._graph, self._meaning = name, manifest, graph, meaning
        self._ranker = ranker
        self._matrix, self._record, self._params, self._places = matrix, record, params, places
        self._analyzer = Analyzer(manifest.language)
        self._guard = threading.Lock()
        self._ids: Sequence[str] | None = None
        self._masks: dict[Hashable, NDArray[np.bool_]] = {}

    @staticmethod
    def open(
        store: Store,
        name: str,
        section: IndexSection,
        notify: Callable[[str], None],
        retrieve: RetrieveSection | None = None,
        ranker: str = "",
        encoder: FindsEncoder | None = None,
    ) -> Opened:
        """Check the files and open; raises Damaged if the index of record is hurt, only notifies if matrix, graph or
        vectors are.
        """
        manifest, all_problems = store.examine(name)
        hurt = [text for path, text in all_problems if not path.startswith(("matrix/", "graph/", "vectors/"))]
        if hurt:
            raise Damaged(hurt[0])
        problems = [(path, text) for path, text in all_problems if path.startswith("matrix/")]
        folder, retrieve = store.root / name, retrieve or RetrieveSection()
        ranker = ranker or chosen(retrieve)
        params = Params(section.k1, section.b, section.title_boost)
        if manifest.language != section.language:
            notify(f"The index was made for language {manifest.language}; run: mindchat index sync")
        places = read_places(folder)
        graph = _graph(
            folder,
            manifest,
            [text for path, text in all_problems if path.startswith("graph/")],
            needs_graph(ranker, retrieve),
            notify,
        )
        meaning = None
        if ranker == "dense":
            meaning = open_meaning(
                folder, manifest, any(p.startswith("vectors/") for p, _ in all_problems), encoder, notify
            )
        made = make_ranker(ranker, graph, retrieve)
        if section.matrix and manifest.has_matrix and not problems and manifest.params == params:
            return Opened(name, manifest, Matrix.load(folder / "matrix"), None, params, places, graph, made, meaning)
        record = Record(folder / "record")
        if section.matrix and not problems and manifest.has_matrix:
            notify(
                "index.k1, b or title_boost are not those of the index: scores recomputed for this run; mindchat index"
                " sync keeps them."
            )
            matrix = from_record(record, params)
            record.close()
            return Opened(name, manifest, matrix, None, params, places, graph, made, meaning)
        if section.matrix:
            why = problems[0][1] if problems else "it was never made"
            notify(
                f"The impact matrix cannot be used ({why}); searching the index of record, which is slower. mindchat"
                " index rebuild mends it."
            )
        return Opened(name, manifest, None, record, params, places, graph, made, meaning)

    @property
    def served_by(self) -> str:
        """matrix | whoosh."""
        return "matrix" if self._matrix is not None else "whoosh"

    def search(
        self, text: str, k: int, passage: Callable[[str], Passage | None], narrowing: Narrowing
    ) -> list[Passage] | None:
        """At most k passages that `passage` still knows by id and the demands let pass, best first, with their reasons.

        [] without searchable terms; None: no index has the terms of the phrases (Narrowing.unseen).
        """
        with self._guard:  # neither the stemmer nor Whoosh's open files may be shared between threads
            terms = list(dict.fromkeys(self._analyzer.terms(text)))[:MAX_TERMS]
            if narrowing.unseen(terms):
                return None
            if not terms or k < 1:
                return []
            scores, ids = self._scores(terms)
            mask = self._allowed(narrowing) if narrowing.documents else None
            for term in self._required(narrowing.phrases):
                mask = (self._scores([term])[0] > 0) & (True if mask is None else mask)
            most = len(ids) if narrowing.phrases else k + SPARE
            words = Scored(scores, ids, mask, lambda: self._meaning.likeness(text) if self._meaning else None)
            hits = reasoned(self._ranker.rank(words, text, most), ids, self._graph)

        def accepted(id_: str) -> Passage | None:
            here = passage(id_)
            return here if here is not None and narrowing.accepts(here) else None

        return answered(hits, text, k, accepted)

    def count_words(self, text: str) -> WordCounts:
        """How many passages hold each searchable word; of a word that has several terms (n-grams), the rarest one's."""
        with self._guard:
            if self._matrix is not None:
                holding, passages = self._matrix.holding, len(self._matrix.ids)
            else:
                assert self._record is not None
                holding, passages = self._record.holding, int(self._record.rows.live.sum())
            words = self._analyzer.words(text)[:MAX_TERMS]
            return WordCounts(passages, tuple((word, min(map(holding, terms))) for word, terms in words))

    def _scores(self, terms: Sequence[bytes]) -> tuple[NDArray[np.floating], Strings | Sequence[str]]:
        """(scores, ids) of the live passages, in the order of matrix and graph."""
        if self._matrix is not None:
            return self._matrix.scores(terms), self._matrix.ids
        assert self._record is not None
        return self._record.scores(terms, self._params)[self._record.rows.live], self._live_ids()

    def _live_ids(self) -> Sequence[str]:
        if self._ids is None:
            assert self._record is not None
            self._ids = live_ids(self._record)
        return self._ids

    def _required(self, phrases: Sequence[str]) -> set[bytes]:
        """Terms of every passage that has the phrases."""
        found = {term for phrase in phrases for term in self._analyzer.terms(phrase)}
        return {term for term in found if not lone(term)}

    def _allowed(self, narrowing: Narrowing) -> NDArray[np.bool_]:
        """Which passages stand in a document that may be searched, in any of their places."""
        mask = self._masks.get(narrowing.key) if narrowing.lasting else None
        if mask is None:
            mask = self._find_mask(narrowing.allows)
            if len(self._masks) >= _MASKS:
                self._masks.clear()
            self._masks[narrowing.key] = mask
        return mask

    def _find_mask(self, inside: Callable[[str], bool]) -> NDArray[np.bool_]:
        if self._matrix is not None:
            by_document = np.array([inside(_decoded(uri)) for uri in self._matrix.uris], np.bool_)
            mask = by_document[self._matrix.document] if len(by_document) else np.zeros(0, np.bool_)
            ids = [_decoded(id_) for id_ in self._matrix.ids] if self._places else []
        else:
            assert self._record is not None
            rows = self._record.rows
            mask = np.array([inside(uri) for uri in rows.uris], np.bool_)[rows.live]
            ids = list(self._live_ids())
        number = {id_: at for at, id_ in enumerate(ids)} if self._places else {}
        for id_, uris in self._places.items():
            if id_ in number and any(map(inside, uris)):
                mask[number[id_]] = True
        return mask

    def close(self) -> None:
        """Release files; memory maps go when the last user does."""
        if self._record is not None:
            self._record.close()


def _graph(
    folder: Path, manifest: Manifest, problems: Sequence[str], wanted: bool, notify: Callable[[str], None]
) -> Graph | None:
    """The name graph, if the ranker wants one; None, told, if it cannot be used."""
    if not wanted:
        return None
    if problems or manifest.graph != names.VERSION:
        why = problems[0] if problems else "this index was made without it"
        notify(f"Names are not followed ({why}); mindchat index rebuild mends it.")
        return None
    return Graph.load(folder / "graph")


def _decoded(text: bytes | str) -> str:
    return text.decode("utf-8", "surrogatepass") if isinstance(text, bytes) else text
