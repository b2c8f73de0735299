"""What is particular to a language: stop words, abbreviations, sentence ends, cues. English is complete; others are
data files.

Owns: Language and its rules over text. Does not own: tokens, scores, stemming (the index has its own analyser).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from mindchat.errors import ConfigError
from mindchat.text.sentences import closes, is_end, marks, sentence_spans
from mindchat.values import Span

_FOLDER = Path(__file__).parent / "languages"


class FollowWords:
    """The [follow] table of a language; every list is empty in a language that has none."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        def known(name: str) -> frozenset[str]:
            return frozenset(str(data.get(name, "")).split())

        self.asking, self.prepositions = known("asking"), known("prepositions")
        self.person_words, self.place_words, self.thing_words = (
            known("person_words"),
            known("place_words"),
            known("thing_words"),
        )
        self.other_words, self.subject_words = known("other_words"), known("subject_words")
        self.place_nouns, self.person_verbs = known("place_nouns"), known("person_verbs")
        self.male, self.female, self.things, self.plural = (
            known("male"),
            known("female"),
            known("things"),
            known("plural"),
        )
        self.places, self.determiners = known("places"), known("determiners")
        self.possessives, self.objects = known("possessives"), known("objects")
        self.female_words, self.male_words = known("female_words"), known("male_words")
        self.persons = self.male | self.female
        self.all = self.persons | self.things | self.plural | self.places | self.determiners
        self.before_names, self.be, self.articles = known("before_names"), known("be"), known("articles")
        self.the, self.pair, self.pair_as = (
            str(data.get("the", "")),
            str(data.get("pair", "")),
            str(data.get("pair_as", "")),
        )
        self.past, self.passive = str(data.get("past", "")), str(data.get("passive", ""))
        self.of, self.inside, self.both_join = (
            str(data.get("of", "")),
            str(data.get("inside", "")),
            str(data.get("both_join", "")),
        )
        self.participles: Mapping[str, str] = data.get("participles", {})


class Language:
    """One language's data, read once from languages/<code>.toml."""

    def __init__(self, code: str) -> None:
        self.code = code
        data = tomllib.loads((_FOLDER / f"{code}.toml").read_text(encoding="utf-8"))
        self.stop_words = frozenset(data["stop_words"].split())
        self.abbreviations = frozenset(data.get("abbreviations", "").split())
        self.pronouns = frozenset(data.get("pronouns", "").split())
        self.openers = tuple(data.get("openers", ()))
        self.answer_phrases = tuple(data["answer_phrases"])
        self.reasoning_openers = tuple(data.get("reasoning_openers", ()))
        self.polar_openers = frozenset(data.get("polar_openers", "").split())
        self.open_openers = tuple(data.get("open_openers", ()))
        self.follow = FollowWords(data.get("follow", {}))
        self.comparison_cues = tuple(data.get("comparison_cues", ()))
        self.joiners = tuple(f" {word} " for word in data["joiners"])
        """The words for "or" and "and", blanks around them."""

    # ── sentences ────────────────────────────────────────────────────────────────────────────────────────────────────

    def first_end(self, text: str, *, closed: bool = False) -> int | None:
        """Offset just after the first sentence of `text`, or None if it is not surely over. Blanks after it belong to
        the next one.

        A line break ends a sentence. A full stop ends it only once the next word is seen (or the text is `closed`), so
        that "St. Louis", "J. R. Smith" and "3.5" stay whole.
        """
        start = len(text) - len(text.lstrip())
        newline = text.find("\n", start)
        limit = newline if newline != -1 else len(text)
        for match in marks(text, start, limit):
            over = is_end(text, match, limit, self.abbreviations)
            if over is None:
                break
            if over:
                return match.end()
        if newline != -1:
            return newline + 1 + len(text[newline + 1 :]) - len(text[newline + 1 :].lstrip("\n"))
        return len(text) if closed and text.strip() else None

    def sentences(self, text: str) -> list[str]:
        """All sentences of a finished text, white space kept, so that they join to the text."""
        spans = self.sentence_spans(text)
        cuts = [0]
        for span, following in pairwise(spans):
            gap = text[span.end : following.start]
            cuts.append(span.end + gap.rfind("\n") + 1)
        return [text[start:end] for start, end in pairwise([*cuts, len(text)])] if text else []

    def sentence_spans(self, text: str) -> list[Span]:
        """Where each sentence stands, without the white space around it; a line break ends one."""
        return list(sentence_spans(text, self.abbreviations))

    # ── words and cues ───────────────────────────────────────────────────────────────────────────────────────────────

    def content(self, word: str) -> bool:
        """Whether a word can carry information: s_i of MIND and DRAGIN. Stop words and bare punctuation cannot."""
        bare = word.strip(" \t\n'\"“”‘’.,;:!?()[]{}*_`-–—").casefold()
        stem = bare.removesuffix("'s").removesuffix("’s")
        return any(c.isalnum() for c in bare) and bare not in self.stop_words and stem not in self.stop_words

    def key(self, query: str) -> frozenset[str]:
        """A query as the set of its folded content words: to an index, "Who is X?" and "Who was X?" are the same
        question.
        """
        found = re.findall(r"\w+", query.casefold())
        return frozenset(word for word in found if self.content(word)) or frozenset(found)

    @cached_property
    def _answer(self) -> re.Pattern[str]:
        return re.compile("|".join(re.escape(phrase) for phrase in self.answer_phrases), re.IGNORECASE)

    def answered(self, sentence: str) -> bool:
        """Whether a sentence states the final answer."""
        return self._answer.search(sentence) is not None

    def polar(self, question: str) -> bool:
        """Whether a question asks for yes or no."""
        words = question.strip(" \t\n¿¡\"'“„«(").casefold().split()
        return bool(words) and words[0] in self.polar_openers

    def open(self, question: str) -> bool:
        """Whether a question asks for more than a name, a date or a number: "how do I …", "why …", "list …"."""
        folded = " ".join(question.strip().casefold().split())
        return any(folded.startswith(f"{opener} ") for opener in self.open_openers)

    def finished(self, text: str) -> bool:
        """Whether a text ends where a sentence does."""
        return closes(text.rstrip(), self.abbreviations)

    def comparison(self, question: str) -> bool:
        """Whether a question compares things (a cue word and two candidates, or a yes/no over both)."""
        folded = f" {question.casefold()} "
        return any(f" {cue.lstrip()}" in folded for cue in self.comparison_cues) and any(
            joiner in folded for joiner in self.joiners
        )


@cache
def _known() -> frozenset[str]:
    """Codes with a data file; a code is never joined into a path before it is one of them."""
    return frozenset(path.stem for path in _FOLDER.glob("*.toml"))


@cache
def language(code: str) -> Language:
    """The language of a code such as "en"; raises ConfigError naming those that exist."""
    if code not in _known():
        known = ", ".join(sorted(_known()))
        raise ConfigError(
            f"There is no language {code!r}.",
            f"engine.language can be {known}; more are data files in mindchat/text/languages.",
        )
    return Language(code)


def language_or_english(code: str) -> Language:
    """The language of a code; English where there is no data for it, so that documents of any language can be read."""
    return language(code if code in _known() else "en")
