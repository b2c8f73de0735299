"""“Your documents do not say”: before any model call, with near names; asked all the same where that is wished."""

from __future__ import annotations

from typing import Any

import pytest

from mindchat import events as ev
from mindchat.corpus.search.memory_index import MemoryIndex
from mindchat.engine.refusal import NOTHING_SAID, mistyped
from mindchat.trace import fold_all, report
from mindchat.values import Absent, Answer, Recalled

from ..fakes import LANG, WORLD, ListMemory, of, run

ONCE = ("engine.policy=once",)
NOWHERE = "Who composed The Glass Heron of Vostronia?"


def answered(events: list[ev.Event]) -> Answer:
    end = events[-1]
    assert isinstance(end, ev.AnswerReady)
    return end.answer


def ask(question: str, *sets: str, **rest: Any) -> list[ev.Event]:
    return run(question, ["Vienna"], *ONCE, *sets, retriever=MemoryIndex(WORLD), **rest)


@pytest.mark.parametrize(
    "question", [NOWHERE, "Where was Ludmila Vrabcova born?", "Who directed the film Metropolitana Vostronia?"]
)
def test_a_name_that_no_document_has_is_refused_before_any_search_or_model_call(question: str) -> None:
    events = ask(question)
    answer = answered(events)
    assert answer.verdict == "not_in_documents"
    assert answer.abstained
    assert answer.citations == ()
    assert answer.text.startswith(NOTHING_SAID)
    (absent,) = of(events, ev.NamesAbsent)
    assert all(item.name in answer.text and all(near in answer.text for near in item.near) for item in absent.absent)
    assert not of(events, ev.ModelAsked)
    assert not of(events, ev.PassagesFound)
    shown = report(fold_all(events))
    assert (shown["verdict"], shown["abstained"], shown["citations"], shown["confidence"]) == (
        "not_in_documents",
        True,
        [],
        None,
    )


def test_names_that_are_there_but_nothing_that_is_asked_is_refused_before_the_model_call() -> None:
    events = ask("How many horses and which castles did Fritz Lang sell to bakers?")
    assert answered(events).verdict == "not_in_documents"
    assert not of(events, ev.ModelAsked)
    assert of(events, ev.EvidenceChosen)


@pytest.mark.parametrize("question", [NOWHERE, "How many horses and which castles did Fritz Lang sell to bakers?"])
def test_the_model_is_asked_all_the_same_where_that_is_wished(question: str) -> None:
    events = ask(question, "answer.refuse=off")
    assert of(events, ev.ModelAsked)
    assert answered(events).verdict != "not_in_documents"


def test_a_policy_without_a_search_and_given_passages_refuse_nothing() -> None:
    for sets, rest in ((("engine.policy=none",), {}), ((), {"given": WORLD})):
        assert of(run(NOWHERE, ["Vienna"], *ONCE, *sets, retriever=MemoryIndex(WORLD), **rest), ev.ModelAsked)


def test_what_memory_knows_is_not_missing() -> None:
    events = ask(NOWHERE, memory=ListMemory({"Vostronia": Recalled(skip=(LANG,), why="known")}))
    assert of(events, ev.SearchSkipped)
    assert not answered(events).text.startswith(f"{NOTHING_SAID} No document names")


def test_a_mistyped_name_is_read_as_the_one_that_is_there_and_said() -> None:
    events = ask("Where was Fritz Lnag born?")
    assert [event.standalone for event in of(events, ev.QuestionRewritten)] == ["Where was Fritz Lang born?"]
    assert answered(events).verdict == "sourced"


@pytest.mark.parametrize(
    ("name", "near", "meant"),
    [
        ("Metropoliss", ("Metropolis",), "Metropolis"),
        ("Fritz Lnag", ("Fritz Lang",), "Fritz Lang"),
        ("Apollo 18", ("Apollo 17",), ""),
        ("Vostronia", ("Voltaire",), ""),
        ("Marie Curie", (), ""),
        ("Ann", ("Anne",), ""),
        ("John Smyth", ("John Smith", "Jon Smyth"), ""),
    ],
)
def test_which_near_name_is_meant(name: str, near: tuple[str, ...], meant: str) -> None:
    assert mistyped(Absent(name, near)) == meant


def test_a_citation_is_shown_only_of_a_passage_about_the_question() -> None:
    from ..fakes import ListRetriever, passage

    cleves = passage("c1", "Amalia of Cleves was born in Düsseldorf.", "Amalia of Cleves")
    events = run("Where was the director of Metropolis born?", ["Düsseldorf"], *ONCE, retriever=ListRetriever([cleves]))
    assert answered(events).citations == ()
    assert answered(events).verdict == "doubtful"
