"""The verdict: what was read, and whether it is about the question."""

from __future__ import annotations

import json

import pytest

from mindchat import events as ev
from mindchat.engine.answering import cite
from mindchat.engine.verdict import about, verdict
from mindchat.events import from_json, to_json
from mindchat.text.language import language
from mindchat.trace import CANNOT_TELL, VERDICTS, fold_all, report, verdict_words
from mindchat.tui.widgets.transcript import SIGNS
from mindchat.values import Answer, Trust

from ..fakes import CURIE, LANG, METROPOLIS, ListRetriever, passage, run

EN = language("en")
CLEVES = passage("c1", "Amalia of Cleves was born in Düsseldorf in 1517.", "Amalia of Cleves")
PLAN = passage("n1", "Deadlines: the grant report is submitted in March.", "notes.txt")
NOTED = passage("m1", "Metropolis was directed by Fritz Lang.", "Metropolis (1927 film)")
FAR = passage("v1", "Vienna lies on the Danube.", "Vienna")
FILM = "Where was the director of Metropolis born?"


@pytest.mark.parametrize(
    ("question", "read", "found"),
    [
        (FILM, [METROPOLIS, LANG], {"p1", "p2"}),  # named, and linked from there
        (FILM, [LANG, METROPOLIS, FAR], {"p1", "p2", "v1"}),  # linked over two steps, in whatever order they were read
        (FILM, [METROPOLIS, CURIE], {"p1"}),
        (FILM, [CLEVES], set()),
        (FILM, [], set()),
        ("Where was Lang, Fritz born?", [LANG, CURIE], {"p2"}),
        ("Who was Fritz Lang's wife?", [LANG], {"p2"}),
        ("when is the deadline of the grant report?", [PLAN, CURIE], {"n1"}),  # no name: half of the content words
        ("Where was the director of NOSFERATU born?", [METROPOLIS, LANG], set()),
        ("What happened in the film metropolis?", [NOTED], {"m1"}),
    ],
)
def test_which_passages_are_about_a_question(question: str, read: list, found: set[str]) -> None:  # type: ignore[type-arg]
    assert about(question, read, EN) == found


@pytest.mark.parametrize(
    ("question", "short", "read", "word"),
    [
        (FILM, "Vienna", [METROPOLIS, LANG], "sourced"),
        (
            FILM,
            "Düsseldorf",
            [CLEVES, CURIE],
            "doubtful",
        ),  # README's second example over the demo: cited, from a passage about nothing asked
        (FILM, "Rome", [METROPOLIS, LANG], "doubtful"),
        (FILM, "yes", [METROPOLIS, LANG], "doubtful"),
        (FILM, "Vienna", [], "doubtful"),
    ],
)
def test_the_word_follows_from_the_citations(question: str, short: str, read: list, word: str) -> None:  # type: ignore[type-arg]
    said, why = verdict(question, cite(short, short, read), read, EN)
    assert said == word
    assert why


@pytest.mark.parametrize(
    ("said", "found", "word"),
    [
        ("Vienna", [METROPOLIS, LANG], "sourced"),
        ("Düsseldorf", [CLEVES], "doubtful"),
        ("not stated", [LANG], "unresolved"),
        ("", [LANG], "unresolved"),
    ],
)
def test_a_turn_ends_with_a_verdict_and_no_number(said: str, found: list, word: str) -> None:  # type: ignore[type-arg]
    shown = report(fold_all(run(FILM, [said], "engine.policy=once", retriever=ListRetriever(found))))
    assert (shown["verdict"], shown["trust"], shown["confidence"], shown["abstained"]) == (
        word,
        None,
        None,
        word == "unresolved",
    )
    assert not any(character.isdigit() and "[" not in shown["why"] for character in shown["why"]), (
        "no number is shown that nobody fitted"
    )


def test_trust_is_the_confidence_and_is_said_as_so_many_of_ten() -> None:
    sure = Answer("x", "x", False, "sourced", trust=Trust(0.72, 0.8, 160))
    assert sure.confidence == 0.72
    assert "7 of 10" in verdict_words(sure)
    assert verdict_words(Answer("x", "x", False, "sourced")) == f"sourced · {CANNOT_TELL}"
    assert verdict_words(Answer("", "", True, "unresolved")) == "unresolved"


def test_every_verdict_has_words_and_a_sign() -> None:
    assert set(VERDICTS) == set(SIGNS) == {"sourced", "doubtful", "unresolved", "not_in_documents"}


def test_an_event_of_the_time_of_the_confidence_can_still_be_read() -> None:
    now = json.loads(to_json(ev.AnswerReady(Answer("x", "x", False), "answered")))
    now["answer"] = {
        "text": "x",
        "short": "x",
        "abstained": False,
        "confidence": 0.9,
        "citations": [],
        "why": "confidence 0.90",
    }
    old = from_json(json.dumps(now))
    assert isinstance(old, ev.AnswerReady)
    assert (old.answer.verdict, old.answer.confidence) == ("doubtful", None)
