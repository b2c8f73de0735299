"""What speaks for and against an answer being in the found passages, as numbers between 0 and 1.

Owns: FEATURES and how each is measured. Does not own: what they weigh (answerable), the search, the counts of words in
the index (corpus).
Source: ours: how much of the question's rare words is covered, whether its names are what a passage is about, and
whether what is asked of them is stated beside them. No feature uses the search's own scores, so that the fit holds for
every engine. Candidates were dropped one at a time, always the feature without which the fit lost least.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from msgspec import Struct

from mindchat.evidence.asking import Asking
from mindchat.evidence.sentences import head, named
from mindchat.text.folding import fold
from mindchat.text.names import find_names
from mindchat.values import Evidence, Passage, WordCounts

_WORD = re.compile(r"[^\W_]+")
_NEAR = 0.7
"""Share of a name's weight that a passage must hold to count as speaking of it."""
_SIMPLE = 3
"""Most words that a question of one step asks of its name."""
_OPENING = 160
"""Characters at a passage's beginning that say what it is about."""
_APPOSED = 3
"""A run of so many content words before a name is more than an apposition."""

FEATURES = {
    "covered": "share of the question's weight that the passages hold",
    "missing": "weight of the rarest word that they do not hold",
    "missing_name": "the same among the words of names",
    "best_passage": "share of the question's weight that one passage holds",
    "margin": "by how much it holds more than the second",
    "worst_subject": "share of the worst name that one passage names where it says what it is about",
    "stated_near": "share of what is asked of the names that one sentence beside them states",
    "stated_with_span": "the same of sentences with a date, place, number or person if one is asked",
    "nothing_near": "1 if no sentence states any of it",
    "simple_unstated": "1 - stated_with_span where the question asks at most three words of one name",
    "relation_unstated": "1 - stated_with_span where the question asks for a known relation",
    "no_names": "1 if the question has no name",
    "covered_no_names": "covered, if it has none",
    "no_others": "1 if the question has nothing but names",
    "untitled": "share of passages that are titled by what they speak of, if the question has names but none of them",
    "titles": "the same times a third of how many it names, at most 3",
}
"""Name → meaning, in the order of the vector. The weight of a word is its rarity in the index: 0 if every passage has
it, 1 if none has.
"""


class _Question(Struct, frozen=True):
    """A question's parts."""

    weight: dict[str, float]
    """Folded word → its weight."""
    names: tuple[tuple[str, ...], ...]
    """Folded words of each name."""
    others: dict[str, float]
    """Words of no name and of no apposition to one: what is asked of the names."""
    related: dict[str, frozenset[str]]
    """Word → stems that state it too."""


class _Read(Struct, frozen=True):
    """A passage as far as it matters here."""

    stems: frozenset[str]
    head: str
    opening: frozenset[str]
    titled: bool
    """Whether its title is what it speaks of, not the name of a file."""


def features(
    question: str, passages: Sequence[Passage], chosen: Sequence[Evidence], counts: WordCounts | None, ask: Asking
) -> dict[str, float]:
    """Every feature by name. `chosen` is the evidence; a passage without any is not looked at. Without counts every
    word weighs the same.
    """
    kept = [passage for passage in passages if any(evidence.passage == passage.id for evidence in chosen)]
    read = [_read(passage, ask) for passage in kept]
    asked = _parts(question, [item.head for item in read if item.titled], counts, ask)
    bare = float(not asked.names)
    found = {
        "no_names": bare,
        **_coverage(asked, read, ask),
        **_titles(asked, question, read),
        **_relation(asked, question, kept, chosen, read, ask),
    }
    found["covered_no_names"] = bare * found["covered"]
    return {name: found[name] for name in FEATURES}


def _read(passage: Passage, ask: Asking) -> _Read:
    name, opening = head(passage.title), passage.text[:_OPENING]
    return _Read(
        ask.stated(passage.title) | ask.stated(passage.text),
        name,
        ask.stated(passage.title) | ask.stated(opening),
        len(name) > 2 and name in fold(opening),
    )


def _parts(question: str, heads: Sequence[str], counts: WordCounts | None, ask: Asking) -> _Question:
    """Names are the titles that the question names, longest first, and what looks like a name beside them."""
    weight, flat = _rarity(question, counts, ask), " ".join(_WORD.findall(fold(question)))
    titles = sorted({" ".join(_WORD.findall(name)) for name in heads if named(name, question)}, key=len, reverse=True)
    titles = [title for number, title in enumerate(titles) if not any(title in longer for longer in titles[:number])]
    spans = [" ".join(_WORD.findall(fold(name))) for name, _, _, _ in find_names(question, ask.words)]
    names = titles + [name for name in spans if name and not any(f" {name} " in f" {title} " for title in titles)]
    words = [tuple(word for word in name.split() if word in weight) for name in names]
    own = {ask.stem(word) for name in words for word in name} | {
        ask.stem(word) for name in names for word in _apposed(flat, name, ask)
    }
    others = {word: value for word, value in weight.items() if ask.stem(word) not in own}
    related = {word: ask.relations.get(ask.stem(word), frozenset()) for word in weight}
    return _Question(weight, tuple(name for name in words if name), others, related)


def _apposed(flat: str, name: str, ask: Asking) -> list[str]:
    """The content words right before a name: "the rugby player David Watkins" asks nothing of players."""
    before = f" {flat} ".partition(f" {name} ")[0].split()
    found: list[str] = []
    while (
        before
        and len(found) < _APPOSED
        and ask.words.content(before[-1])
        and before[-1] not in ask.marks["sentence_verbs"]
    ):
        found.append(before.pop())
    return found if before and len(found) < _APPOSED else []


def _rarity(question: str, counts: WordCounts | None, ask: Asking) -> dict[str, float]:
    if counts is None:
        return {
            word: 1.0 for word in _WORD.findall(fold(question)) if ask.words.content(word) and word not in ask.small
        }
    most = math.log1p((counts.passages + 0.5) / 0.5)
    known = {
        fold(word): math.log1p((counts.passages - held + 0.5) / (held + 0.5)) / most for word, held in counts.words
    }
    return {word: value for word, value in known.items() if word not in ask.small}


def _share(words: Sequence[str], stems: frozenset[str], asked: _Question, ask: Asking) -> float:
    """The weight of the words that stand among the stems, of that of all; 1 for no words."""
    whole = sum(asked.weight[word] for word in words)
    return sum(asked.weight[word] for word in words if ask.stem(word) in stems) / whole if whole else 1.0


def _coverage(asked: _Question, read: Sequence[_Read], ask: Asking) -> dict[str, float]:
    """How much of the question's weight the passages hold, all together and the best one alone, and whether one is
    about each name.
    """
    held = frozenset[str]().union(*(item.stems for item in read))
    words = tuple(asked.weight)
    alone = [*sorted((_share(words, item.stems, asked, ask) for item in read), reverse=True), 0.0, 0.0]
    missing = {word: value for word, value in asked.weight.items() if ask.stem(word) not in held}
    subject = [max((_share(name, item.opening, asked, ask) for item in read), default=0.0) for name in asked.names]
    return {
        "covered": _share(words, held, asked, ask),
        "missing": max(missing.values(), default=0.0),
        "missing_name": max((missing.get(word, 0.0) for name in asked.names for word in name), default=0.0),
        "best_passage": alone[0],
        "margin": alone[0] - alone[1],
        "worst_subject": min(subject, default=1.0),
    }


def _titles(asked: _Question, question: str, read: Sequence[_Read]) -> dict[str, float]:
    """Where passages are titled by what they speak of, a question about it finds its title."""
    share = sum(item.titled for item in read) / len(read) if read else 0.0
    hits = sum(1 for item in read if named(item.head, question))
    return {"untitled": share * (not hits and bool(asked.names)), "titles": share * min(hits, 3) / 3}


def _relation(
    asked: _Question,
    question: str,
    kept: Sequence[Passage],
    chosen: Sequence[Evidence],
    read: Sequence[_Read],
    ask: Asking,
) -> dict[str, float]:
    """Whether what is asked of the names is stated where one of them is spoken of, with a span of the asked kind in the
    same sentence.

    Of a question without names, every passage counts.
    """
    near = {
        passage.id: passage
        for passage, item in zip(kept, read, strict=True)
        if not asked.names or any(_share(name, item.stems, asked, ask) > _NEAR for name in asked.names)
    }
    patterns = [ask.spans[kind] for kind in ask.seeks(question)]
    stated = spanned = 0.0
    for evidence in chosen:
        if (passage := near.get(evidence.passage)) is None:
            continue
        for sentence in ask.words.sentences(
            passage.text[evidence.start - passage.start : evidence.end - passage.start]
        ):
            share = _others(asked, ask.stated(sentence), ask)
            stated = max(stated, share)
            if not patterns or any(pattern.search(sentence) for pattern in patterns):
                spanned = max(spanned, share)
    return {
        "stated_near": stated,
        "stated_with_span": spanned,
        "nothing_near": float(stated == 0),
        "simple_unstated": (len(asked.names) == 1 and len(asked.others) <= _SIMPLE) * (1 - spanned),
        "relation_unstated": bool(ask.relation(question)) * (1 - spanned),
        "no_others": float(not asked.others),
    }


def _others(asked: _Question, stems: frozenset[str], ask: Asking) -> float:
    """The share of what is asked of the names that the stems state, in the question's words or in related ones; 1 if
    nothing is.
    """
    whole = sum(asked.others.values())
    told = sum(value for word, value in asked.others.items() if ask.stem(word) in stems or asked.related[word] & stems)
    return told / whole if whole else 1.0
