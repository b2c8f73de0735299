"""One reader a format, found by the file's suffix.

Owns: the table, and the base that readers share. Does not own: which files are read (walk), passages' size (chunk). A
reader yields documents with their structure: stretches with page and heading, which the chunker refines, or None for
plain text. Entries are "module:Class"; a reader's library is imported when the first file of its kind is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any

from mindchat.plugins import Table, resolve
from mindchat.text.clean import clean_line
from mindchat.values import Chunk, Document

Complain = Callable[[str], None]
"""Told about a part of a file that cannot be read while the rest can."""

_TEXT = "mindchat.corpus.reading.readers.text:TextReader"
_CODE = "mindchat.corpus.reading.readers.text:CodeReader"

_SOURCE = """
.py .pyi .js .mjs .ts .tsx .jsx .java .kt .c .h .cc .cpp .hpp .cs .go .rs .rb .php .pl .lua .r .jl .scala .swift .m .sh .bash .zsh .ps1 .sql
.hs .ml .clj .ex .exs .erl .dart .f90 .toml .ini .cfg .yaml .yml .css .scss .vue .proto .tf .mk .cmake .diff .patch
"""

READERS = Table(
    "mindchat.readers",
    {
        **dict.fromkeys((".txt", ".text", ".log", ".tex", ".org", ".adoc", ".srt", ".vtt"), _TEXT),
        **dict.fromkeys(
            (".md", ".markdown", ".mdown", ".mkd"), "mindchat.corpus.reading.readers.markdown:MarkdownReader"
        ),
        **dict.fromkeys((".jsonl", ".ndjson"), "mindchat.corpus.reading.readers.jsonl:JsonLinesReader"),
        **dict.fromkeys((".html", ".htm", ".xhtml"), "mindchat.corpus.reading.readers.html:HtmlReader"),
        **dict.fromkeys((".rst", ".rest"), "mindchat.corpus.reading.readers.rst:RstReader"),
        **dict.fromkeys((".csv", ".tsv", ".tab"), "mindchat.corpus.reading.readers.tables:TableReader"),
        ".json": "mindchat.corpus.reading.readers.tables:JsonReader",
        ".pdf": "mindchat.corpus.reading.readers.pdf:PdfReader",
        ".docx": "mindchat.corpus.reading.readers.office:DocxReader",
        **dict.fromkeys((".xlsx", ".xlsm"), "mindchat.corpus.reading.readers.sheets:WorkbookReader"),
        ".pptx": "mindchat.corpus.reading.readers.slides:SlidesReader",
        ".odt": "mindchat.corpus.reading.readers.office:OdtReader",
        ".epub": "mindchat.corpus.reading.readers.office:EpubReader",
        ".eml": "mindchat.corpus.reading.readers.mail:MailReader",
        ".mbox": "mindchat.corpus.reading.readers.mail:MailboxReader",
        **dict.fromkeys(_SOURCE.split(), _CODE),
    },
)
"""Suffix, lower case, with its dot → reader."""


class BaseReader:
    """What most readers need: the document's outer data from its file."""

    suffixes: frozenset[str] = frozenset()
    whole = False
    """Whether each document is one passage, however long."""
    streams = False
    """Whether the file is read piece by piece, so that no size is too large."""

    simple = False
    """Whether reading is plain decoding, safe in this process; other formats are read in a worker that can be killed.
    """

    def read(
        self, path: Path, *, complain: Complain | None = None
    ) -> Iterator[tuple[Document, Sequence[Chunk] | None]]:
        """See ports.Reader; `complain` is told of unreadable parts."""
        raise NotImplementedError

    def document(self, path: Path, title: str, text: str) -> Document:
        """A document of the whole file."""
        status = path.stat()
        return Document(
            str(path), clean_line(title, 300) or title_of(path), text, mtime_ns=status.st_mtime_ns, size=status.st_size
        )


def title_of(path: PurePath) -> str:
    """A file's name as a title."""
    return clean_line(path.stem.replace("_", " "), 300) or "untitled"


def reader_for(path: Path) -> Any:
    """A reader (ports.Reader) for the file, None if its type is not supported."""
    target = READERS.get(path.suffix.lower())
    if target is None:
        return None
    return resolve(target)()
