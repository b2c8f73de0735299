"""The index of record: Whoosh's segments on disk, written and read.

Owns: the schema, writing and deleting passages, reading postings back, and a search straight from the postings. Does
not own: which generation is current, locks, passages' texts (registry). Every Whoosh call of the project stands here.
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

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from whoosh import fields, formats, index
from whoosh.reading import TermNotFound

from mindchat.corpus.search.analyze import Analyzer
from mindchat.corpus.search.bm25f import FIELDS, Params, field_weight, idf, saturate
from mindchat.values import Passage

WRITER_MB = 256
"""Memory that Whoosh's posting pool may fill before it spills to disk."""


class Terms(fields.FieldType):  # type: ignore[misc]
    """A field whose value is already counted: {term: frequency}. Frequencies are kept as posting weights."""

    def __init__(self) -> None:
        super().__init__(formats.Existence(), None, scorable=True)

    def index(self, value: Counter[bytes], **_: Any) -> Iterator[tuple[bytes, int, float, bytes]]:
        """(term, frequency, weight, no further value) for each term."""
        for term, count in value.items():
            yield term, count, float(count), b""


def make_schema() -> Any:
    """id, the two searched fields, and what the matrix needs of a passage."""
    return fields.Schema(id=fields.ID(stored=True, unique=True), title=Terms(), text=Terms(), row=fields.STORED())


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
    """All postings as parallel arrays, ordered by segment and term; a (term, field) may come once a segment."""

    vocabulary: dict[bytes, int]
    """Term → number, in order of appearance."""
    term: NDArray[np.int64]
    field: NDArray[np.int8]
    """Position in FIELDS."""
    passage: NDArray[np.int64]
    """Document number."""
    tf: NDArray[np.float64]


class _Lengths:
    """Lengths of a segment's passages, as Whoosh asks for them while it writes: once a posting, hence read once a
    passage and kept.
    """

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self._known: dict[str, list[int | None]] = {}

    def doc_field_length(self, number: int, field: str) -> int | None:
        """As the reader gives it."""
        known = self._known.get(field)
        if known is None:
            ask = self._reader.doc_field_length
            known = self._known[field] = [ask(at, field) for at in range(self._reader.doc_count_all())]
        return known[number]

    def close(self) -> None:
        """Release the reader's files."""
        self._reader.close()


class Writer:
    """Adds and deletes passages in one Whoosh folder; nothing is visible before commit()."""

    def __init__(self, folder: Path, analyzer: Analyzer, *, create: bool) -> None:
        self._analyzer = analyzer
        if create:
            folder.mkdir(parents=True, exist_ok=True)
        self._index = index.create_in(folder, make_schema()) if create else index.open_dir(folder)
        self._writer = self._index.writer(limitmb=WRITER_MB)
        read = self._writer.per_document_reader
        self._writer.per_document_reader = lambda: _Lengths(read())

    def add(self, passage: Passage) -> None:
        """Analyse and add one passage."""
        title = self._analyzer.counts(searchable_title(passage))
        text = self._analyzer.counts(passage.text)
        row = (passage.document, fingerprint(passage), sum(title.values()), sum(text.values()))
        self._writer.add_document(id=passage.id, title=title, text=text, row=row)

    def delete(self, numbers: Sequence[int]) -> None:
        """Forget passages by the document number that Record.rows gave."""
        for number in numbers:
            self._writer.delete_document(number)

    def commit(self) -> None:
        """Write everything."""
        self._writer.commit()
        self._index.close()

    def cancel(self) -> None:
        """Drop everything."""
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
        for number, stored in self._reader.iter_docs():
            uri, print_, title, text = stored["row"]
            ids[number], uris[number], prints[number], live[number] = stored["id"], uri, print_, True
            lengths["title"][number], lengths["text"][number] = title, text
        return Rows(ids, uris, prints, live, lengths)

    def dump(self) -> Dump:
        """Every posting of both fields, deleted passages left out."""
        vocabulary: dict[bytes, int] = {}
        term, field_, length, base = array("q"), array("b"), array("q"), array("q")
        passage, tf = array("q"), array("f")
        for leaf, offset in self._reader.leaf_readers():
            for (name, text), info in leaf:
                if name not in FIELDS:
                    continue
                before = len(passage)
                for ids, weights in _blocks(leaf, name, info):
                    passage.extend(ids)
                    tf.extend(weights)
                term.append(vocabulary.setdefault(text, len(vocabulary)))
                field_.append(FIELDS.index(name))
                length.append(len(passage) - before)
                base.append(offset)
        runs = np.array(length, np.int64)
        passages = np.array(passage, np.int64) + np.repeat(np.array(base, np.int64), runs)
        alive = self.rows.live[passages]
        return Dump(
            vocabulary,
            np.repeat(np.array(term, np.int64), runs)[alive],
            np.repeat(np.array(field_, np.int8), runs)[alive],
            passages[alive],
            np.array(tf, np.float64)[alive],
        )

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
    passage, tf = array("q"), array("f")
    try:
        info = leaf.term_info(field, term)
    except TermNotFound:
        info = None
    for ids, weights in _blocks(leaf, field, info) if info is not None else ():
        passage.extend(ids)
        tf.extend(weights)
    return np.array(passage, np.int64) + offset, np.array(tf, np.float64)


def _blocks(leaf: Any, field: str, info: Any) -> Iterator[tuple[Sequence[int], Sequence[float]]]:
    """(document numbers, weights) of a term of one segment, block by block."""
    if info.is_inlined():
        ids, weights, _ = info.inlined_postings()
        yield ids, weights
        return
    terms = leaf._terms
    matcher = terms._codec.postings_reader(terms._postfile, info, leaf.schema[field].format)
    while True:
        matcher._read_ids()
        matcher._read_weights()
        yield matcher._ids, matcher._weights
        if matcher._lastblock:
            return
        matcher._next_block()
