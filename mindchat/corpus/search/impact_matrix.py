"""The impact matrix: what each term adds to each passage's score, computed once, so that a query is a few array
additions.

Owns: computing it from the index of record, its files, top-k selection. Does not own: the formula (bm25f), texts of
passages. Layout on disk: numpy arrays and joined byte strings with offsets, all memory-mapped, so that opening costs no
reading. A row of the matrix is a term, a column a passage (CSR); impacts are float32, so scores agree with the record's
to about 1e-6 relative.
"""

from __future__ import annotations

import heapq
import mmap
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from mindchat.corpus.search.bm25f import FIELDS, Params, field_weight, saturate
from mindchat.corpus.search.whoosh_index import Dump, Record, Rows
from mindchat.ports import NEVER, Cancel

_AT_ONCE = 1 << 20
"""Postings that are weighed at once, about 100 MB of numbers; the most common term's may be more."""


def mapped(path: Path) -> NDArray[Any]:
    """The array in the file, as a plain view: each access to a numpy.memmap would cost a Python call."""
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False)).view(np.ndarray)


class Strings:
    """Many byte strings in one: random access without decoding the others."""

    def __init__(self, blob: bytes | mmap.mmap, ends: NDArray[np.int64]) -> None:
        self._blob, self._ends = blob, ends

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, at: int) -> bytes:
        if not 0 <= at < len(self):
            raise IndexError(at)
        return self._blob[int(self._ends[at]) : int(self._ends[at + 1])]

    def __iter__(self) -> Iterator[bytes]:
        whole, ends = bytes(self._blob[:]), self._ends.tolist()
        return (whole[start:end] for start, end in pairwise(ends))

    def place(self, wanted: bytes) -> int:
        """How many items of a sorted list stand before it: where it is, or would be."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        return low

    def find(self, wanted: bytes) -> int:
        """Position in a sorted list, -1 if it is not there."""
        at = self.place(wanted)
        return at if at < len(self) and self[at] == wanted else -1

    @staticmethod
    def of(items: Sequence[bytes]) -> Strings:
        """In memory."""
        ends = np.zeros(len(items) + 1, np.int64)
        np.cumsum([len(item) for item in items], out=ends[1:])
        return Strings(b"".join(items), ends)

    def save(self, folder: Path, name: str) -> None:
        """Two files: name.bin and name.npy."""
        (folder / f"{name}.bin").write_bytes(self._blob[:])
        np.save(folder / f"{name}.npy", self._ends)

    @staticmethod
    def load(folder: Path, name: str) -> Strings:
        """Memory-mapped."""
        ends = mapped(folder / f"{name}.npy")
        with (folder / f"{name}.bin").open("rb") as file:
            # an empty file cannot be mapped
            blob: bytes | mmap.mmap = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if int(ends[-1]) else b""
        return Strings(blob, ends)


class Matrix(Struct, frozen=True):
    """Terms × passages."""

    terms: Strings
    """Sorted."""
    ends: NDArray[np.int64]
    """(terms + 1,): where each term's row starts in `columns` and `impacts`."""
    columns: NDArray[np.int32]
    impacts: NDArray[np.float32]
    ids: Strings
    """Passage ids by column."""
    uris: Strings
    """Distinct document uris."""
    document: NDArray[np.int32]
    """(passages,): position in `uris`."""

    def scores(self, terms: Sequence[bytes]) -> NDArray[np.float32]:
        """BM25F of every passage for distinct terms: (passages,)."""
        total = np.zeros(len(self.ids), np.float32)
        for term in terms:
            row = self.terms.find(term)
            if row >= 0:
                start, end = int(self.ends[row]), int(self.ends[row + 1])
                # a term's columns are distinct, so the buffered addition is right
                total[self.columns[start:end]] += self.impacts[start:end]
        return total

    def holding(self, term: bytes) -> int:
        """How many passages have the term."""
        row = self.terms.find(term)
        return int(self.ends[row + 1] - self.ends[row]) if row >= 0 else 0

    def save(self, folder: Path) -> None:
        """Write all files into a new folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("terms", "ids", "uris"):
            getattr(self, name).save(folder, name)
        for name in ("ends", "columns", "impacts", "document"):
            np.save(folder / f"row_{name}.npy", getattr(self, name))

    @staticmethod
    def load(folder: Path) -> Matrix:
        """Memory-map all files; raises OSError or ValueError if one is missing or no array."""
        strings = [Strings.load(folder, name) for name in ("terms", "ids", "uris")]
        ends, columns, impacts, document = (
            mapped(folder / f"row_{name}.npy") for name in ("ends", "columns", "impacts", "document")
        )
        return Matrix(strings[0], ends, columns, impacts, strings[1], strings[2], document)


def from_record(record: Record, params: Params, cancel: Cancel = NEVER) -> Matrix:
    """Derive the matrix from the index of record. Raises Interrupted soon after `cancel` is set."""
    return assemble(record.dump(cancel), record.rows, params, cancel)


def assemble(dump: Dump, rows: Rows, params: Params, cancel: Cancel = NEVER) -> Matrix:
    """Weigh postings, sum the fields of each (term, passage), saturate, multiply by idf, and lay out by sorted term.

    Some million postings at a time, since in float64 all of them would take several times the room of the result.
    """
    order = sorted(dump.vocabulary)
    place = np.empty(len(order), np.int32)
    place[np.array([dump.vocabulary[term] for term in order], np.int64)] = np.arange(len(order), dtype=np.int32)
    rank = place[dump.term]
    passages, column_of = int(rows.live.sum()), np.cumsum(rows.live, dtype=np.int64) - 1
    columns, impacts, df = [np.zeros(0, np.int32)], [np.zeros(0, np.float32)], np.zeros(len(order), np.int64)
    for low, high in _parts(np.bincount(rank, minlength=len(order))):
        cancel.check()
        mine = np.flatnonzero((rank >= low) & (rank < high))
        passage, tf, weight = dump.passage[mine], dump.tf[mine].astype(np.float64), np.empty(len(mine))
        for number, field in enumerate(FIELDS):
            here = np.flatnonzero(dump.field[mine] == number)
            lengths, average = rows.lengths[field][passage[here]], rows.average(field)
            weight[here] = field_weight(tf[here], lengths, average, params.boost(field), params.b)
        width = max(passages, 1)
        term, column, weight = _merge((rank[mine] - low) * np.int64(width) + column_of[passage], weight, width)
        df[low:high] = np.bincount(term, minlength=high - low)
        idf = np.log1p((passages - df[low:high] + 0.5) / (df[low:high] + 0.5))
        columns.append(column.astype(np.int32))
        impacts.append((saturate(weight, params.k1) * idf[term]).astype(np.float32))
    ends = np.zeros(len(order) + 1, np.int64)
    np.cumsum(df, out=ends[1:])
    live = np.flatnonzero(rows.live).tolist()
    places = {uri: at for at, uri in enumerate(dict.fromkeys(rows.uris[at] for at in live))}
    return Matrix(
        Strings.of(order),
        ends,
        np.concatenate(columns),
        np.concatenate(impacts),
        Strings.of([rows.ids[at].encode("utf-8", "surrogatepass") for at in live]),
        Strings.of([uri.encode("utf-8", "surrogatepass") for uri in places]),
        np.array([places[rows.uris[at]] for at in live], np.int32),
    )


def _parts(postings: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Ranges of terms, given each one's number of postings: as many as _AT_ONCE postings hold, at least one."""
    ends, low = np.cumsum(postings), 0
    while low < len(ends):
        before = int(ends[low - 1]) if low else 0
        high = max(int(np.searchsorted(ends, before + _AT_ONCE, "right")), low + 1)
        yield low, high
        low = high


def _merge(
    key: NDArray[np.int64], weight: NDArray[np.float64], width: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """(term, column, summed weight) sorted by term and column, from keys term · width + column that may repeat."""
    order = np.argsort(key, kind="stable")
    key, weight = key[order], weight[order]
    if len(key):
        first = np.flatnonzero(np.diff(key, prepend=-1))
        key, weight = key[first], np.add.reduceat(weight, first)
    kept = weight > 0  # with a title boost of 0 a posting may say nothing
    key, weight = key[kept], weight[kept]
    return key // width, key % width, weight


def best(
    scores: NDArray[np.floating], ids: Strings | Sequence[str], k: int, allowed: NDArray[np.bool_] | None = None
) -> list[tuple[int, float]]:
    """The k best columns with a positive score; equal scores in order of passage id, so that no build order shows."""
    if allowed is not None:
        scores = np.where(allowed, scores, 0)
    candidates = np.flatnonzero(scores > 0)
    if not len(candidates) or k < 1:
        return []
    if len(candidates) > k:
        found = scores[candidates]  # without the zeros, which are most of them and slow to partition
        candidates = candidates[found >= np.partition(found, len(found) - k)[len(found) - k]]
    ranked = heapq.nsmallest(k, candidates.tolist(), key=lambda at: (-float(scores[at]), ids[at]))
    return [(at, float(scores[at])) for at in ranked]
