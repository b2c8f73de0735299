"""Where sentences end: one rule for text that streams in, for passages, for the index and for memory.

Owns: the marks that end a sentence, and what speaks against them: an abbreviation, an initial, a small letter that
follows.
Does not own: abbreviations of a language (language.py).
Time is linear in the text: each run of marks is tried once, and the look back is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

from mindchat.values import Span

_CLOSERS = "\"'”’»)\\]」』）"
_MARKS = re.compile(rf"(?<![.!?…])[.!?…]++[{_CLOSERS}]*+|[。！？]++[{_CLOSERS}]*+")
_OPENERS = "\"'“‘«([„¿¡"
_LONGEST = 16
"""Characters of the longest abbreviation that is looked for."""


def is_end(text: str, match: re.Match[str], end: int, abbreviations: Set[str]) -> bool | None:
    """Whether the marks end a sentence; None: the text up to `end` does not tell, because the next word is not there
    yet.
    """
    if match[0][0] in "。！？":
        return True
    at = match.end()
    while at < end and text[at].isspace():
        at += 1
    if at == end:
        return None
    if at == match.end() or _abbreviated(text, match, abbreviations):
        return False
    while at < end and text[at] in _OPENERS:
        at += 1
    return at == end or not text[at].islower()


def closes(text: str, abbreviations: Set[str]) -> bool:
    """Whether a text without white space at its end ends where a sentence does."""
    last = next(reversed(list(marks(text, 0, len(text)))), None)
    return last is not None and last.end() == len(text) and not _abbreviated(text, last, abbreviations)


def _abbreviated(text: str, match: re.Match[str], abbreviations: Set[str]) -> bool:
    if match[0] != ".":  # inside closing marks it ends what was said
        return False
    before = text[max(0, match.start() - _LONGEST) : match.start()]
    word = before.split()[-1].lstrip("\"'”’»()[]“‘«") if before and not before[-1].isspace() else ""
    return (len(word) == 1 and word.isalpha() and word.isupper()) or word.casefold() in abbreviations


def marks(text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    """Every run of marks that may end a sentence."""
    return _MARKS.finditer(text, start, end)


def sentence_spans(
    text: str, abbreviations: Set[str], start: int = 0, end: int | None = None, *, lines: bool = True
) -> Iterator[Span]:
    """Spans of all sentences of text[start:end] in order, without the white space around them, none empty.

    `lines`: a line break ends a sentence; else lines are wrapped text, and only a mark or the end of the text ends one.
    """
    stop = len(text) if end is None else end
    at = start
    for first, last in _lines(text, start, stop) if lines else ((start, stop),):
        at = first
        for match in marks(text, first, last):
            if is_end(text, match, last, abbreviations):
                yield from trimmed(text, at, match.end())
                at = match.end()
        yield from trimmed(text, at, last)


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end:
        newline = text.find("\n", start, end)
        last = end if newline == -1 else newline
        yield start, last
        start = last + 1


def trimmed(text: str, start: int, end: int) -> Iterator[Span]:
    """The span without white space at its ends; nothing if only white space is left."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if end > start:
        yield Span(start, end)
