"""Slot parsing: which subject and which known relation a sub-question asks for.

Owns: the predicate table (predicates.toml) and its question templates, and cutting a subject out of a question.
Does not own: looking the slot up or filling it. Everything is by table; a relation is never guessed from similarity.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from mindchat.errors import UsageError
from mindchat.text.folding import fold, norm


class Predicate(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One relation of the closed vocabulary."""

    name: str = ""
    phrase: str
    cardinality: Literal["one", "many"]
    mutable: bool = False
    ttl_days: int | None = None
    domain: str = "any"
    range: str = "any"
    inverse: str = ""
    kind: Literal["document", "user"] = "document"
    nouns: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    cues: tuple[str, ...] = ()

    def question(self, subject: str) -> str:
        """A plain question for this slot."""
        return f"What is the {self.phrase} of {subject}?" if self.nouns else f"{subject}: {self.phrase}?"


class Slot(Struct, frozen=True):
    """What a sub-question asks for."""

    subject: str
    """As written, without articles, quotes and descriptions such as "the film"."""
    predicate: Predicate
    hint: str = ""
    """Words that may tell homonyms apart ("film", "1984")."""


@lru_cache(maxsize=1)
def predicates() -> dict[str, Predicate]:
    """The table, by name."""
    tables = tomllib.loads((Path(__file__).parent / "predicates.toml").read_text(encoding="utf-8"))
    return {name: msgspec.convert({"name": name, **table}, Predicate) for name, table in tables.items()}


def find_predicate(words: str) -> Predicate:
    """The predicate that a user names by its name, phrase or a noun. Raises UsageError with the nearest ones."""
    wanted = norm(words)
    for predicate in predicates().values():
        if wanted in {norm(predicate.name), norm(predicate.phrase), *(norm(noun) for noun in predicate.nouns)}:
            return predicate
    import difflib

    near = difflib.get_close_matches(wanted.replace(" ", "_"), predicates(), 3, 0.5)
    raise UsageError(
        f"{words!r} is no relation that memory knows.",
        f"Did you mean {' or '.join(near)}?" if near else "For free text: /remember TEXT",
    )


_DESCRIPTION = re.compile(
    r"(?P<article>(?:[Tt]he|[Aa]n?)"
    r" )?(?:(?i:american|british|french|german|italian|indian|polish|short|feature|silent|documentary|\d{4}) )*"
    r"(?P<kind>film|movie|song|album|single|novel|book|play|poem|opera|magazine|newspaper|journal|band|company|person|actor|actress|singer|director|"
    r"king|queen|city|town|village|county|river|country|series|tv series|TV series|video game|game)s? (?!of\b|\()(?=\S)"
)
"""Lower case only: "King Kong" and "City of God" are names."""
_S = r"(?P<s>\S.*?)"


def _pattern(template: str) -> re.Pattern[str]:
    body = r"\s+".join(
        _S if word == "{s}" else re.escape(word).replace(re.escape("{s}"), _S) for word in template.split()
    )
    return re.compile(rf"^{body}[\s?.!]*$", re.IGNORECASE)


_QUESTION = r"(?:(?:who|what|which|where|when|whom)(?:\s+(?:is|was|are|were)|'s)\s+)?(?:(?:the|a|an)\s+)?"


def _noun_patterns(noun: str) -> list[re.Pattern[str]]:
    word = re.escape(noun).replace(r"\ ", r"\s+")
    shapes = [
        rf"{_QUESTION}{word}\s+(?:of|for|to)\s+{_S}",
        rf"{_S}(?:'s|s'|’s)\s+{word}(?:\s+(?:is|was)\s+(?:who|what|whom))?",
        rf"(?:who|what|which|where|when)(?:\s+(?:is|was|are|were)|'s)\s+{_S}(?:'s|s'|’s)\s+{word}",
        rf"what\s+(?:is|was)\s+{_S}\s+{word}",
        rf"{_S}\s*(?:>>|\||,|:|-|–|—)\s*{word}",
        rf"{word}\s*(?:>>|\||,|:)\s*{_S}",
        rf"{_QUESTION}{word}\s+of\s+{_S}\s+(?:is|was)\s+(?:who|whom|what)",
    ]
    return [re.compile(rf"^{shape}[\s?.!]*$", re.IGNORECASE) for shape in shapes]


@lru_cache(maxsize=1)
def _templates() -> tuple[tuple[Predicate, tuple[re.Pattern[str], ...]], ...]:
    """Every predicate with its patterns; longer templates of all predicates are tried first by parse()."""
    table = []
    for predicate in predicates().values():
        if predicate.kind == "document":
            nouns = [pattern for noun in (*predicate.nouns, predicate.phrase) for pattern in _noun_patterns(noun)]
            table.append((predicate, (*map(_pattern, predicate.ask), *nouns)))
    return tuple(table)


@lru_cache(maxsize=1)
def _bare() -> tuple[tuple[Predicate, re.Pattern[str]], ...]:
    """Keyword form "SUBJECT noun", the weakest, only after all others."""
    return tuple(
        (predicate, re.compile(rf"^{_S}\s+{re.escape(noun)}[\s?.!]*$", re.IGNORECASE))
        for predicate in predicates().values()
        for noun in sorted(predicate.nouns, key=len, reverse=True)
    )


def bare_subject(words: str) -> tuple[str, str]:
    """(subject, hint) of a matched stretch."""
    words = " ".join(words.split()).strip(" ,;:.?!")
    hint = ""
    if (match := re.search(r"\s*\(([^()]*)\)$", words)) and match.start():
        words, hint = words[: match.start()], match[1]
    if match := _DESCRIPTION.match(words):
        rest = words[match.end() :]
        named = rest[0].isupper() or rest[0].isdigit() or rest[0] in "\"'“‘«"
        told = match["article"] or match["kind"] in ("film", "movie", "song", "album")
        if named or (told and not any(map(str.isupper, words))):
            words, hint = rest, f"{hint} {match[0]}".strip()
    return words.strip(" \"'“”‘’«»,"), hint


@lru_cache(maxsize=1)
def _nested() -> re.Pattern[str]:
    """A relation inside a subject: "the director of …", "…'s mother"."""
    nouns = "|".join(
        sorted(
            {re.escape(fold(noun)) for predicate in predicates().values() for noun in predicate.nouns},
            key=len,
            reverse=True,
        )
    )
    return re.compile(rf"^(?:the )?(?:{nouns}) of (?=\S)|'s (?:{nouns})\b")


def plain(subject: str, strict: bool) -> bool:
    """Whether this can be a name: no relation inside and, if strict, a capital, a digit or a letter of a script without
    case.
    """
    if not 1 < len(subject) <= 80 or (strict and not re.search(r"[A-Z0-9À-ÖØ-Þ\u0100-\uffff]", subject)):
        return False
    folded = fold(subject)
    if re.match(r"(?:Are|Is|Was|Were|Do|Does|Did|Can|Could|Has|Have|Will|Would|Both)\s+[a-z]", subject):
        return False
    if re.match(
        r"(?:who|what|which|where|when|whose|how|he|she|it|they|his|her|their|its|this|that|these|those|#\d+)\b", folded
    ):
        return False
    return _nested().search(folded) is None


def parse(question: str, *, strict: bool = True) -> Slot | None:
    """The slot a simple question, or its keyword form, asks for; None if no template matches or the subject is itself a
    question.

    Not strict: the subject need not look like a name, because it is only looked up. Among matching templates the one
    with the shortest subject wins: it explains most of the question's words.
    """
    text = re.sub(
        r"^(?:(?:what|who) (?:is|was) )?the name of (?=the )|\s+name[\s?.!]*$",
        "",
        " ".join(question.replace("’", "'").split()),
        flags=re.IGNORECASE,
    )
    if not text or len(text) > 240:
        return None
    found = [(len(words), slot) for predicate, words in _matches(text) if (slot := _slot(words, predicate, strict))]
    return min(found, key=lambda item: item[0])[1] if found else None


def _matches(text: str) -> list[tuple[Predicate, str]]:
    """(predicate, subject's words) of each template that matches; those of the weakest form only if no other does."""
    found = [
        (predicate, match["s"])
        for predicate, patterns in _templates()
        for pattern in patterns
        if (match := pattern.match(text))
    ]
    # a capitalised noun is part of a name: "… Polish-Russian War"
    return found or [
        (predicate, match["s"])
        for predicate, pattern in _bare()
        if (match := pattern.match(text)) and text[match.end("s") :].islower()
    ]


def readings(words: str) -> list[tuple[Predicate, str]]:
    """Every (predicate, subject's words) that a question or a noun phrase can mean; the subject may itself be a phrase
    ("the director of …"). The shortest subject first: it explains most of the words.
    """
    text = " ".join(words.replace("’", "'").split())
    if not text or len(text) > 240:
        return []
    return sorted(dict.fromkeys(_matches(text)), key=lambda match: len(match[1]))


def _slot(words: str, predicate: Predicate, strict: bool) -> Slot | None:
    subject, hint = bare_subject(words)
    return Slot(subject, predicate, hint) if plain(subject, strict) else None


@lru_cache(maxsize=1)
def relation_words() -> frozenset[str]:
    """Folded words of all relations and questions: too common in FTS to search for."""
    words = {
        word
        for p in predicates().values()
        for part in (p.phrase, *p.nouns, *p.ask)
        for word in re.findall(r"\w+", fold(part))
    }
    return frozenset(words - {"s"})
