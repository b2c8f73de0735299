"""Reading one file after the other, whatever is in them.

Owns: choosing the reader, and turning everything that goes wrong into complaints. Does not own: formats (readers).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

from msgspec import Struct

from mindchat.clean import clean_line
from mindchat.config import IndexSection
from mindchat.corpus.readers import reader_for
from mindchat.errors import DocumentError
from mindchat.ports import Cancel
from mindchat.values import Chunk, Document


class Entry(Struct, frozen=True):
    """One document of a file."""

    document: Document
    chunks: Sequence[Chunk] | None
    whole: bool
    """Whether `chunks` are passages already."""


class Complaint(Struct, frozen=True):
    """A part of a file that cannot be read; the rest goes on."""

    reason: str


class Reading:
    """A context in which files are read one by one."""

    def __init__(self, section: IndexSection, cancel: Cancel) -> None:
        self.section, self.cancel = section, cancel

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None

    def read(self, path: Path) -> Iterator[Entry | Complaint]:
        """Documents and complaints of one file, in order. Raises DocumentError if nothing more can be read of it."""
        yield from read_here(path)


def read_here(path: Path) -> Iterator[Entry | Complaint]:
    """Read in this process. Complaints come before the document after them."""
    reader = reader_for(path)
    if reader is None:
        raise DocumentError(f"{path.name}: its type is not supported.")
    waiting: list[str] = []
    documents = reader.read(path, complain=waiting.append)
    while True:
        try:
            found = next(documents, None)
        except DocumentError:
            yield from _complaints(waiting)
            raise
        yield from _complaints(waiting)
        if found is None:
            return
        document, chunks = found
        yield Entry(document, chunks, reader.whole)


def _complaints(waiting: list[str]) -> Iterator[Complaint]:
    yield from [Complaint(clean_line(reason, 300)) for reason in waiting]
    waiting.clear()
