"""A generation opened for searching: by its impact matrix, or, visibly, by the index of record.

Owns: answering one query from one generation. Does not own: which generation that is, passages' texts.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mindchat.config import IndexSection
from mindchat.corpus.builder import read_places
from mindchat.corpus.search.analyze import Analyzer
from mindchat.corpus.search.bm25f import Params
from mindchat.corpus.search.generations import Damaged, Manifest, Store
from mindchat.corpus.search.impact_matrix import Matrix, Strings, best, from_record
from mindchat.corpus.search.whoosh_index import Record
from mindchat.values import WordCounts

MAX_TERMS = 512
"""Distinct terms of a query that count; a whole page pasted as a question stays fast."""
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
        self._mask = lru_cache(maxsize=8)(self._find_mask)

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

    def search(self, text: str, k: int, within: Sequence[str] = ()) -> list[tuple[str, float]]:
        """(passage id, score) of at most k + 16 hits, best first; [] for a query without searchable terms."""
        with self._guard:  # neither the stemmer nor Whoosh's open files may be shared between threads
            terms = list(dict.fromkeys(self._analyzer.terms(text)))[:MAX_TERMS]
            if not terms or k < 1:
                return []
            ids: Strings | Sequence[str]
            scores: NDArray[np.floating]
            if self._matrix is not None:
                scores, ids = self._matrix.scores(terms), self._matrix.ids
            else:
                assert self._record is not None
                scores, ids = self._record.scores(terms, self._params), self._record.rows.ids
            mask = self._mask(tuple(within)) if within else None
            hits = best(scores, ids, k + _SPARE, mask)
            return [(name.decode("utf-8", "surrogatepass") if isinstance(name := ids[at], bytes) else name, score) for at, score in hits]

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

    def _find_mask(self, within: tuple[str, ...]) -> NDArray[np.bool_]:
        """Which passages stand in a document at or under one of the paths, in any of their places."""
        roots = [os.path.realpath(os.path.expanduser(path)) for path in within]
        starts = tuple(root.rstrip(os.sep) + end for root in roots for end in (os.sep, "#"))

        def inside(uri: str) -> bool:
            return uri in roots or uri.startswith(starts)

        if self._matrix is not None:
            by_document = np.array([inside(uri.decode("utf-8", "surrogatepass")) for uri in self._matrix.uris], np.bool_)
            mask = by_document[self._matrix.document] if len(by_document) else np.zeros(0, np.bool_)
            number = {id_.decode("utf-8", "surrogatepass"): at for at, id_ in enumerate(self._matrix.ids)} if self._places else {}
        else:
            assert self._record is not None
            rows = self._record.rows
            mask = np.array([inside(uri) for uri in rows.uris], np.bool_)
            number = {id_: at for at, id_ in enumerate(rows.ids)} if self._places else {}
        for id_, uris in self._places.items():
            if id_ in number and any(map(inside, uris)):
                mask[number[id_]] = True
        return mask

    def close(self) -> None:
        """Release files; memory maps go when the last user does."""
        if self._record is not None:
            self._record.close()
