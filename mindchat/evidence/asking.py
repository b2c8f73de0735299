"""What a question asks for: the type of its answer, the words by which a text states the asked relation, the kinds of
span that it needs.

Owns: Asked, Asking (one language's data, languages/asking/<code>.toml), the light stems by which question and text are
compared.
Does not own: sentences and stop words (language), the index's own stems (corpus). The stems only cut endings that the
language's file lists, so that four languages need no library; both sides of a comparison are cut alike.
"""

from __future__ import annotations

import re
import tomllib
from enum import StrEnum
from functools import cache
from pathlib import Path

import mindchat.text.language
from mindchat.text.folding import fold
from mindchat.text.language import Language, language
from mindchat.text.names import find_names

_FOLDER = Path(mindchat.text.language.__file__).parent / "languages" / "asking"
_WORD = re.compile(r"[^\W_]+")
_SHORTEST = 3
"""Letters that an ending of one or two letters must leave; a longer ending must leave one more."""

_KEPT = 100_000
"""Stems that are kept; a chat may run for days."""


class Asked(StrEnum):
    """The type of answer that a question asks for."""

    WHO = "who"
    WHERE = "where"
    WHEN = "when"
    HOW_MANY = "how_many"
    WHICH_OF_TWO = "which_of_two"
    YES_NO = "yes_no"
    OTHER = "other"


MARKS = ("polar", "none", "person_marks", "place_marks", "before_person", "before_place", "sentence_verbs")
_LIFE = re.compile(r"\(\s*(?:[^()]{0,60}[,;]\s*)?(?:\d{1,2}\.? )?(?:[^\W\d]+\.? )?(?:\d{1,2}, )?\d{3,4}\s*[–-]")
"""An encyclopedia's "(3 January 1929 – 30 April 1989)", which says born and died without the words."""
"""Lists of words in a language's file that evidence.fitting reads."""


class Asking:
    """How one language asks, and how a text of it answers."""

    def __init__(self, code: str) -> None:
        self.words: Language = language(code)
        data = tomllib.loads((_FOLDER / f"{code}.toml").read_text(encoding="utf-8"))
        self.small = frozenset(fold(data["small"]).split())
        self._endings = tuple(sorted((fold(ending) for ending in data["suffixes"].split()), key=len, reverse=True))
        self._known: dict[str, str] = {}
        self._life = frozenset(map(self.stem, fold(data["life"]).split()))
        starts = "|".join(re.escape(word) for word in data["prepositions"].split())
        joins = "|".join(re.escape(opener.strip()) for opener in self.words.openers)
        asks = rf"(?:^\W*(?:(?:{starts})\s+)?|\b(?:{joins})\s+(?:(?:{starts})\s+)?)"
        patterns = {
            name: [pattern.replace("{ask}", asks) for pattern in found] for name, found in data["types"].items()
        }
        self._types = [(Asked(name), [re.compile(p, re.IGNORECASE) for p in found]) for name, found in patterns.items()]
        self.seeks_by_cue = {
            kind: frozenset(map(self.stem, _WORD.findall(fold(cues)))) for kind, cues in data["seeks"].items()
        }
        self.relations = {
            self.stem(fold(asked)): frozenset(map(self.stem, _WORD.findall(fold(told))))
            for asked, told in data["relations"].items()
        }
        """Stem of an asked word → stems that state it."""
        self.marks = {name: frozenset(fold(data[name]).split()) for name in MARKS}
        """Words by which an answer or its surroundings tell what kind of thing it is."""
        self.apparatus = re.compile(rf"\W*(?:{data['apparatus']})\W*[:：]", re.IGNORECASE)
        """How a line begins that only says where a text is from."""
        months = "|".join(map(re.escape, data["months"].split()))
        century = "|".join(map(re.escape, data["centuries"].split()))
        date = rf"\b(?:{months})\b|\b1\d{{3}}\b|\b20\d{{2}}\b|\b\d{{1,2}}(?:st|nd|rd|th)? (?:{century})\b"
        place = "|".join(map(re.escape, f"{data['before_place']} {data['before_place_too']}".split()))
        self.spans = {
            "date": re.compile(date, re.IGNORECASE),
            "place": re.compile(rf"\b(?:{place}) (?:the )?[^\W\d_a-zà-ÿ][\w'’-]+"),
            "number": re.compile(rf"\d|\b(?:{'|'.join(map(re.escape, data['numbers'].split()))})\b", re.I),
            "person": re.compile(r"(?<=[^\W\dA-Z_,] )[^\W\d_a-zà-ÿ][\w'’.-]+ [^\W\d_a-zà-ÿ][\w'’.-]+"),
        }
        """Kind of span → what one looks like in a sentence."""

    # ── words
    # ────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def stem(self, folded: str) -> str:
        """A folded word without its ending."""
        known = self._known.get(folded)
        if known is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            cut = next(
                (e for e in self._endings if folded.endswith(e) and len(folded) - len(e) >= _SHORTEST + (len(e) > 2)),
                "",
            )
            known = self._known[folded] = folded.removesuffix(cut) if cut else folded
        return known

    def stems(self, text: str) -> list[str]:
        """Stems of the words that carry information, in text order, with repeats."""
        return [
            self.stem(word) for word in _WORD.findall(fold(text)) if word not in self.small and self.words.content(word)
        ]

    def stated(self, text: str) -> frozenset[str]:
        """Stems of all that a stretch of text says: its words, small ones too, and birth and death where it gives the
        dates of a life.
        """
        said = frozenset(map(self.stem, _WORD.findall(fold(text))))
        return said | self._life if self.life(text) else said

    @staticmethod
    def life(text: str) -> bool:
        """Whether the dates of a life stand in brackets at the beginning of a text."""
        return _LIFE.search(text[:200]) is not None

    # ── the question
    # ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def asked(self, question: str) -> Asked:
        """The answer's type. "Which of two" and "yes or no" are told by the form of the question, the others by its
        words.
        """
        folded = f" {question.casefold()} "
        chooses = self.words.joiners[0] in folded and self.words.comparison(question)
        if chooses and len(find_names(question, self.words)) > 1:
            return Asked.WHICH_OF_TWO
        if self.words.polar(question):
            return Asked.YES_NO
        return next((kind for kind, patterns in self._types if any(p.search(question) for p in patterns)), Asked.OTHER)

    def relation(self, question: str) -> frozenset[str]:
        """Stems by which a text states what the question asks for."""
        own = self.stated(question)
        return frozenset().union(*(self.relations.get(stem, frozenset()) for stem in own))

    def seeks(self, question: str) -> tuple[str, ...]:
        """Kinds of span (date, place, number, person) that a text must hold to answer."""
        own = self.stated(question)
        return tuple(kind for kind, cues in self.seeks_by_cue.items() if own & cues)


@cache
def asking(code: str) -> Asking:
    """How the language of this code asks; of a language without such a file, the words of English. Raises ConfigError
    for an unknown language.
    """
    language(code)
    return Asking(code if (_FOLDER / f"{code}.toml").is_file() else "en")
