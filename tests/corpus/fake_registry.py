"""ports.Registry in memory: small, strict, and the behaviour that every implementation must show."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence

from msgspec import Struct

from mindchat.document_ports import Outcome
from mindchat.ports import NEVER, Cancel
from mindchat.values import Chunk, Document, Passage


class Row(Struct, frozen=True):
    document: Document
    chunks: tuple[Chunk, ...]

    uri = property(lambda self: self.document.uri)
    title = property(lambda self: self.document.title)
    sha256 = property(lambda self: hashlib.sha256(self.document.text.encode("utf-8", "surrogatepass")).hexdigest())
    mtime_ns = property(lambda self: self.document.mtime_ns)
    size = property(lambda self: self.document.size)
    passages = property(lambda self: len(self.chunks))
    collection = property(lambda self: self.document.collection)


class FakeRegistry:
    """Documents by uri, in order of arrival."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.puts: list[int] = []

    def put(self, batch: Sequence[tuple[Document, Sequence[Chunk]]], cancel: Cancel = NEVER) -> Sequence[Outcome]:
        arriving = {document.uri for document, _ in batch}
        assert len(arriving) == len(batch), "a batch names a document twice"
        for document, chunks in batch:
            for chunk in chunks:
                assert 0 <= chunk.start < chunk.end <= len(document.text), (document.uri, chunk)
        self.puts.append(len(batch))
        return [self._put_one(document, tuple(chunks), arriving) for document, chunks in batch]

    def _put_one(self, document: Document, chunks: tuple[Chunk, ...], arriving: set[str]) -> Outcome:
        row, old = Row(document, chunks), self.rows.get(document.uri)
        if old is None:
            same_text = [other for other in self.rows.values() if other.document.text == document.text]
            moved = next((other.uri for other in same_text if self._moved(other, row, arriving)), None)
            if moved is not None:
                del self.rows[moved]
            self.rows[document.uri] = row
            return "moved" if moved is not None else "added"
        self.rows[document.uri] = row
        same = (old.sha256, old.title, old.chunks, old.collection) == (
            row.sha256,
            row.title,
            row.chunks,
            row.collection,
        )
        return "unchanged" if same else "updated"

    @staticmethod
    def _moved(other: Row, row: Row, arriving: set[str]) -> bool:
        same = (other.collection, other.document.external_id) == (row.collection, row.document.external_id)
        path = other.uri.removesuffix(f"#{other.document.external_id}")
        return same and other.uri not in arriving and os.path.isabs(path) and not os.path.exists(path)

    def remove(self, uris: Sequence[str]) -> int:
        return sum(self.rows.pop(uri, None) is not None for uri in uris)

    def documents(self, collection: str | None = None) -> Iterator[Row]:
        return iter([self.rows[uri] for uri in sorted(self.rows) if collection in (None, self.rows[uri].collection)])

    def passages(self, collection: str | None = None) -> Iterator[Passage]:
        for row in list(self.rows.values()):
            if collection in (None, row.collection):
                yield from _passages(row)

    def passage(self, id: str) -> Passage | None:
        return next((passage for passage in self.passages() if passage.id == id), None)

    def places(self, id: str) -> tuple[str, ...]:
        wanted = self.passage(id)
        return tuple(dict.fromkeys(p.document for p in self.passages() if wanted is not None and p.text == wanted.text))

    def text(self, uri: str) -> str | None:
        return self.rows[uri].document.text if uri in self.rows else None

    def count(self, collection: str | None = None) -> tuple[int, int]:
        rows = [row for row in self.rows.values() if collection in (None, row.collection)]
        return len(rows), sum(len(row.chunks) for row in rows)


def _passages(row: Row) -> Iterator[Passage]:
    document = row.document
    for ordinal, chunk in enumerate(row.chunks):
        if document.external_id is not None and len(row.chunks) == 1:
            id_ = document.external_id
        else:
            id_ = f"{document.external_id or hashlib.sha1(document.uri.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}-{ordinal}"
        text = document.text[chunk.start : chunk.end]
        yield Passage(
            id_, document.uri, document.title, text, chunk.start, chunk.end, page=chunk.page, heading=chunk.heading
        )
