"""auto: one call where the answer is sure; else the hop of a bridge, or a second reading; never more than its budget."""

from __future__ import annotations

from typing import Any

from mindchat import events as ev
from mindchat.corpus.search.memory_index import MemoryIndex

from ..fakes import CURIE, LANG, METROPOLIS, ListRetriever, of, passage, run

VIENNA = passage("v1", "Vienna is a city on the Danube.", "Vienna")
WORLD = (METROPOLIS, LANG, CURIE, VIENNA)
BORN = "Where was the director of Metropolis born?"


def turn(tape: list[str], *sets: str, retriever: Any = None) -> list[ev.Event]:
    return run(
        BORN,
        tape,
        "engine.policy=auto",
        "layout.repeat=1",
        "answer.refuse=off",
        "engine.chain=off",
        *sets,
        retriever=retriever or MemoryIndex(WORLD),
    )


def ended(events: list[ev.Event]) -> tuple[str, int]:
    """Short answer, answer calls."""
    end = events[-1]
    assert isinstance(end, ev.AnswerReady)
    return end.answer.short, len(of(events, ev.ModelAsked))


def test_a_sure_answer_is_one_call_without_a_copy() -> None:
    events = turn(["Vienna"])
    assert ended(events) == ("Vienna", 1)
    assert not [event for event in of(events, ev.Notice) if event.text.startswith("auto")]
    assert [len(event.copies) for event in of(events, ev.PromptBuilt)] == [1]


def test_a_bridge_becomes_the_next_hop() -> None:
    early = passage("l0", "Fritz Lang (born 1890) was a director.", "Fritz Lang")
    events = turn(["Fritz Lang", "Vienna"], retriever=ListRetriever([METROPOLIS, early], [LANG]))
    assert ended(events) == ("Vienna", 2)
    assert [event.query.text for event in of(events, ev.QueryFormed)][1].startswith("Fritz Lang ")
    assert "born" in of(events, ev.QueryFormed)[1].query.text
    assert any("one more hop" in event.text for event in of(events, ev.Notice))


def test_an_unsure_answer_is_read_again_with_a_copy_and_the_surer_stays() -> None:
    events = turn(["Vienna{3}", "Vienna{0.1}"])
    assert ended(events) == ("Vienna", 2)
    assert [len(event.copies) for event in of(events, ev.PromptBuilt)] == [1, 2]
    assert ended(turn(["Vienna{2.5}", "Warsaw{3}"])) == ("Vienna", 2)


def test_the_budget_holds() -> None:
    events = turn(["Fritz Lang", "Fritz Lang", "Fritz Lang", "never asked"])
    assert ended(events)[1] <= 3


def test_without_copies_nothing_is_read_again() -> None:
    assert ended(turn(["Vienna{3}"], "layout.repeat=0")) == ("Vienna", 1)


def test_an_answer_that_stands_nowhere_is_read_again() -> None:
    assert ended(turn(["Atlantis", "Vienna"])) == ("Vienna", 2)
