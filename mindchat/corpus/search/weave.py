"""Making the name graph from the registry's passages, or from the graph before and what has changed.

Owns: who bears which name with what share, which texts must be read again. Does not own: reading names (names), the
arrays (graph).
A text is read again if it changed, if a name that it mentions is gone, or if it mentions a new one; so the graph is
always the one that reading everything would give.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from mindchat.corpus.search.analyze import Analyzer
from mindchat.corpus.search.graph import Graph
from mindchat.corpus.search.impact_matrix import Strings
from mindchat.corpus.search.names import Finder, aliases, document_names, findable, may_have_aliases, own_names
from mindchat.corpus.search.whoosh_index import fingerprint
from mindchat.document_ports import Registry
from mindchat.ports import NEVER, Cancel
from mindchat.values import Passage

MOST_BEARERS = 64
"""A name leads to at most so many passages; those where one would begin to read come first."""
TOO_COMMON = 200
"""A name that so many documents or sections bear leads nowhere: "Introduction", "Notes"."""
_PRINT = 8
_EVERY = 200
"""Passages between two looks at the cancel token."""


def _no_text(uri: str) -> str | None:
    del uri
    return None


class Weaver:
    """Takes each passage once by offer(), then makes the graph."""

    def __init__(self, analyzer: Analyzer, text: Callable[[str], str | None] = _no_text) -> None:
        """`text`: a document's whole text by uri, for what stands in no passage."""
        self._analyzer, self._text = analyzer, text
        self._keys: dict[str, int] = {}
        self._row: dict[str, int] = {}
        self._name, self._bearer, self._first = array("l"), array("l"), array("b")
        self._prints = bytearray()
        self._document, self._heading, self._shared = "", "", list[str]()

    def offer(self, passage: Passage) -> None:
        """The next passage of the registry; an id that was offered before is ignored."""
        if passage.id in self._row:
            return
        row = self._row[passage.id] = len(self._row)
        self._prints += fingerprint(passage)
        opens = passage.document != self._document
        if opens:
            self._document, self._shared = passage.document, document_names(passage)
            if may_have_aliases(passage):
                self._shared += aliases((self._text(passage.document) or "")[: passage.start])
        own, fresh = own_names(passage), opens or passage.heading != self._heading
        self._heading = passage.heading
        for key in dict.fromkeys((*self._shared, *own)):
            self._name.append(self._keys.setdefault(key, len(self._keys)))
            self._bearer.append(row)
            self._first.append((opens and key in self._shared) or (fresh and key in own))

    def graph(self, stream: Iterable[Passage], base: Graph | None = None, order: Sequence[str] | None = None) -> Graph:
        """The graph of what was offered. `stream`: the same once more; `order`: ids by row, else as offered."""
        ids = list(self._row) if order is None else [id_ for id_ in order if id_ in self._row]
        place = np.full(len(self._row), -1, np.int64)
        place[[self._row[id_] for id_ in ids]] = np.arange(len(ids))
        keys = sorted(self._keys, key=_encoded)
        rank = np.empty(len(keys), np.int64)
        rank[[self._keys[key] for key in keys]] = np.arange(len(keys))
        prints = np.frombuffer(bytes(self._prints), np.uint8).reshape(-1, _PRINT)[[self._row[id_] for id_ in ids]]
        mentions = self._mentions(stream, keys, ids, _Old.of(base, ids, prints, keys))
        ends = np.zeros(len(ids) + 1, np.int64)
        np.cumsum([len(row) for row in mentions], out=ends[1:])
        flat = np.concatenate(mentions) if mentions else np.zeros(0, np.int32)
        return Graph(
            Strings.of([_encoded(id_) for id_ in ids]),
            prints,
            Strings.of([_encoded(key) for key in keys]),
            np.array([findable(key, self._analyzer) for key in keys], np.bool_),
            *self._bearers(rank, place, len(keys)),
            ends,
            flat,
            np.bincount(flat, minlength=len(keys)).astype(np.int32),
        )

    def _bearers(
        self, rank: NDArray[np.int64], place: NDArray[np.int64], names: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        """(ends, rows, shares): a first bearer shares with the other first ones, the rest with all.

        By the square root, since the passages' words decide among them too.
        """
        name, row = rank[np.array(self._name, np.int64)], place[np.array(self._bearer, np.int64)]
        first = np.array(self._first, np.bool_)
        kept = row >= 0
        name, row, first = name[kept], row[kept], first[kept]
        order = np.lexsort((row, ~first, name))
        name, row, first = name[order], row[order], first[order]
        firsts, all_ = np.bincount(name[first], minlength=names), np.bincount(name, minlength=names)
        starts = np.zeros(names + 1, np.int64)
        np.cumsum(all_, out=starts[1:])
        share = np.where(first, 1 / np.sqrt(np.maximum(firsts[name], 1)), 1 / np.sqrt(np.maximum(all_[name], 1)))
        kept = (np.arange(len(name)) - starts[name] < MOST_BEARERS) & (firsts[name] < TOO_COMMON)
        ends = np.zeros(names + 1, np.int64)
        np.cumsum(np.bincount(name[kept], minlength=names), out=ends[1:])
        return ends, row[kept].astype(np.int32), share[kept].astype(np.float32)

    def _mentions(
        self, stream: Iterable[Passage], keys: list[str], ids: list[str], old: _Old
    ) -> list[NDArray[np.int32]]:
        """Names by row, from the old graph where it still holds."""
        found = [np.zeros(0, np.int32)] * len(ids)
        whole: Finder | None = None
        news = Finder(old.new, self._analyzer) if old.kept else None
        for row, passage in _each(stream, {id_: at for at, id_ in enumerate(ids)}):
            text, uri = passage.text, passage.document
            if news is not None and row in old.kept and not (news.may_find(text) and news.find(text, uri)):
                found[row] = old.kept[row]
                continue
            whole = whole or Finder(keys, self._analyzer)
            found[row] = np.array(whole.find(text, uri), np.int32)
        return found


def _each(passages: Iterable[Passage], rows: dict[str, int]) -> Iterator[tuple[int, Passage]]:
    """Each passage that has a row, the first of its id."""
    seen = set[int]()
    for passage in passages:
        row = rows.get(passage.id, -1)
        if row >= 0 and row not in seen:
            seen.add(row)
            yield row, passage


def woven(
    registry: Registry,
    collection: str,
    analyzer: Analyzer,
    base: Graph | None = None,
    order: Sequence[str] | None = None,
    cancel: Cancel = NEVER,
) -> Graph:
    """The graph of a collection of the registry. `base`: an earlier graph; `order`: passage ids by row.

    Raises Interrupted soon after `cancel` is set.
    """
    weaver = Weaver(analyzer, registry.text)
    for passage in _heard(registry.passages(collection), cancel):
        weaver.offer(passage)
    return weaver.graph(_heard(registry.passages(collection), cancel), base, order)


def _heard(passages: Iterable[Passage], cancel: Cancel) -> Iterator[Passage]:
    for number, passage in enumerate(passages):
        if number % _EVERY == 0:
            cancel.check()
        yield passage


class _Old(Struct, frozen=True):
    """What an earlier graph still says rightly."""

    kept: dict[int, NDArray[np.int32]]
    """Mentions that nothing but a new name can change, renumbered, by new row."""
    new: list[str]
    """Names that it does not know."""

    @staticmethod
    def of(base: Graph | None, ids: Sequence[str], prints: NDArray[np.uint8], keys: Sequence[str]) -> _Old:
        """From the passages whose fingerprint is the same and whose names are all still there."""
        if base is None:
            return _Old({}, list(keys))
        number = {key: at for at, key in enumerate(keys)}
        before = [name.decode("utf-8", "surrogatepass") for name in base.names]
        new = sorted(number.keys() - set(before), key=_encoded)
        mentions = np.array([number.get(key, -1) for key in before], np.int32)[base.mentions]
        ends = base.mention_ends.tolist()
        lost = (
            np.bincount(np.repeat(np.arange(len(base.ids)), np.diff(base.mention_ends)), mentions < 0, len(base.ids))
            > 0
        )
        place = {id_: at for at, id_ in enumerate(base.ids)}
        old = np.array([place.get(_encoded(id_), -1) for id_ in ids], np.int64)
        rows = np.flatnonzero(old >= 0)
        rows = rows[(prints[rows] == base.prints[old[rows]]).all(axis=1) & ~lost[old[rows]]]
        pairs = zip(rows.tolist(), old[rows].tolist(), strict=True)
        return _Old({row: mentions[ends[at] : ends[at + 1]] for row, at in pairs}, new)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
