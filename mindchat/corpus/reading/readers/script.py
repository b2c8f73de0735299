"""A text that is put together from blocks, with headings and pages remembered.

Owns: the text that formats other than plain text are turned into; offsets count in it. Does not own: any format.
"""

from __future__ import annotations

from mindchat.corpus.reading.encoding import normalise
from mindchat.errors import DocumentError
from mindchat.text.clean import clean_line
from mindchat.values import Chunk

SEPARATOR = " › "
"""Between the parts of a heading path."""
MAX_CHARACTERS = 50_000_000
"""A document with more text than this is no document but an attack, or a database."""


class Script:
    """Collects blocks in reading order; text() and chunks() at the end."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._path: list[tuple[int, str]] = []
        self._stretches: list[list[int]] = []
        self._places: list[tuple[int | None, str]] = []
        self.page: int | None = None
        """Number of the page that following blocks stand on, from 1."""

    def block(self, words: str) -> None:
        """A paragraph, list item or table row; empty ones are nothing."""
        words = normalise(words).strip()
        if not words:
            return
        place = (self.page, SEPARATOR.join(name for _, name in self._path))
        start = self._length + (2 if self._parts else 0)
        self._parts.append(words)
        self._length = start + len(words)
        if self._length > MAX_CHARACTERS:
            raise DocumentError(f"holds more than {MAX_CHARACTERS:,} characters of text")
        if self._places and self._places[-1] == place:
            self._stretches[-1][1] = self._length
        else:
            self._places.append(place)
            self._stretches.append([start, self._length])

    def heading(self, level: int, words: str) -> None:
        """A heading: it stands in the text, and in the path of what follows it."""
        name = clean_line(words, 200)
        if name:
            self._path = [(above, other) for above, other in self._path if above < level] + [(level, name)]
            self.block(name)

    def outline(self, names: list[str]) -> None:
        """Set the path without a heading in the text (PDF bookmarks)."""
        self._path = [(level, clean_line(name, 200)) for level, name in enumerate(names)]

    def text(self) -> str:
        """All blocks, a blank line between two."""
        return "\n\n".join(self._parts)

    def chunks(self) -> list[Chunk]:
        """Stretches of one page and heading path each."""
        return [
            Chunk(start, end, page, heading)
            for (start, end), (page, heading) in zip(self._stretches, self._places, strict=True)
        ]
