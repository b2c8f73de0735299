"""Cutting a document's text into passages: along its structure, then paragraphs, then sentences, within a budget of words,
or of tokens of the model that will read them.

Owns: where passages start and end; document.text[start:end] is the passage, to the character. Does not own: what a heading or a page is
(readers say so), ids (the registry gives them).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from mindchat.values import Chunk

_PARAGRAPH = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_SENTENCE = re.compile(  # an end mark, then space and no lower-case letter; each run of marks is tried once, so that time stays linear
    r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+(?=\s+[\"'“‘«(\[]*[^\W\d_a-zß-öø-ÿ]|\s+[\"'“‘«(\[]*\d|\s*\n)"
    r"|[。！？]+[」』”’）]*"
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|Gen|Col|Capt|Lt|Sgt|Rev|Hon|vs|etc|No|Nr|Vol|Fig|Eq|cf|ca|al|approx|[A-Z])|\b[a-z]\.[a-z])\.$"
)
_WORD = re.compile(r"\S+")
_DENSE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0eff]")


def count_words(text: str) -> int:
    """Words, as an estimate of tokens: what stands between spaces; in scripts without spaces two characters count as a word."""
    words = len(_WORD.findall(text))
    return words if text.isascii() else words + len(_DENSE.findall(text)) // 2


class _Unit(Struct, frozen=True):
    """A sentence, or a part of one that is too long."""

    start: int
    end: int
    words: int
    opens: bool
    """Whether a paragraph starts here."""


class Chunker:
    """Cuts to at most `words` words, as `count` counts them; never across the boundaries that a reader gave.

    `count` may be a tokenizer: then `words` is a number of tokens. It is asked sentence by sentence, so a passage's tokens may be a few more
    or fewer than counted (tokenizers join across the space between sentences).
    """

    def __init__(self, words: int = 160, count: Callable[[str], int] = count_words) -> None:
        self.words, self._count = words, count

    def split(self, text: str, structure: Sequence[Chunk] | None = None) -> list[Chunk]:
        """Passages in text order, none empty, none overlapping. `structure`: stretches with their page and heading; None: the whole text."""
        found = []
        for part in structure if structure is not None else (Chunk(0, len(text)),):
            for start, end in self._pack(list(self._units(text, part.start, part.end))):
                found.append(Chunk(start, end, part.page, part.heading))
        return found

    def _pack(self, units: list[_Unit]) -> Iterator[tuple[int, int]]:
        """Greedy, but a paragraph that does not fit opens a new passage if the current one is more than half full."""
        held: list[_Unit] = []
        size = 0
        for at, unit in enumerate(units):
            crowded = size + unit.words > self.words or (held and unit.end - held[0].start > self._longest)
            if held and (crowded or (unit.opens and 2 * size > self.words and size + self._paragraph(units, at) > self.words)):
                yield held[0].start, held[-1].end
                held, size = [], 0
            held.append(unit)
            size += unit.words
        if held:
            yield held[0].start, held[-1].end

    def _paragraph(self, units: Sequence[_Unit], at: int) -> int:
        """Words from this unit to the end of its paragraph, counted no further than the budget."""
        size = units[at].words
        for unit in units[at + 1 :]:
            if unit.opens or size > self.words:
                break
            size += unit.words
        return size

    def _units(self, text: str, start: int, end: int) -> Iterator[_Unit]:
        for first, last in _spans(_PARAGRAPH, text, start, end):
            opens = True
            for left, right in _sentences(text, first, last):
                for cut in self._cut(text, left, right):
                    yield _Unit(*cut, opens)
                    opens = False

    def _cut(self, text: str, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """(start, end, size) of the sentence itself, or of stretches within the budget if it is longer (tables, lists, base64)."""
        if end - start <= self._longest and (whole := self._count(text[start:end])) <= self.words:
            yield start, end, whole
            return
        at, last, size = start, start, 0
        for match in _WORD.finditer(text, start, end):
            for left, right, words in self._halves(text, match.start(), match.end()):
                if last > at and (size + words > self.words or right - at > self._longest):
                    yield at, last, size
                    at, size = left, 0
                elif last == at:
                    at = left
                size, last = size + words, right
        if last > at:
            yield at, last, size

    def _halves(self, text: str, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """A word, halved until each part is within the budget: a line of base64 is one word and hundreds of tokens."""
        if end - start <= self._longest:
            size = self._count(text[start:end])
            if size <= self.words or end - start == 1:
                yield start, end, size
                return
        middle = (start + end) // 2
        yield from self._halves(text, start, middle)
        yield from self._halves(text, middle, end)

    @property
    def _longest(self) -> int:
        """Characters that no passage exceeds, whatever its words look like."""
        return 16 * self.words


def _spans(separator: re.Pattern[str], text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Stretches between separators, without surrounding white space, none empty."""
    at = start
    for match in separator.finditer(text, start, end):
        yield from _trim(text, at, match.start())
        at = match.end()
    yield from _trim(text, at, end)


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    for match in _SENTENCE.finditer(text, start, end):
        if not _ABBREVIATION.search(text, max(at, match.start() - 12), match.end()):
            yield from _trim(text, at, match.end())
            at = match.end()
    yield from _trim(text, at, end)


def _trim(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if end > start:
        yield start, end
