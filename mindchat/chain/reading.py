"""Reading one relation of a thing from the passage that is about it, by patterns, with exact places.

Owns: Reading, read: the values that sentences state for a relation (languages/stating/<code>.toml). Does not own: which
passage is about the thing (follow), what is done with a value. A pattern states what it finds; it guesses nothing, and
what no pattern fits is left to the model. Source: ours; surface patterns for relations are Hearst's (COLING 1992).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct

import mindchat.text.language
from mindchat.chain.patterns import Expander
from mindchat.text.clean import clean_line
from mindchat.text.countries import country_norm
from mindchat.text.folding import fold, norm
from mindchat.text.language import Language, language
from mindchat.text.typed_spans import type_ok
from mindchat.values import Passage, Span

_FOLDER = Path(mindchat.text.language.__file__).parent / "languages" / "stating"
_OPENING = 3
"""Sentences that say what a passage's subject is."""
_INITIAL = re.compile(r"(?:^|[\s.])[^\W\d_]\.$|\b(?:Jr|Sr|St|Dr)\.$")
_WORD = re.compile(r"[^\W_]+")
_NUMBERS = re.compile(r"(?<!\w)\d+(?!st|nd|rd|th)")
_ERA = re.compile(r"(?:[ABC]\.?\s?[CDE]\.?(?:\s?E\.?)?)")
_SHORT = 2
_RANGES = {"country_of_citizenship": "any", "country_of_origin": "any", "country": "any", "award_received": "any"}


class Reading(Struct, frozen=True):
    """A value that a sentence of a passage states."""

    value: str
    """text[start:end] of the passage."""
    start: int
    end: int
    sentence: Span
    """Of the passage's text."""
    order: int
    """Number of the pattern, from 0: the earlier the surer."""


class Stating:
    """How texts of one language state relations."""

    def __init__(self, code: str) -> None:
        data = tomllib.loads((_FOLDER / f"{code}.toml").read_text(encoding="utf-8"))
        self.words: Language = language(code)
        expand = Expander(data)
        self.relations = {
            name: Relation(
                tuple(expand(pattern) for pattern in entry["patterns"]),
                entry.get("own", False),
                entry.get("first", False),
                entry.get("parent", False),
                _last(entry["not_after"]) if "not_after" in entry else None,
            )
            for name, entry in data.items()
            if isinstance(entry, dict)
        }
        self.pronouns = frozenset(data["pronouns"].split())
        self.titles = {kind: frozenset(data[f"{kind}_titles"].split()) for kind in ("male", "female", "other")}
        """Folded words in front of a name, by what they say of its bearer."""
        self.gendered = {kind: frozenset(data[f"{kind}_pronouns"].split()) for kind in ("male", "female")}
        self.relative = _last(data["relative"].replace("{relatives}", "|".join(data["relatives"].split())))
        self.married = _last(data["married"])
        self.back = frozenset(data["back"].split())
        """Words after which a sentence speaks of the subject again."""
        self.whose = re.compile(rf"(?<![\w-]){data['whose']} $", re.IGNORECASE)

    def elsewhere(self, before: str, subject: str, which: re.Pattern[str] | None) -> bool:
        """Whether a sentence, as far as it goes, has turned to somebody else than its subject."""
        if which is None or not (match := which.match(before)):
            return False
        rest = set(_WORD.findall(fold(before[match.end() :])))
        return not rest & (self.back | {word for word in fold(subject).split() if len(word) > _SHORT})


class Relation(Struct, frozen=True):
    """How one relation is stated."""

    patterns: tuple[re.Pattern[str], ...]
    own: bool = False
    """A sentence about a relative of the subject says nothing about the subject."""
    first: bool = False
    """Only the first sentences count."""
    parent: bool = False
    """A sentence about a spouse says nothing about the subject's parents."""
    not_after: re.Pattern[str] | None = None
    """What must not stand before."""


def _last(pattern: str) -> re.Pattern[str]:
    """A pattern whose match ends at the last place where it fits."""
    return re.compile(rf".*(?<![\w-])(?:{pattern})", re.IGNORECASE | re.DOTALL)


@cache
def stating(code: str) -> Stating | None:
    """The patterns of a language; None where there are none."""
    return Stating(code) if code.isalpha() and (_FOLDER / f"{code}.toml").exists() else None


def read(relation: str, passage: Passage, subject: str, code: str = "en") -> list[Reading]:
    """What a passage about the subject states for a relation, the surest first; [] if no pattern fits.

    Values are spans of the passage's text; each is given once.
    """
    how = stating(code)
    if how is None or relation not in how.relations:
        return []
    stated, found = how.relations[relation], []
    for number, span in enumerate(how.words.sentence_spans(passage.text)):
        late = number >= _OPENING
        if stated.first and late:
            break
        for order, match in _matches(stated, passage.text[span.start : span.end], subject, how):
            value = _value(passage.text, span.start + match.start("v"), span.start + match.end("v"))
            if value is not None and _fits(passage.text[value.start : value.end], relation, subject, how):
                words = passage.text[value.start : value.end]
                found.append(Reading(words, value.start, value.end, span, order))
    unique: dict[str, Reading] = {}
    for reading in sorted(found, key=lambda reading: reading.order):
        unique.setdefault(norm(reading.value), reading)
    return list(unique.values())


def _matches(stated: Relation, sentence: str, subject: str, how: Stating) -> Iterator[tuple[int, re.Match[str]]]:
    """Each pattern's match in a sentence, unless the sentence speaks of somebody else there."""
    plain = sentence[:1].lower() + sentence[1:]  # "Directed by …" at its beginning
    for order, pattern in enumerate(stated.patterns):
        for match in pattern.finditer(sentence if pattern.search(sentence) else plain):
            before = sentence[: match.start()]
            theirs = how.whose.search(before) is None
            turned = (
                (theirs and stated.own and how.elsewhere(before, subject, how.relative))
                or (theirs and stated.parent and how.elsewhere(before, subject, how.married))
                or how.elsewhere(before, subject, stated.not_after)
            )
            if not turned:
                yield order, match


def _value(text: str, start: int, end: int) -> Span | None:
    """The place of a value without the signs around it."""
    while start < end and text[start] in " \"“'‘(":
        start += 1
    while start < end and (
        text[end - 1] in " \"”,;:’'–-" or (text[end - 1] == "." and not _INITIAL.search(text[start:end]))
    ):
        end -= 1
    if text.endswith(("'s", "’s"), start, end):
        end -= 2
    return Span(start, end) if end > start else None


def _fits(words: str, relation: str, subject: str, how: Stating) -> bool:
    """Whether a value can be one: of the relation's type, and neither the subject nor a pronoun."""
    from mindchat.memory.learning.slots import predicates

    folded = fold(words)
    if folded.split(" ", 1)[0] in how.pronouns or norm(words) == norm(subject) or len(clean_line(words, 80)) < 2:
        return False
    if _ERA.fullmatch(words):
        return False
    known = predicates().get(relation)
    kind = _RANGES.get(relation, known.range if known else "any")
    if kind == "person":
        return country_norm(words) == norm(words) and _NUMBERS.search(words) is None
    return type_ok(words, kind)
