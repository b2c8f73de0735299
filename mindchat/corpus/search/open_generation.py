"""A generation opened for searching: by its impact matrix, or, visibly, by the index of record.

Owns: answering one query from one generation. Does not own: which generation that is, passages' texts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from mindchat.config import IndexSection
from mindchat.corpus.builder import read_places
from mindchat.corpus.search.analyze import Analyzer
from mindchat.corpus.search.bm25f import Params
from mindchat.corpus.search.generations import Damaged, Manifest, Store
from mindchat.corpus.search.impact_matrix import Matrix, Strings, best, from_record
from mindchat.corpus.search.narrow import Narrowing, lone
from mindchat.corpus.search.whoosh_index import Record

MAX_TERMS = 512
"""Distinct terms of a query that count; a whole page pasted as a question stays fast."""
_MASKS = 8
"""Answers to "which passages may be searched" that are kept."""
_SPARE = 16
"""Hits offered beyond k, for those whose passage has left the registry since."""


class Opened:
    """Immutable once open; safe for several threads."""

    def __init__(
        self, name: str, manifest: Manifest, matrix: Matrix | None, record: Record | None, params: Params, places: dict[str, list[str]]
    ) -> None:
        self.name, self.manifest = name, manifest
        self._matrix, self._record, self._params, self._places = matrix, record, params, places
        self._analyzer = Analyzer(manifest.language)
        self._guard = threading.Lock()
        self._masks: dict[Hashable, NDArray[np.bool_]] = {}

    @staticmethod
    def open(store: Store, name: str, section: IndexSection, notify: Callable[[str], None]) -> Opened:
        """Check the files and open; raises Damaged if the index of record is hurt, only notifies if just the matrix is."""
        manifest, problems = store.examine(name)
        hurt = [text for path, text in problems if not path.startswith("matrix/")]
        if hurt:
            raise Damaged(hurt[0])
        folder = store.root / name
        params = Params(section.k1, section.b, section.title_boost)
        if manifest.language != section.language:
            notify(f"The index was made for language {manifest.language}; run: mindchat index sync")
        places = read_places(folder)
        if section.matrix and manifest.has_matrix and not problems and manifest.params == params:
            return Opened(name, manifest, Matrix.load(folder / "matrix"), None, params, places)
        record = Record(folder / "record")
        if section.matrix and not problems and manifest.has_matrix:
            notify("index.k1, b or title_boost are not those of the index: scores recomputed for this run; mindchat index sync keeps them.")
            matrix = from_record(record, params)
            record.close()
            return Opened(name, manifest, matrix, None, params, places)
        if section.matrix:
            why = problems[0][1] if problems else "it was never made"
            notify(f"The impact matrix cannot be used ({why}); searching the index of record, which is slower. mindchat index rebuild mends it.")
        return Opened(name, manifest, None, record, params, places)

    @property
    def served_by(self) -> str:
        """matrix | whoosh."""
        return "matrix" if self._matrix is not None else "whoosh"

    def search(self, text: str, k: int, narrowing: Narrowing) -> list[tuple[str, float]] | None:
        """(passage id, score) of at most k + 16 hits, best first; with phrases all hits that have their terms. None: see Narrowing.unseen."""
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
            hits = best(scores, ids, len(ids) if narrowing.phrases else k + _SPARE, mask)
            return [(_decoded(ids[at]), score) for at, score in hits]

    def _scores(self, terms: Sequence[bytes]) -> tuple[NDArray[np.floating], Strings | Sequence[str]]:
        """BM25F of every passage, and their ids."""
        if self._matrix is not None:
            return self._matrix.scores(terms), self._matrix.ids
        assert self._record is not None
        return self._record.scores(terms, self._params), self._record.rows.ids

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
            mask = np.array([inside(uri) for uri in self._record.rows.uris], np.bool_)
            ids = self._record.rows.ids
        number = {id_: at for at, id_ in enumerate(ids)} if self._places else {}
        for id_, uris in self._places.items():
            if id_ in number and any(map(inside, uris)):
                mask[number[id_]] = True
        return mask

    def close(self) -> None:
        """Release files; memory maps go when the last user does."""
        if self._record is not None:
            self._record.close()


def _decoded(text: bytes | str) -> str:
    return text.decode("utf-8", "surrogatepass") if isinstance(text, bytes) else text
