"""Plain text and source code.

Owns: their titles, and refusing minified or secret content. Does not own: encodings (decode).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from mindchat.corpus.reading.encoding import read_text
from mindchat.corpus.reading.readers import READERS, BaseReader, Complain, title_of
from mindchat.errors import DocumentError
from mindchat.values import Chunk, Document

_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_LONG_LINE = 1000
"""Mean characters a line above which source code was written by a machine for a machine."""


def refuse_secrets(text: str, name: str) -> None:
    """Raise DocumentError for a private key, whatever the file is called."""
    if _PRIVATE_KEY.search(text, 0, 4096):
        raise DocumentError(f"{name}: holds a private key; never indexed.")


class TextReader(BaseReader):
    """A text file is one document; its name is the title."""

    suffixes = frozenset(suffix for suffix, target in READERS.own.items() if target.endswith(":TextReader"))
    simple = True

    def read(
        self, path: Path, *, complain: Complain | None = None
    ) -> Iterator[tuple[Document, Sequence[Chunk] | None]]:
        """One document, structure left to the chunker."""
        text = read_text(path)
        refuse_secrets(text, path.name)
        yield self.document(path, title_of(path), text), None


class CodeReader(BaseReader):
    """Source code is text whose title keeps the suffix; minified code is refused."""

    suffixes = frozenset(suffix for suffix, target in READERS.own.items() if target.endswith(":CodeReader"))
    simple = True

    def read(
        self, path: Path, *, complain: Complain | None = None
    ) -> Iterator[tuple[Document, Sequence[Chunk] | None]]:
        """One document, structure left to the chunker."""
        text = read_text(path)
        refuse_secrets(text, path.name)
        if len(text) > _LONG_LINE * (text.count("\n") + 1):
            raise DocumentError(f"{path.name}: looks minified or generated (very long lines).")
        yield self.document(path, path.name, text), None
