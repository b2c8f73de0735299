"""Answers of another type than the question asks for."""

from __future__ import annotations

import pytest

from mindchat import events as ev
from mindchat.corpus.search.memory_index import MemoryIndex
from mindchat.values import Answer

from ..fakes import CURIE, LANG, METROPOLIS, passage, run

VIENNA = passage("v1", "Vienna is a city on the Danube.", "Vienna")
BORN = "Where was the director of Metropolis born?"


def answer(question: str, said: str, *sets: str) -> Answer:
    world = (METROPOLIS, LANG, CURIE, VIENNA)
    end = run(
        question, [said], "engine.policy=once", "answer.refuse=off", "retrieve.k=4", *sets, retriever=MemoryIndex(world)
    )[-1]
    assert isinstance(end, ev.AnswerReady)
    return end.answer


@pytest.mark.parametrize(
    ("question", "said", "short"),
    [
        (BORN, "Fritz Lang was born in Vienna", "Vienna"),
        ("When was Fritz Lang born?", "He was born on 5 December 1890 in that town", "5 December 1890"),
    ],
)
def test_a_sentence_is_cut_to_the_part_of_the_asked_type(question: str, said: str, short: str) -> None:
    assert answer(question, said).short == short
    assert answer(question, said, "answer.typed=off").short == said


@pytest.mark.parametrize("said", ["Fritz Lang", "1927"])
def test_what_does_not_fit_is_doubtful(said: str) -> None:
    assert answer(BORN, said).verdict == "doubtful"
    assert answer(BORN, said, "answer.typed=off").verdict == "sourced"


def test_what_fits_is_left_alone() -> None:
    found = answer(BORN, "Vienna")
    assert (found.short, found.verdict) == ("Vienna", "sourced")
