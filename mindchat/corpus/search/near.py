"""Names of a question that no document has, and the nearest names that exist.

Owns: which words of a question are names, whether a passage has them, which known names are near. Does not own: finding
capitalised runs (spans), the known names (whoever implements Source), what is said or done about it (engine, cli, tui).
A name counts as there if one passage has its words close together, folded and stemmed as the index does it; so "Lang,
Fritz" has "Fritz Lang".
Sources: optimal string alignment distance (Boytsov 2011) for typing errors and the best matching stretch of a longer
name (rapidfuzz's partial ratio) for names that begin alike.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from mindchat.corpus.search.analyze import Analyzer
from mindchat.text.clean import clean_line
from mindchat.text.folding import fold
from mindchat.text.language import Language
from mindchat.text.names import find_names
from mindchat.values import EVERYTHING, Absent, Filters, Passage, Query, Sought

NEAR = 3
"""Known names that are offered for one that is missing."""
LOOKED_AT = 24
"""Passages in which a name is looked for: the best ones for its own words."""
SLACK = 6
"""Other words that may stand between the words of a name."""
ALIKE = 0.75
"""Least share of equal characters for a whole name, 0..1."""
SURE = 0.85
"""The same, above which a name is taken for a mistyped one whatever its parts are."""
OVERLAP = 88.0
"""Least likeness of the shorter of two names to a stretch of the longer one, 0..100."""
_SHORT = 5
"""Characters below which such a stretch says nothing."""

_WORD = re.compile(r"[^\W_]+")
_QUOTES = '"“«‘《「『'
_OWNED = re.compile(r"(?<=\w)['’]s?$")
_TAIL = re.compile(r"(?<=\w)-[a-z]\w*$")
_APART = re.compile(r"\s*\([^()]*\)\s*$")
_JOINED = re.compile(r"(?:['’]s)?\s+(?:[^\W\d_A-ZÀ-ÖØ-Þ]\S*\s+)+|['’]s\s+")


class Source(Protocol):
    """What is known of the documents that are searched."""

    def known(self) -> Known:
        """Every name that the documents have (titles, headings, aliases); asked only when a name is missing."""
        ...

    def holds(self, phrase: str) -> bool:
        """Whether some passage has these words close together; True too if nothing of them is searchable."""
        ...


class Searched:
    """Source over any engine: a name is there if a passage found by its own words has them close together."""

    def __init__(
        self,
        search: Callable[[Query, int], Sequence[Passage]],
        known: Callable[[], Known],
        analyzer: Analyzer,
        filters: Filters = EVERYTHING,
    ) -> None:
        """`filters`: only documents that pass count; `known` heeds them itself."""
        self._search, self.known, self._analyzer, self._filters = search, known, analyzer, filters

    def holds(self, phrase: str) -> bool:
        """See Source.holds."""
        terms = self._analyzer.terms(phrase)
        if not terms:
            return True
        width = len(terms) + SLACK
        found = self._search(Sought(phrase, "names", filters=self._filters), LOOKED_AT)
        return any(_close(set(terms), self._analyzer.terms(f"{p.title} {p.heading} {p.text}"), width) for p in found)


def _close(wanted: set[bytes], terms: Sequence[bytes], width: int) -> bool:
    """Whether all wanted terms stand within `width` terms of each other."""
    last: dict[bytes, int] = {}
    for at, term in enumerate(terms):
        if term in wanted:
            last[term] = at
            if len(last) == len(wanted) and at - min(last.values()) < width:
                return True
    return False


# ── the question's names
# ─────────────────────────────────────────────────────────────────────────────────────────────────


class Asked(Struct, frozen=True):
    """A name as it stands in a question."""

    text: str
    quoted: bool
    """In quotation marks: taken whole."""
    first: bool
    """Opens a sentence, so that its first word may be no part of it."""


def asked_names(question: str, words: Language) -> list[Asked]:
    """Names of a question in text order; dates are none, and neither is the first word of a sentence by its capital
    alone.
    """
    openings, at, found = set(), 0, []
    for sentence in words.sentences(question):
        openings.add(at + len(sentence) - len(sentence.lstrip(" \t\n" + _QUOTES)))
        at += len(sentence)
    for _, start, end, kind in find_names(question, words):
        quoted = start > 0 and question[start - 1] in _QUOTES
        while (
            not quoted and start and question[start - 1].isalnum()
        ):  # the patterns begin at a capital: "3Rd Earl", "iPod"
            start -= 1
        text = question[start:end] if quoted else _TAIL.sub("", _OWNED.sub("", question[start:end]))
        first = start in openings and not quoted
        if kind == "name" and any(map(words.content, text.split())) and not (first and len(text.split()) == 1):
            found.append(Asked(clean_line(text, 80), quoted, first))
    return found


def absent(question: str, source: Source, words: Language) -> tuple[Absent, ...]:
    """The question's names that no passage has, in text order, each once, with at most three known names that are near."""
    found: dict[str, Absent] = {}
    for asked in asked_names(question, words):
        if source.holds(asked.text):
            continue
        known = source.known()
        if asked.quoted or (alike := known.alike(asked.text, SURE)):
            # a whole title that is nearly there is mistyped, even if its parts ("Rick", "Moty") stand somewhere
            found.setdefault(asked.text, Absent(asked.text, known.near(asked.text) if asked.quoted else alike))
            continue
        for part in _missing(asked, source, words):
            found.setdefault(part, Absent(part, known.near(part)))
    return tuple(found.values())


def _missing(asked: Asked, source: Source, words: Language) -> Iterator[str]:
    """Those parts of a name that is missing as a whole ("Director of Metropolis") that are missing too; all of it if it
    has no parts.
    """
    parts = _JOINED.split(asked.text)
    if asked.first:
        parts[0] = parts[0].partition(" ")[2]
    for part in (_OWNED.sub("", part) for part in parts):
        known = part != asked.text and source.holds(part)
        if any(map(words.content, part.split())) and not known and not _covered(part, source, words):
            yield part


def _covered(name: str, source: Source, words: Language) -> bool:
    """Whether all is there but for a first word ("Director Fritz Lang") or a last one in capitals ("Ulf Merbold ESA")
    that stands elsewhere.
    """
    pieces = name.split()
    splits = [(pieces[0], pieces[1:])] + [(pieces[-1], pieces[:-1])] * pieces[-1].isupper()
    return any(
        sum(len(piece) > 2 and words.content(piece) for piece in rest) > 1
        and source.holds(" ".join(rest))
        and source.holds(extra)
        for extra, rest in splits
    )


# ── names that are near
# ──────────────────────────────────────────────────────────────────────────────────────────────────


class Known:
    """Known names, ready to be compared: about 60 ms for 40,000 of them, so no index of letter groups is kept."""

    def __init__(self, names: Iterable[str]) -> None:
        compared = ((_plain(_APART.sub("", name)), name) for name in dict.fromkeys(names))
        rows = sorted((row for row in compared if row[0]), key=lambda row: (len(row[0]), row))
        self._plain, self._names = [plain for plain, _ in rows], [name for _, name in rows]

    def alike(self, name: str, least: float = ALIKE) -> tuple[str, ...]:
        """At most three names with at least this share of equal characters (0..1), best first."""
        from rapidfuzz import process
        from rapidfuzz.distance import OSA

        found = process.extract(
            _plain(name), self._plain, scorer=OSA.normalized_similarity, score_cutoff=least, limit=NEAR
        )
        return tuple(clean_line(self._names[at], 80) for _, _, at in found)

    def near(self, name: str) -> tuple[str, ...]:
        """At most three: alike as a whole first, then those of which one has a stretch like the other; best first,
        without repeats.
        """
        found = self.alike(name)
        if len(found) < NEAR and len(_plain(name)) >= _SHORT:
            found += self._overlapping(_plain(name))
        return tuple(dict.fromkeys(found))[:NEAR]

    def _overlapping(self, plain: str) -> tuple[str, ...]:
        """Names with a stretch like this one, or like a stretch of it if they are more than half as long."""
        from rapidfuzz import fuzz, process

        start = bisect_left(self._plain, max(_SHORT, len(plain) // 2 + 1), key=len)
        # the blank before both lets a stretch begin only where a word does
        padded = [f" {other}" for other in self._plain[start:]]
        found = process.extract(f" {plain}", padded, scorer=fuzz.partial_ratio, score_cutoff=OVERLAP, limit=NEAR)
        return tuple(clean_line(self._names[start + at], 80) for _, _, at in found)


def _plain(name: str) -> str:
    """Folded words with one blank between them."""
    return " ".join(_WORD.findall(fold(name)))
