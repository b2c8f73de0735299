"""Cutting a document's text into passages: along its structure, then paragraphs, then sentences, within a budget of
words, or of tokens of the model that will read them.

Owns: where passages start and end; document.text[start:end] is the passage, to the character. Does not own: what a
heading or a page is (readers say so), ids (the registry gives them).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence, Set

from msgspec import Struct

from mindchat.ports import NEVER, Cancel
from mindchat.text.language import language
from mindchat.text.sentences import sentence_spans, trimmed
from mindchat.values import Chunk, Span

_PARAGRAPH = re.compile(r"\n[ \t\n]*\n[ \t]*")
"""One character class, not a repeated group: a group keeps a place on the stack for each of a million empty lines."""
_WORD = re.compile(r"\S+")
_DENSE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0eff]")


def count_words(text: str) -> int:
    """Words, as an estimate of tokens: what stands between spaces; in scripts without spaces two characters count as a
    word.
    """
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

    `count` may be a tokenizer: then `words` is a number of tokens. It is asked sentence by sentence, so a passage's
    tokens may be a few more or fewer than counted (tokenizers join across the space between sentences).
    """

    def __init__(
        self, words: int = 160, count: Callable[[str], int] = count_words, abbreviations: Set[str] | None = None
    ) -> None:
        """`abbreviations`: words whose full stop ends no sentence, case folded, without it; None: English ones."""
        self.words, self._count = words, count
        self._abbreviations = language("en").abbreviations if abbreviations is None else abbreviations

    def split(self, text: str, structure: Sequence[Chunk] | None = None, cancel: Cancel = NEVER) -> list[Chunk]:
        """Passages in text order, none empty, none overlapping. `structure`: stretches with their page and heading;
        None: the whole text.

        Time is linear in the text; beside the result, memory holds one passage's sentences. Raises Interrupted soon
        after `cancel` is set.
        """
        found = []
        for part in structure if structure is not None else (Chunk(0, len(text)),):
            for start, end in self._pack(_Ahead(self._units(text, part.start, part.end))):
                cancel.check()
                found.append(Chunk(start, end, part.page, part.heading))
        return found

    def _pack(self, units: _Ahead) -> Iterator[tuple[int, int]]:
        """Greedy, but a paragraph that does not fit opens a new passage if the current one is more than half full."""
        start = end = -1
        size = 0
        while (unit := units.take()) is not None:
            crowded = size + unit.words > self.words or unit.end - start > self._longest
            if size and (
                crowded or (unit.opens and 2 * size > self.words and size + self._paragraph(unit, units) > self.words)
            ):
                yield start, end
                size = 0
            start, end = (start if size else unit.start), unit.end
            size += unit.words
        if size:
            yield start, end

    def _paragraph(self, unit: _Unit, units: _Ahead) -> int:
        """Words from this unit to the end of its paragraph, counted no further than the budget."""
        size, at = unit.words, 0
        while size <= self.words and (following := units.peek(at)) is not None and not following.opens:
            size, at = size + following.words, at + 1
        return size

    def _units(self, text: str, start: int, end: int) -> Iterator[_Unit]:
        for paragraph in _spans(_PARAGRAPH, text, start, end):
            opens = True
            for sentence in sentence_spans(text, self._abbreviations, paragraph.start, paragraph.end, lines=False):
                for cut in self._cut(text, sentence.start, sentence.end):
                    yield _Unit(*cut, opens)
                    opens = False

    def _cut(self, text: str, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """(start, end, size) of the sentence itself, or of stretches within the budget if it is longer (tables, lists,
        base64).
        """
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


def _spans(separator: re.Pattern[str], text: str, start: int, end: int) -> Iterator[Span]:
    """Stretches between separators, without surrounding white space, none empty."""
    at = start
    for match in separator.finditer(text, start, end):
        yield from trimmed(text, at, match.start())
        at = match.end()
    yield from trimmed(text, at, end)


class _Ahead:
    """A stream of units that can be looked into as far as the next paragraph is counted."""

    def __init__(self, units: Iterator[_Unit]) -> None:
        self._units, self._held = units, deque[_Unit]()

    def take(self) -> _Unit | None:
        """The next unit; None at the end."""
        return self._held.popleft() if self._held else next(self._units, None)

    def peek(self, at: int) -> _Unit | None:
        """The unit `at` places behind the one that was taken last; None if there is none."""
        while len(self._held) <= at:
            unit = next(self._units, None)
            if unit is None:
                return None
            self._held.append(unit)
        return self._held[at]
