"""The document registry: decoded texts and their chunks in memory.db, the truth from which index and citations derive.

Owns: ports.Registry on SQLite: insertion, change, move, removal, and telling evidence what became of its quotes.
Does not own: reading files and chunking (corpus), or what a fact is (facts.py); facts follow by the schema's triggers.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from mindchat.document_ports import Outcome
from mindchat.ports import NEVER, Cancel
from mindchat.storage import relocation
from mindchat.storage.clock import now
from mindchat.storage.migrations import MEMORY, open_store
from mindchat.storage.sqlite_file import Store, sqlite3
from mindchat.text.clean import clean_line
from mindchat.text.folding import fold
from mindchat.values import Chunk, Document, Fact, Passage

_CACHED_TEXTS = 256
_PAGE = 500
_LARGE = 1_000_000
"""Characters."""
_INSERT = """INSERT INTO document(uri, external_id, collection, title, text_z, sha256, mtime_ns, size, indexed_at)
             VALUES(?,?,?,?,?,?,?,?,?)"""
_CHUNK = (
    "INSERT INTO chunk(document_id, sha256, ordinal, passage, char_start, char_end, page, heading)"
    " VALUES(?,?,?,?,?,?,?,?)"
)


class StoredDocument(Struct, frozen=True):
    """One row of the registry (ports.Stored)."""

    uri: str
    title: str
    sha256: str
    mtime_ns: int
    size: int
    passages: int
    collection: str


def source_file(uri: str, external_id: str | None) -> str:
    """The path of the file behind a document; lines of a corpus file are path#id."""
    return uri.removesuffix(f"#{external_id}") if external_id is not None else uri


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _passage_id(document: Document, ordinal: int, several: bool) -> str:
    if document.external_id is not None and not several:
        return document.external_id
    stem = document.external_id or hashlib.sha1(document.uri.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{stem}-{ordinal}"


class DocumentRegistry:
    """ports.Registry in memory.db. Safe to use from several threads."""

    def __init__(self, path: Path | Store) -> None:
        self.store = path if isinstance(path, Store) else open_store(path, MEMORY)
        self._texts: OrderedDict[int, tuple[int, str]] = OrderedDict()
        self._withdrawn: list[Fact] = []

    # ── writing
    # ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, batch: Sequence[tuple[Document, Sequence[Chunk]]], cancel: Cancel = NEVER) -> Sequence[Outcome]:
        """Insert or update documents in one transaction; facts of vanished text are withdrawn by the cascade, moved
        text keeps them.

        Unchanged: same text at the same uri. Moved: same text at a new uri whose old file is gone. Raises
        MemoryStoreError, and Interrupted soon after `cancel` is set; then nothing of the batch is stored.
        """
        arriving = {document.uri for document, _ in batch}
        with self.store.write() as connection:
            outcomes = [self._put_one(connection, document, chunks, arriving, cancel) for document, chunks in batch]
        return outcomes

    def _put_one(
        self,
        connection: sqlite3.Connection,
        document: Document,
        chunks: Sequence[Chunk],
        arriving: set[str],
        cancel: Cancel,
    ) -> Outcome:
        cancel.check()
        sha = _sha(document.text)
        row = connection.execute("SELECT * FROM document WHERE uri=?", (document.uri,)).fetchone()
        if row is None and (row := self._origin_of_move(connection, document, sha, arriving)) is not None:
            self._refresh(connection, row, document, chunks, sha, cancel)
            return "moved"
        if row is None:
            self._insert(connection, document, chunks, sha, cancel)
            return "added"
        same = row["sha256"] == sha and row["status"] == "active" and row["title"] == document.title
        if same and row["collection"] == document.collection and self._same_chunks(connection, row["id"], chunks):
            if (row["mtime_ns"], row["size"]) != (document.mtime_ns, document.size):
                connection.execute(
                    "UPDATE document SET mtime_ns=?, size=? WHERE id=?", (document.mtime_ns, document.size, row["id"])
                )
            return "unchanged"
        self._refresh(connection, row, document, chunks, sha, cancel)
        return "added" if row["status"] == "deleted" else "updated"

    def _insert(
        self, connection: sqlite3.Connection, document: Document, chunks: Sequence[Chunk], sha: str, cancel: Cancel
    ) -> None:
        packed = _packed(document.text)
        values = (
            document.uri,
            document.external_id,
            document.collection,
            document.title,
            packed,
            sha,
            document.mtime_ns,
            document.size,
            now(),
        )
        key = connection.execute(_INSERT, values).lastrowid
        taken = self._taken(connection, document, int(key or 0))
        rows = (self._chunk_row(key, document, chunk, i, len(chunks), taken) for i, chunk in _heard(chunks, cancel))
        connection.executemany(_CHUNK, rows)

    @staticmethod
    def _taken(connection: sqlite3.Connection, document: Document, key: int) -> bool:
        """Whether another document of the collection has passages under this one's foreign id: two corpora may both
        count from 1.
        """
        if document.external_id is None:
            return False
        sql = """SELECT 1 FROM chunk c JOIN document d ON d.id=c.document_id
                 WHERE c.passage IN (?, ?) AND d.collection=? AND d.id<>? LIMIT 1"""
        names = (document.external_id, f"{document.external_id}-0")
        return connection.execute(sql, (*names, document.collection, key)).fetchone() is not None

    @staticmethod
    def _chunk_row(
        key: Any, document: Document, chunk: Chunk, ordinal: int, total: int, taken: bool
    ) -> tuple[Any, ...]:
        sha = _sha(fold(document.text[chunk.start : chunk.end]))
        id_ = _passage_id(document, ordinal, total > 1)
        return key, sha, ordinal, f"{id_}~{key}" if taken else id_, chunk.start, chunk.end, chunk.page, chunk.heading

    @staticmethod
    def _same_chunks(connection: sqlite3.Connection, key: int, chunks: Sequence[Chunk]) -> bool:
        rows = connection.execute(
            "SELECT char_start, char_end FROM chunk WHERE document_id=? AND status='active' ORDER BY ordinal", (key,)
        )
        return [tuple(row) for row in rows] == [(chunk.start, chunk.end) for chunk in chunks]

    @staticmethod
    def _origin_of_move(connection: sqlite3.Connection, document: Document, sha: str, arriving: set[str]) -> Any:
        # INDEXED BY: without statistics SQLite would walk the whole collection.
        sql = (
            "SELECT * FROM document INDEXED BY document_sha WHERE sha256=? AND collection=? AND external_id IS ? ORDER"
            " BY status, id"
        )
        for row in connection.execute(sql, (sha, document.collection, document.external_id)).fetchall():
            old = source_file(row["uri"], row["external_id"])
            if row["uri"] not in arriving and (
                row["status"] == "deleted" or (os.path.isabs(old) and not os.path.exists(old))
            ):
                return row
        return None

    def _refresh(
        self,
        connection: sqlite3.Connection,
        row: Any,
        document: Document,
        chunks: Sequence[Chunk],
        sha: str,
        cancel: Cancel,
    ) -> None:
        """Give a stored document its new text, place and chunks; chunks whose text still occurs keep their row."""
        key = int(row["id"])
        before = relocation.dependent_facts(connection, key)
        packed = _packed(document.text)
        connection.execute(
            "UPDATE document SET uri=?, external_id=?, collection=?, title=?, text_z=?, sha256=?,"
            " generation=generation+1, status='active', mtime_ns=?, size=?, indexed_at=? WHERE id=?",
            (
                document.uri,
                document.external_id,
                document.collection,
                document.title,
                packed,
                sha,
                document.mtime_ns,
                document.size,
                now(),
                key,
            ),
        )
        old: dict[str, list[int]] = {}
        for chunk in connection.execute(
            "SELECT id, sha256 FROM chunk WHERE document_id=? ORDER BY status, ordinal", (key,)
        ).fetchall():
            old.setdefault(chunk["sha256"], []).append(chunk["id"])
        taken = self._taken(connection, document, key)
        for ordinal, chunk in _heard(chunks, cancel):
            values = self._chunk_row(key, document, chunk, ordinal, len(chunks), taken)
            if kept := old.get(values[1]):
                connection.execute(
                    "UPDATE chunk SET ordinal=?, passage=?, char_start=?, char_end=?, page=?, heading=?,"
                    " status='active' WHERE id=?",
                    (*values[2:], kept.pop(0)),
                )
            else:
                connection.execute(_CHUNK, values)
        gone = [(chunk,) for left in old.values() for chunk in left]
        connection.executemany("UPDATE chunk SET status='gone' WHERE id=? AND status='active'", gone)
        self._withdrawn += relocation.after_change(connection, key, document, before)
        connection.executemany(
            "DELETE FROM chunk WHERE id=? AND NOT EXISTS(SELECT 1 FROM evidence WHERE chunk_id=chunk.id)", gone
        )
        self._texts.pop(key, None)

    def remove(self, uris: Sequence[str]) -> int:
        """Forget documents (and withdraw what was learned from them only) in one transaction; how many were there."""
        removed = 0
        with self.store.write() as connection:
            for uri in uris:
                row = connection.execute(
                    "SELECT id, title FROM document WHERE uri=? AND status='active'", (uri,)
                ).fetchone()
                if row is None:
                    continue
                key, before = int(row["id"]), relocation.dependent_facts(connection, int(row["id"]))
                # The text goes now; the row stays while evidence names it, so that the same text coming back revives
                # its facts.
                connection.execute(
                    "UPDATE document SET status='deleted', text_z=x'', generation=generation+1 WHERE id=?", (key,)
                )
                self._withdrawn += relocation.withdrawn(
                    connection, before, f"{clean_line(Path(uri).name, 60)} was removed"
                )
                connection.execute(
                    "DELETE FROM chunk WHERE document_id=? AND NOT EXISTS(SELECT 1 FROM evidence WHERE"
                    " chunk_id=chunk.id)",
                    (key,),
                )
                connection.execute(
                    "DELETE FROM document WHERE id=? AND NOT EXISTS(SELECT 1 FROM evidence WHERE"
                    " document_id=document.id)",
                    (key,),
                )
                self._texts.pop(key, None)
                removed += 1
        return removed

    def take_withdrawn(self) -> tuple[Fact, ...]:
        """Facts that changed or removed documents have withdrawn since the last call, for FactsWithdrawn."""
        taken, self._withdrawn = tuple(self._withdrawn), []
        return taken

    # ── reading
    # ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def documents(self, collection: str | None = None) -> Iterator[StoredDocument]:
        """All active documents, by uri."""
        sql = """SELECT uri, title, sha256, mtime_ns, size, collection,
                        (SELECT count(*) FROM chunk c WHERE c.document_id=d.id AND c.status='active') AS passages
                 FROM document d WHERE status='active' AND uri > ? AND (? IS NULL OR collection=?) ORDER BY uri LIMIT ?"""
        last = ""
        while rows := self.store.rows(sql, (last, collection, collection, _PAGE)):
            for row in rows:
                yield StoredDocument(
                    row["uri"],
                    row["title"],
                    row["sha256"],
                    row["mtime_ns"] or 0,
                    row["size"] or 0,
                    row["passages"],
                    row["collection"],
                )
            last = rows[-1]["uri"]

    def passages(self, collection: str | None = None) -> Iterator[Passage]:
        """All active passages in order of arrival and place, streamed: what the index is built from."""
        sql = (
            "SELECT id, uri, title, text_z FROM document WHERE status='active' AND id > ? AND (? IS NULL OR"
            " collection=?) ORDER BY id LIMIT ?"
        )
        chunks = (
            "SELECT document_id, passage, char_start, char_end, page, heading FROM chunk"
            " WHERE status='active' AND document_id BETWEEN ? AND ? ORDER BY document_id, ordinal"
        )
        last = 0
        while rows := self.store.rows(sql, (last, collection, collection, _PAGE)):
            found: dict[int, list[Any]] = {}
            for chunk in self.store.rows(chunks, (rows[0]["id"], rows[-1]["id"])):
                found.setdefault(chunk["document_id"], []).append(chunk)
            for row in rows:
                text = unpack(row["text_z"]) if row["id"] in found else ""
                for chunk in found.get(row["id"], ()):
                    yield to_passage(row, chunk, text)
            last = rows[-1]["id"]

    def passage(self, id: str) -> Passage | None:
        """One passage by id; if several corpora hold it, the one that came first."""
        sql = """SELECT c.*, d.uri, d.title, d.generation FROM chunk c JOIN document d ON d.id=c.document_id
                 WHERE c.passage=? AND c.status='active' AND d.status='active' ORDER BY c.id LIMIT 1"""
        row = self.store.row(sql, (id,))
        return None if row is None else to_passage(row, row, self._text(row["document_id"], row["generation"]))

    def places(self, id: str) -> tuple[str, ...]:
        """Uris of the collection's documents that hold the text of a passage, case and blanks aside; in order of
        arrival.
        """
        sql = """SELECT DISTINCT o.uri FROM chunk c JOIN document d ON d.id=c.document_id JOIN chunk t ON t.sha256=c.sha256
                 JOIN document o ON o.id=t.document_id AND o.collection=d.collection
                 WHERE c.passage=? AND c.status='active' AND d.status='active' AND t.status='active' AND o.status='active' ORDER BY o.id"""
        return tuple(row["uri"] for row in self.store.rows(sql, (id,)))

    def text(self, uri: str) -> str | None:
        """A document's decoded text."""
        row = self.store.row("SELECT id, generation FROM document WHERE uri=? AND status='active'", (uri,))
        return None if row is None else self._text(row["id"], row["generation"])

    def _text(self, key: int, generation: int) -> str:
        held = self._texts.get(key)
        if held is not None and held[0] == generation:  # another process may have changed the document
            return held[1]
        text = unpack(self.store.value("SELECT text_z FROM document WHERE id=?", (key,)))
        self._texts[key] = (generation, text)
        while len(self._texts) > _CACHED_TEXTS:
            self._texts.popitem(last=False)
        return text

    def count(self, collection: str | None = None) -> tuple[int, int]:
        """(documents, passages)."""
        documents = self.store.value(
            "SELECT count(*) FROM document WHERE status='active' AND (? IS NULL OR collection=?)",
            (collection, collection),
        )
        sql = """SELECT count(*) FROM chunk c JOIN document d ON d.id=c.document_id
                 WHERE c.status='active' AND d.status='active' AND (? IS NULL OR d.collection=?)"""
        return int(documents), int(self.store.value(sql, (collection, collection)))

    def take_notices(self) -> list[str]:
        """What was repaired or found damaged in the file since the last call (ports.TellsRepairs)."""
        return self.store.take_notices()

    def close(self) -> None:
        """Close all connections."""
        self.store.close()


def _heard(chunks: Sequence[Chunk], cancel: Cancel) -> Iterator[tuple[int, Chunk]]:
    for number, chunk in enumerate(chunks):
        if number % _PAGE == 0:
            cancel.check()
        yield number, chunk


def _packed(text: str) -> bytes:
    """A text as it is stored: a large one with less effort, which takes a tenth more room and a quarter of the time."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 6 if len(text) < _LARGE else 1)


def unpack(packed: bytes) -> str:
    """A stored text; "" for a removed document's."""
    return zlib.decompress(packed).decode("utf-8", "surrogatepass") if packed else ""


def to_passage(document: Any, chunk: Any, text: str) -> Passage:
    """A Passage from rows of document and chunk and the document's text."""
    start, end = chunk["char_start"], chunk["char_end"]
    return Passage(
        chunk["passage"],
        document["uri"],
        document["title"],
        text[start:end],
        start,
        end,
        page=chunk["page"],
        heading=chunk["heading"] or "",
    )
