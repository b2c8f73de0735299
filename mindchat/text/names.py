"""Names in plain text without a model: capitalised runs, quoted titles, years and dates.

Owns: find_names, find_numbers. Does not own: what they are used for: the fallback when a model's extraction cannot be
parsed (entities), the candidates of a grounded short answer (engine).
"""

from __future__ import annotations

import re

from mindchat.text.language import Language

_UPPER = r"[A-ZÀ-ÖØ-ÞĀ-ŽŁŚŻΑ-ΩА-Я]"
_WORD = rf"{_UPPER}[\w'’.-]*"
_JOIN = r"(?:of|the|de|del|della|di|da|du|des|la|le|van|von|der|den|zu|al|el|ibn|bin|y|e|&|and|in|on|at|for|to)"
_RUN = re.compile(rf"{_WORD}(?:\s+(?:{_JOIN}\s+){{0,3}}{_WORD})*")
_QUOTED = re.compile(r"[\"“«‘]([^\"”»’]{2,60})[\"”»’]")
_DATE = re.compile(
    r"\b\d{1,2} (?:January|February|March|April|May|June|July|August|September|October|November|December)(?:"
    r" \d{3,4})?\b"
    r"|\b(?:January|February|March|April|May|June|July|August|September|October|November|December) \d{1,2},?"
    r" \d{3,4}\b|\b1\d{3}\b|\b20\d{2}\b"
)
_NUMBER = re.compile(
    r"(?<![\w.,/-])\d+(?:[.,]\d+)*(?:\s?%|\s(?:thousand|million|billion|percent|per cent)\b)?(?![\w/-])"
)
_CJK = re.compile(r"[《「『]([^》」』]{1,40})[》」』]|[ァ-ヶー]{2,}(?:・[ァ-ヶー]+)*")


def find_names(text: str, words: Language) -> list[tuple[str, int, int, str]]:
    """(text, start, end, kind) of each candidate, in text order, without repeats; kind is name or date."""
    found: list[tuple[str, int, int, str]] = []

    def add(start: int, end: int, kind: str) -> None:
        body = text[start:end].rstrip(".,;:'’-")
        if body and all(end <= s or start >= e for _, s, e, _ in found):
            found.append((body, start, start + len(body), kind))

    for match in _DATE.finditer(text):
        add(match.start(), match.end(), "date")
    for match in _QUOTED.finditer(text):
        add(match.start(1), match.end(1), "name")
    for match in _CJK.finditer(text):
        add(*match.span(1 if match[1] else 0), "name")
    for match in _RUN.finditer(text):
        start, end = match.span()
        # a sentence's first word is capitalised anyway: drop it if it is a function word
        while start < end and (first := re.match(r"\S+", text[start:end])) and not words.content(first[0]):
            start += len(first[0])
            start += len(text[start:end]) - len(text[start:end].lstrip())
        if start < end:
            add(start, end, "name")
    seen: set[str] = set()
    unique = []
    for item in sorted(found, key=lambda item: item[1]):
        if item[0].casefold() not in seen:
            seen.add(item[0].casefold())
            unique.append(item)
    return unique


def find_numbers(text: str) -> list[tuple[str, int, int]]:
    """(text, start, end) of each free-standing number in digits, with its sign of magnitude ("3.4 million", "12 %"), in
    text order.
    """
    return [(match[0], *match.span()) for match in _NUMBER.finditer(text)]
