"""One Whoosh segment, written from arrays: the postings of many passages are gathered, sorted and encoded at once.

Owns: gathering postings in memory, and their encoding in Whoosh's own file format. Does not own: schema, segments'
list, reading (whoosh_index).
Whoosh's own pool makes a tuple of five objects for each posting and sorts those; here a posting is two numbers. What is
written stays readable to Whoosh: a block's document numbers and weights are arrays where Whoosh writes tuples, blocks
are longer, and a term that one passage has is kept with the term, as the format foresees.
"""

from __future__ import annotations

import pickle
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from whoosh.codec.whoosh3 import WHOOSH3_HEADER_MAGIC, W3TermInfo
from whoosh.system import pack_int, pack_ushort

from mindchat.ports import NEVER, Cancel

_BLOCK = 1 << 15
"""Postings of a block: it is read whole."""
_EVERY = 500
"""Terms between two looks at the cancel token."""


class Postings:
    """The postings of one field: which passage has which term, and how often."""

    def __init__(self) -> None:
        self._number: defaultdict[bytes, int] = defaultdict()
        self._number.default_factory = self._number.__len__
        self._term, self._tf = array("i"), array("i")
        self._passage, self._terms = array("i"), array("i")
        """Passages in ascending order, and how many postings each has."""
        self._runs: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]] = []

    @property
    def distinct(self) -> int:
        """Terms so far."""
        return len(self._number)

    def __len__(self) -> int:
        return len(self._term) + sum(len(run[0]) for run in self._runs)

    def add(self, passage: int, counts: Counter[bytes]) -> None:
        """The terms of the next passage."""
        self._term.extend(map(self._number.__getitem__, counts))
        self._tf.extend(counts.values())
        self._passage.append(passage)
        self._terms.append(len(counts))

    def add_run(self, term: bytes, passages: NDArray[np.int32], tf: NDArray[np.int32]) -> None:
        """Postings of one term in passages that come after all that was added by add()."""
        if not len(passages):  # all were deleted: a term without a passage is none
            return
        self._runs.append((np.full(len(passages), self._number[term], np.int32), passages, tf))

    def ordered(self) -> tuple[list[bytes], NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
        """(sorted terms, passages, frequencies, where each term's part ends); what was gathered is given up."""
        term, tf = _array(self._term), _array(self._tf)
        passage = np.repeat(_array(self._passage), _array(self._terms))
        if self._runs:
            term, passage, tf = (
                np.concatenate([first, *(run[at] for run in self._runs)])
                for at, first in enumerate((term, passage, tf))
            )
        names = sorted(self._number)
        rank = np.empty(len(names), np.int32)
        rank[[self._number[name] for name in names]] = np.arange(len(names), dtype=np.int32)
        term = rank[term]
        order = np.argsort(term, kind="stable")  # of one term, passages stay in ascending order
        ends = np.cumsum(np.bincount(term, minlength=len(names)))
        self.__init__()  # type: ignore[misc]
        return names, passage[order], tf[order], ends


def _array(numbers: array[int]) -> NDArray[np.int32]:
    return np.array(numbers, np.int32)


def write_field(writer: Any, name: str, field: Any, postings: Postings, cancel: Cancel = NEVER) -> None:
    """Write one field with Whoosh's field writer; fields come in the order of their names."""
    cancel.check()
    terms, passages, tf, ends = postings.ordered()
    cancel.check()
    writer.start_field(name, field)
    prefix, add, file = pack_ushort(writer._fieldid), writer._tindex.add, writer._postfile
    offset = file.tell()
    if terms:
        starts = np.concatenate(([0], ends[:-1]))
        totals, most = np.add.reduceat(tf, starts, dtype=np.int64), np.maximum.reduceat(tf, starts)
        encoded = _Encoded(passages, tf)
        for first in range(0, len(terms), _EVERY):
            cancel.check()
            part = slice(first, first + _EVERY)
            columns = (numbers[part].tolist() for numbers in (starts, ends, totals, most))
            for term, start, end, total, highest in zip(terms[part], *columns, strict=True):
                info = W3TermInfo()
                info._weight, info._df, info._maxweight = float(total), end - start, float(highest)
                info._minid, info._maxid = int(passages[start]), int(passages[end - 1])
                if end - start == 1:
                    info.set_inlined((info._minid,), (float(total),), ())
                else:
                    whole = WHOOSH3_HEADER_MAGIC + b"".join(encoded.blocks(start, end))
                    file.write(whole)
                    info.set_extent(offset, len(whole))
                    offset += len(whole)
                add(prefix + term, info.to_bytes())
    writer.finish_field()


class _Encoded:
    """Postings as the bytes of their blocks, each in the smallest numbers that hold it."""

    def __init__(self, passages: NDArray[np.int32], tf: NDArray[np.int32]) -> None:
        self._passages, self._tf = passages, tf

    def blocks(self, start: int, end: int) -> Iterator[bytes]:
        """Each begins with its length, which is negative for the last one."""
        for first in range(start, end, _BLOCK):
            last = min(first + _BLOCK, end)
            passages, tf = self._passages[first:last], self._tf[first:last]
            steps = np.diff(passages, prepend=0)  # Whoosh counts from 0 in each block
            data = pickle.dumps((_packed(steps), _packed(tf), None), 4)
            about = pickle.dumps((last - first, int(passages[-1]), float(tf.max()), 0, 0, 0), 2)
            length = len(about) + len(data)
            yield pack_int(-length if last == end else length) + about + data


def _packed(numbers: NDArray[np.int32]) -> array[int]:
    highest = int(numbers.max())
    code, kind = ("B", np.uint8) if highest < 1 << 8 else ("H", np.uint16) if highest < 1 << 16 else ("I", np.uint32)
    return array(code, numbers.astype(kind).tobytes())
