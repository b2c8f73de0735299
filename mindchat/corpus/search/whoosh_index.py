"""The index of record: Whoosh's segments on disk, written and read.

Owns: the schema, writing and deleting passages, reading postings back, and a search straight from the postings. Does
not own: which generation is current, locks, passages' texts (registry). Every Whoosh call of the project stands here
and in search.segment.
Postings are read block by block through names that are private to Whoosh, since its public cursor costs three Python
calls a posting; Whoosh is therefore pinned to one version.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from whoosh import columns, fields, formats, index, writing
from whoosh.reading import TermNotFound
from whoosh.writing import SegmentWriter

from mindchat.corpus.search.analyze import Analyzer
from mindchat.corpus.search.bm25f import FIELDS, Params, field_weight, idf, saturate
from mindchat.corpus.search.segment import Postings, write_field
from mindchat.ports import NEVER, Cancel
from mindchat.values import Passage

SEGMENT_POSTINGS = 16_000_000
"""A segment of so many postings is written before more are gathered: about 400 MB while they are sorted."""
SEGMENT_TERMS = 1_000_000
"""And one of so many terms, which take about 200 bytes each: hashes and random words never come twice."""
_SMALL = 5_000
"""Passages of the largest segment that is merged with others, as Whoosh does with small ones."""
_EVERY = 500
"""Terms between two looks at the cancel token."""


_Stored = tuple[bytes, bytes, bytes, int, int]
"""Passage id, document uri, fingerprint, lengths of title and text; ids and uris may hold lone surrogates."""
_pack, _unpack = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(_Stored).decode


class Terms(fields.FieldType):  # type: ignore[misc]
    """A field whose value is already counted: {term: frequency}. Frequencies are kept as posting weights."""

    def __init__(self) -> None:
        super().__init__(formats.Existence(), None, scorable=True)


def make_schema() -> Any:
    """The two searched fields, and what the matrix needs of a passage.

    That is a column, since Whoosh compresses stored fields passage by passage, which takes longer than all else.
    """
    return fields.Schema(title=Terms(), text=Terms(), row=fields.COLUMN(columns.VarBytesColumn()))


def fingerprint(passage: Passage) -> bytes:
    """Eight bytes that change with anything that is indexed of the passage."""
    whole = "\0".join((passage.title, passage.heading, passage.document, passage.text))
    return hashlib.blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def searchable_title(passage: Passage) -> str:
    """Title and heading path: both say what the passage is about."""
    return f"{passage.title} {passage.heading}" if passage.heading else passage.title


class Rows(Struct, frozen=True):
    """What is known of each passage, by Whoosh's document number; deleted ones have live False and length 0."""

    ids: list[str]
    uris: list[str]
    prints: list[bytes]
    live: NDArray[np.bool_]
    lengths: dict[str, NDArray[np.float64]]
    """Per field: number of terms of each passage."""

    def average(self, field: str) -> float:
        """Mean length over the live passages; 0.0 without any."""
        return float(self.lengths[field].sum() / max(int(self.live.sum()), 1))


class Dump(Struct, frozen=True):
    """All postings as parallel arrays, ordered by segment, field and term; a (term, field) may come once a segment."""

    vocabulary: dict[bytes, int]
    """Term → number, in order of appearance."""
    term: NDArray[np.int32]
    field: NDArray[np.int8]
    """Position in FIELDS."""
    passage: NDArray[np.int32]
    """Document number."""
    tf: NDArray[np.int32]


class _SegmentWriter(SegmentWriter):  # type: ignore[misc]
    """Whoosh's writer of one segment, with postings gathered and encoded by search.segment."""

    def __init__(self, opened: Any) -> None:
        super().__init__(opened, limitmb=1)  # of its own pool, which stays empty
        self.postings = {field: Postings() for field in FIELDS}
        self.stop: Cancel = NEVER

    @property
    def large(self) -> bool:
        """Whether more should go into another segment."""
        gathered = self.postings.values()
        return sum(map(len, gathered)) >= SEGMENT_POSTINGS or sum(each.distinct for each in gathered) >= SEGMENT_TERMS

    def add_passage(self, row: bytes, counts: dict[str, Counter[bytes]]) -> None:
        """One passage: what is kept of it, and the terms of each field."""
        rows, number = self.perdocwriter, self.docnum
        rows.start_doc(number)
        rows.add_column_value("row", self.schema["row"].column_type, row)
        for field, found in counts.items():
            self.postings[field].add(number, found)
            rows.add_field(field, self.schema[field], None, found.total())
        rows.finish_doc()
        self.docnum += 1
        self._added = True

    def add_postings_to_pool(self, reader: Any, startdoc: int, docmap: dict[int, int] | None) -> None:
        """Take over a small segment's postings, without those of deleted passages. Called by Whoosh when it merges."""
        place = np.arange(startdoc, startdoc + reader.doc_count_all(), dtype=np.int32)
        if docmap is not None:
            place = np.full(reader.doc_count_all(), -1, np.int32)
            place[list(docmap)] = list(docmap.values())
        for number, ((field, term), info) in enumerate(reader):
            if number % _EVERY == 0:
                self.stop.check()
            for ids, tf in _blocks(reader, field, info) if field in self.postings else ():
                passages = place[ids]
                kept = passages >= 0
                self.postings[field].add_run(term, passages[kept], tf[kept])

    def _flush_segment(self) -> None:
        """Write what was gathered. Called by Whoosh when it commits."""
        self.perdocwriter.close()
        for field in sorted(FIELDS):
            write_field(self.fieldwriter, field, self.schema[field], self.postings[field], self.stop)
        self.fieldwriter.close()


def _merge_small(writer: Any, segments: list[Any]) -> list[Any]:
    """Whoosh's own policy, over segments that are small indeed: a large one would be gathered in memory again."""
    large = [segment for segment in segments if segment.doc_count_all() > _SMALL]
    small = [segment for segment in segments if segment.doc_count_all() <= _SMALL]
    return [*large, *writing.MERGE_SMALL(writer, small)]


class Writer:
    """Adds and deletes passages in one Whoosh folder; nothing is visible before commit()."""

    def __init__(self, folder: Path, analyzer: Analyzer, *, create: bool) -> None:
        self._analyzer = analyzer
        if create:
            folder.mkdir(parents=True, exist_ok=True)
        self._index = index.create_in(folder, make_schema()) if create else index.open_dir(folder)
        self._writer = _SegmentWriter(self._index)
        self._gone: list[int] = []

    def add(self, passage: Passage, cancel: Cancel = NEVER) -> None:
        """Analyse and add one passage; a segment that has become large is written first."""
        if self._writer.large:
            self._write(cancel, merge=False)
            self._writer = _SegmentWriter(self._index)
        title = self._analyzer.counts(searchable_title(passage))
        text = self._analyzer.counts(passage.text)
        row = (_bytes(passage.id), _bytes(passage.document), fingerprint(passage), title.total(), text.total())
        self._writer.add_passage(_pack(row), {"title": title, "text": text})

    def delete(self, numbers: Sequence[int]) -> None:
        """Forget passages by the document number that Record.rows gave."""
        self._gone += numbers

    def commit(self, cancel: Cancel = NEVER) -> None:
        """Write everything. Raises Interrupted soon after `cancel` is set; cancel() is to be called then as well."""
        for number in self._gone:
            self._writer.delete_document(number)
        self._write(cancel, merge=True)
        self._index.close()

    def _write(self, cancel: Cancel, *, merge: bool) -> None:
        self._writer.stop = cancel
        self._writer.commit(mergetype=_merge_small if merge else writing.NO_MERGE)

    def cancel(self) -> None:
        """Drop everything that was not written."""
        self._writer.cancel()
        self._index.close()


class Record:
    """A committed Whoosh folder, for reading."""

    def __init__(self, folder: Path) -> None:
        self._index = index.open_dir(folder)
        self._reader = self._index.reader()
        self._rows: Rows | None = None

    def close(self) -> None:
        """Release the files."""
        self._reader.close()
        self._index.close()

    @property
    def rows(self) -> Rows:
        """Every passage's row; read once."""
        if self._rows is None:
            self._rows = self._read_rows()
        return self._rows

    def _read_rows(self) -> Rows:
        total = self._reader.doc_count_all()
        ids, uris, prints = [""] * total, [""] * total, [b""] * total
        live = np.zeros(total, dtype=np.bool_)
        lengths = {field: np.zeros(total) for field in FIELDS}
        known: dict[bytes, str] = {}
        for leaf, offset in self._reader.leaf_readers():
            if not leaf.doc_count_all():
                continue
            deleted = set(leaf._perdoc.deleted_docs())
            for number, packed in enumerate(leaf.column_reader("row", translate=False), offset):
                if number - offset in deleted:
                    continue
                id_, uri, prints[number], title, text = _unpack(packed)
                ids[number], live[number] = _text(id_), True
                if uri not in known:
                    known[uri] = _text(uri)
                uris[number] = known[uri]
                lengths["title"][number], lengths["text"][number] = title, text
        return Rows(ids, uris, prints, live, lengths)

    def dump(self, cancel: Cancel = NEVER) -> Dump:
        """Every posting of both fields, deleted passages left out. Raises Interrupted soon after `cancel` is set."""
        vocabulary: dict[bytes, int] = {}
        term, field_, length, base = array("i"), array("b"), array("i"), array("i")
        passages, tf = array("i"), array("i")  # an array object for each term would take more than its numbers
        for leaf, offset in self._reader.leaf_readers():
            for number, ((name, text), info) in enumerate(leaf):
                if number % _EVERY == 0:
                    cancel.check()
                if name not in FIELDS:
                    continue
                for ids, weights in _blocks(leaf, name, info):
                    passages.frombytes(ids.tobytes())
                    tf.frombytes(weights.tobytes())
                    term.append(vocabulary.setdefault(text, len(vocabulary)))
                    field_.append(FIELDS.index(name))
                    length.append(len(ids))
                    base.append(offset)
        runs = np.frombuffer(length, np.int32)
        passage = np.frombuffer(passages, np.int32) + np.repeat(np.frombuffer(base, np.int32), runs)
        dump = Dump(
            vocabulary,
            np.repeat(np.frombuffer(term, np.int32), runs),
            np.repeat(np.frombuffer(field_, np.int8), runs),
            passage,
            np.frombuffer(tf, np.int32),
        )
        alive = self.rows.live[passage]
        if alive.all():
            return dump
        return Dump(vocabulary, dump.term[alive], dump.field[alive], passage[alive], dump.tf[alive])

    def postings(self, field: str, term: bytes) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Live passages that have the term in the field, and how often."""
        parts = [_postings(leaf, field, term, offset) for leaf, offset in self._reader.leaf_readers()]
        found = np.concatenate([part[0] for part in parts]) if parts else np.zeros(0, np.int64)
        tf = np.concatenate([part[1] for part in parts]) if parts else np.zeros(0)
        alive = self.rows.live[found]
        return found[alive], tf[alive]

    def holding(self, term: bytes) -> int:
        """How many passages have the term in either field."""
        return len(set().union(*(self.postings(field, term)[0].tolist() for field in FIELDS)))

    def scores(self, terms: Sequence[bytes], params: Params) -> NDArray[np.float64]:
        """BM25F of every passage for distinct terms, straight from the postings: (passages,)."""
        rows = self.rows
        passages, total = int(rows.live.sum()), np.zeros(len(rows.ids))
        for term in terms:
            weight = np.zeros(len(rows.ids))
            for field in FIELDS:
                found, tf = self.postings(field, term)
                weight[found] += field_weight(
                    tf, rows.lengths[field][found], rows.average(field), params.boost(field), params.b
                )
            df = int(np.count_nonzero(weight))
            if df:
                total += idf(df, passages) * saturate(weight, params.k1)
        return total


def _postings(leaf: Any, field: str, term: bytes, offset: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """One term of one segment, deleted passages included."""
    try:
        blocks = list(_blocks(leaf, field, leaf.term_info(field, term)))
    except TermNotFound:
        blocks = []
    passages, tf = _joined([ids for ids, _ in blocks]), _joined([weights for _, weights in blocks])
    return passages.astype(np.int64) + offset, tf.astype(np.float64)


def _blocks(leaf: Any, field: str, info: Any) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """(document numbers, frequencies) of a term of one segment, block by block."""
    if info.is_inlined():
        ids, weights, _ = info.inlined_postings()
        yield np.array(ids, np.int32), np.array(weights, np.int32)
        return
    terms = leaf._terms
    matcher = terms._codec.postings_reader(terms._postfile, info, leaf.schema[field].format)
    while True:
        matcher._read_data()
        steps, tf, _ = matcher._data
        yield np.cumsum(steps, dtype=np.int32), np.array(tf, np.int32)
        if matcher._lastblock:
            return
        matcher._next_block()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(text: bytes) -> str:
    return text.decode("utf-8", "surrogatepass")


def _joined(parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    return np.concatenate(parts) if parts else np.zeros(0, np.int32)
