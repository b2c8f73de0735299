"""The sentences of found passages, each with its place and with what speaks for it.

Owns: cutting passages into sentences with exact offsets, the features of a sentence. Does not own: weighing and
choosing them (select). A sentence is read with its passage's title: what is named only there ("He was born in Vienna")
counts as said.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from mindchat.evidence.asking import Asking
from mindchat.text.folding import fold
from mindchat.values import Passage

_NOTE = re.compile(r"\s*\([^()]*\)\s*$")
_WORD = re.compile(r"\S+")
_NAME_WORD = re.compile(r"[^\W_]+")


class Sentence(Struct, frozen=True):
    """One sentence of one passage."""

    passage: int
    """Index of its passage in the list at hand."""
    number: int
    """Its place in the passage, from 0; lines that say nothing have a place too."""
    first: bool
    """Whether it is the first that is no heading: what says what the passage is about."""
    start: int
    """Characters of the passage's text, without blanks at either end."""
    end: int
    words: int
    overlap: float
    """Content words shared with the question, each weighed by its rarity among these sentences, 0 to 1 a word."""
    names: int
    """Titles of other passages at hand that it mentions."""
    relation: int
    """Words that state the asked relation."""
    spans: int
    """Kinds of span that the question needs and the sentence has."""
    given: bool
    """Whether the question asks for a relation and names this very passage: the end of a chain mostly stands elsewhere.
    """


def head(title: str) -> str:
    """A title as a name: folded, without the note by which an encyclopedia tells it from others."""
    return fold(_NOTE.sub("", title).strip())


def named(name: str, question: str) -> bool:
    """Whether a question names what a head names: as whole words, with a capital or a digit where it begins ("mother"
    names no film).

    A question typed without any capital names what has several words.
    """
    if len(name) < 3:
        return False
    # folding may change lengths, so the place in the question is found by words
    asked = [(match[0], fold(match[0])) for match in _NAME_WORD.finditer(question)]
    wanted = _NAME_WORD.findall(name)
    size = len(wanted)
    starts = (
        at for at in range(len(asked) - size + 1) if size and [folded for _, folded in asked[at : at + size]] == wanted
    )
    plain = size > 1 and question == question.lower()
    return any(plain or not asked[at][0][0].islower() for at in starts)


def says(sentence: str, title: str, ask: Asking) -> bool:
    """Whether a sentence says something: not the title again, nor where the text is from."""
    return _words(sentence) not in ([], _words(title), _words(head(title))) and not ask.apparatus.match(sentence)


def _words(text: str) -> list[str]:
    return _NAME_WORD.findall(fold(text))


def cut(text: str, ask: Asking) -> list[tuple[int, int]]:
    """(start, end) of each sentence that is not blank, without the white space around it."""
    found, at = [], 0
    for piece in ask.words.sentences(text):
        start = at + len(piece) - len(piece.lstrip())
        at += len(piece)
        end = at - (len(piece) - len(piece.rstrip()))
        if end > start:
            found.append((start, end))
    return found


def read(question: str, passages: Sequence[Passage], ask: Asking) -> list[Sentence]:
    """All sentences of the passages in order, measured against the question."""
    asked, relation = frozenset(ask.stems(question)), ask.relation(question)
    seeks = [ask.spans[kind] for kind in ask.seeks(question)]
    heads = [head(passage.title) for passage in passages]
    given = [bool(relation) and named(name, question) for name in heads]
    cuts = [piece for at, passage in enumerate(passages) for piece in _pieces(at, passage, ask)]
    texts = [passages[at].text[start:end] for at, _, _, start, end in cuts]
    held = [frozenset(ask.stems(text)) for text in texts]
    rarity = _rarity(asked, held)
    found = []
    for (at, number, first, start, end), text, stems in zip(cuts, texts, held, strict=True):
        folded = fold(text)
        found.append(
            Sentence(
                at,
                number,
                first,
                start,
                end,
                len(_WORD.findall(text)),
                sum(rarity[stem] for stem in asked & stems),
                sum(
                    1
                    for other, name in enumerate(heads)
                    if other != at and len(name) > 3 and name != heads[at] and name in folded
                ),
                len(relation & ask.stated(text)),
                sum(1 for pattern in seeks if pattern.search(text)),
                given[at],
            )
        )
    return found


def _pieces(at: int, passage: Passage, ask: Asking) -> list[tuple[int, int, bool, int, int]]:
    """(passage, number, first, start, end) of the sentences of a passage that say something; of one of which none does,
    of all.
    """
    spans = list(enumerate(cut(passage.text, ask)))
    kept = [(number, span) for number, span in spans if says(passage.text[slice(*span)], passage.title, ask)] or spans
    first = next((number for number, (start, _) in kept if not passage.text.startswith("#", start)), -1)
    return [(at, number, number == first, *span) for number, span in kept]


def _rarity(asked: frozenset[str], held: Sequence[frozenset[str]]) -> dict[str, float]:
    """Weight of each asked stem among these sentences: 1 where one sentence has it, towards 0 where all have it."""
    count = Counter(stem for stems in held for stem in asked & stems)
    whole = math.log(1 + len(held))
    return {stem: math.log((1 + len(held)) / max(1, count[stem])) / whole if whole else 1.0 for stem in asked}
