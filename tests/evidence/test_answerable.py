"""Answerability: what the search alone tells about a question."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindchat.corpus.search.memory_index import MemoryIndex
from mindchat.evidence import asking, select
from mindchat.evidence.answerable import Fit, judge, shipped
from mindchat.evidence.features import FEATURES, features
from mindchat.ports import CountsWords
from mindchat.values import Answerable, Passage, Query, WordCounts

from ..fakes import passage

ASK = asking("en")
WORLD = (
    passage("m", "Metropolis is a film of 1927 that was directed by Fritz Lang.", "Metropolis"),
    passage("l", "Fritz Lang was a director of films. He was born in Vienna on 5 December 1890.", "Fritz Lang"),
    passage("c", "Marie Curie (1867 – 1934) was a chemist and a physicist. She was born in Warsaw.", "Marie Curie"),
    passage("o", "The Orange River is a river of southern Africa. It is 2,432 km long.", "Orange River"),
    passage("t", "Tea is a drink. It is made from leaves, and much of it is grown in Assam.", "Tea"),
    passage("r", "The Rhine is a river that flows through Basel and Cologne.", "Rhine"),
)


def judged(question: str, world: Sequence[Passage] = WORLD) -> Answerable:
    index = MemoryIndex(world)
    found = index.search(Query(question), 5)
    return judge(question, found, select(question, found, 260, ASK), index.count_words(question), ASK)


@pytest.mark.parametrize(
    "question",
    [
        "Where was Fritz Lang born?",
        "Where was the director of Metropolis born?",
        "When did Marie Curie die?",
        "How long is the Orange River?",
        "Which river flows through Basel?",
        "What is tea made from?",
    ],
)
def test_what_the_documents_say(question: str) -> None:
    assert judged(question).enough


@pytest.mark.parametrize(
    "question",
    [
        "Where was the founder of the Harrowgate Observatory born?",  # a name that stands nowhere
        "Who composed the opera The Glass Heron?",
        "What is the capital of Vostronia?",
        "Which religion did Fritz Lang convert to?",  # the name is there, the relation is not
        "What is Marie Curie's blood type?",
    ],
)
def test_what_they_do_not_say(question: str) -> None:
    assert not judged(question).enough


def test_the_same_question_without_its_documents() -> None:
    question = "Where was the director of Metropolis born?"
    assert judged(question, WORLD[2:]).p < 0.3 < judged(question).p


@given(st.text(max_size=60), st.lists(st.text(alphabet="ab Z.1é", max_size=60), max_size=3), st.booleans())
def test_every_feature_lies_between_0_and_1(question: str, texts: list[str], counted: bool) -> None:
    found = [passage(f"p{n}", text, f"T {n}") for n, text in enumerate(texts)]
    counts = WordCounts(10, tuple((word, n % 11) for n, word in enumerate(question.split()))) if counted else None
    chosen = select(question, found, 50, ASK)
    values = features(question, found, chosen, counts, ASK)
    assert list(values) == list(FEATURES)
    assert all(-1e-9 <= value <= 1 + 1e-9 for value in values.values()), values
    assert 0.0 <= judge(question, found, chosen, counts, ASK).p <= 1.0


def test_the_shipped_fit_is_dated_and_knows_its_features() -> None:
    fit = shipped()
    assert set(fit.weights) == set(FEATURES)
    assert fit.date
    assert fit.n > 1000
    assert fit.auroc > 0.85
    assert 0 < fit.cut < 1


def test_the_weightiest_comes_first() -> None:
    fit = Fit(
        date="d", n=1, sets="", auroc=1.0, cut=0.5, cut_plain=0.5, bias=0.0, weights={"covered": -3.0, "margin": 0.1}
    )
    found = MemoryIndex(WORLD).search(Query("Fritz Lang"), 3)
    verdict = judge("Fritz Lang", found, select("Fritz Lang", found, 100, ASK), None, ASK, fit)
    assert verdict.features[0][0] == "covered"
    assert not verdict.enough


def test_counts_of_words() -> None:
    index = MemoryIndex(WORLD)
    assert isinstance(index, CountsWords)
    counts = index.count_words("Which river, which RIVERS of Lang is in Atlantis?")
    assert counts.passages == len(WORLD)
    assert dict(counts.words) == {"river": 2, "RIVERS": 2, "Lang": 2, "Atlantis": 0}
