"""Choosing sentences within a budget of words.

Owns: the weights and the order of choice. Does not own: measuring sentences (sentences), how they are laid out
(prompts).
Source: ours. The weights are a listwise logistic fit (which sentence of the five passages holds the answer) on the even
rows of 2Wiki-open and HotpotQA and all of MuSiQue, rounded; reported on the odd rows (MEASUREMENTS.md). A passage's
first sentence says what the passage is about.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from mindchat.evidence.asking import Asking
from mindchat.evidence.sentences import Sentence, read
from mindchat.values import Evidence, Passage


class Weights(Struct, frozen=True):
    """What one point of each feature of a Sentence is worth."""

    overlap: float = 0.45
    names: float = 0.1
    relation: float = 0.5
    """For each of at most two words."""
    spans: float = 0.75
    first: float = 0.6
    """Added to a passage's first sentence."""
    rank: float = 0.35
    """Taken off for each place further down the list of passages."""
    later: float = 0.07
    """Taken off for each sentence further down its passage."""
    given: float = 0.7
    """Taken off where the question names this passage and asks for a relation."""


WEIGHTS = Weights()
_MOST_RELATION = 2


def select(
    question: str, passages: Sequence[Passage], budget_words: int, ask: Asking, weights: Weights = WEIGHTS
) -> tuple[Evidence, ...]:
    """The sentences that the answer is read from, in the order of the passages and within each in text order;
    neighbours are one stretch.

    `budget_words` counts the words of sentences and, once a passage, of its title. Offsets are those of the document.
    The best sentence is chosen however long it is; of the others those that fit, whole ones only.
    """
    sentences = read(question, passages, ask)
    cost = {at: len(passage.title.split()) for at, passage in enumerate(passages)}
    chosen: list[Sentence] = []
    left = budget_words
    for sentence in sorted(sentences, key=lambda s: (-score(s, weights), s.passage, s.number)):
        words = sentence.words + cost[sentence.passage]
        if words <= left or not chosen:
            chosen.append(sentence)
            left -= words
            cost[sentence.passage] = 0
    return tuple(_stretches(sorted(chosen, key=lambda s: (s.passage, s.number)), passages))


def score(sentence: Sentence, weights: Weights = WEIGHTS) -> float:
    """How much a sentence promises; only differences mean something."""
    gained = (
        weights.overlap * sentence.overlap
        + weights.names * sentence.names
        + weights.relation * min(_MOST_RELATION, sentence.relation)
    )
    gained += weights.spans * sentence.spans + weights.first * sentence.first
    return gained - weights.rank * sentence.passage - weights.later * sentence.number - weights.given * sentence.given


def _stretches(chosen: Sequence[Sentence], passages: Sequence[Passage]) -> list[Evidence]:
    found: list[Evidence] = []
    before: Sentence | None = None
    for sentence in chosen:
        passage = passages[sentence.passage]
        end = passage.start + sentence.end
        if before is not None and (before.passage, before.number + 1) == (sentence.passage, sentence.number):
            found[-1] = Evidence(passage.id, found[-1].start, end)
        else:
            found.append(Evidence(passage.id, passage.start + sentence.start, end))
        before = sentence
    return found
