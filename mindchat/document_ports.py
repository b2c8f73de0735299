"""Sockets for documents: what reads a file, and the registry from which index and citations derive.

Owns: these protocols. Does not own: the others (ports), any implementation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, Protocol

from mindchat.ports import NEVER, Cancel
from mindchat.values import Chunk, Document, Passage


class Stored(Protocol):
    """One row of the registry."""

    @property
    def uri(self) -> str:
        """See Document.uri."""
        ...

    @property
    def title(self) -> str:
        """See Document.title."""
        ...

    @property
    def sha256(self) -> str:
        """Of the text."""
        ...

    @property
    def mtime_ns(self) -> int:
        """Of the source file."""
        ...

    @property
    def size(self) -> int:
        """Of the source file, bytes."""
        ...

    @property
    def passages(self) -> int:
        """How many it has."""
        ...

    @property
    def collection(self) -> str:
        """The collection it belongs to."""
        ...


Outcome = Literal["added", "updated", "moved", "unchanged"]


class Registry(Protocol):
    """Documents, their decoded texts and their chunks: the truth from which index and citations derive."""

    def put(self, batch: Sequence[tuple[Document, Sequence[Chunk]]], cancel: Cancel = NEVER) -> Sequence[Outcome]:
        """Insert or update documents in one transaction; facts of vanished text are withdrawn by the cascade.

        Raises Interrupted soon after `cancel` is set; then nothing of the batch is stored.
        """
        ...

    def remove(self, uris: Sequence[str]) -> int:
        """Forget documents (and withdraw what was learned from them only); how many were there."""
        ...

    def documents(self, collection: str | None = None) -> Iterator[Stored]:
        """All active documents, by uri."""
        ...

    def passages(self, collection: str | None = None) -> Iterator[Passage]:
        """All active passages, in a stable order: what the index is built from."""
        ...

    def passage(self, id: str) -> Passage | None:
        """One passage by id."""
        ...

    def places(self, id: str) -> tuple[str, ...]:
        """Uris of all documents of the same collection that hold the text of a passage; () for an unknown id."""
        ...

    def text(self, uri: str) -> str | None:
        """A document's decoded text."""
        ...

    def count(self, collection: str | None = None) -> tuple[int, int]:
        """(documents, passages)."""
        ...


class Reader(Protocol):
    """Turns one file into documents."""

    suffixes: frozenset[str]

    def read(self, path: Path) -> Iterator[tuple[Document, Sequence[Chunk] | None]]:
        """Documents of the file; chunks None: let the chunker decide. Raises DocumentError with the reason."""
        ...
