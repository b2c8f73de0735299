"""Slots in a trace: each at the hop that brought its passage."""

from __future__ import annotations

from mindchat import events as ev
from mindchat.trace import Trace, fold_all, slot_words
from mindchat.values import Filled, Query, Span

from .fakes import LANG, METROPOLIS


def slot(passage: str, value: str) -> Filled:
    return Filled("S", "director", "director", value, passage, "d", 0, 1, Span(0, 1), "pattern", 0.9)


def test_a_slot_stands_at_the_hop_that_brought_its_passage() -> None:
    trace = fold_all(
        [
            ev.QueryFormed(Query("one"), 1),
            ev.PassagesFound("one", (METROPOLIS,), 1),
            ev.QueryFormed(Query("two"), 2),
            ev.PassagesFound("two", (LANG,), 1),
            ev.SlotFilled(slot("p1", "A"), 2),
            ev.SlotFilled(slot("p2", "B"), 2),
            ev.SlotFilled(slot("gone", "C"), 2),
        ]
    )
    assert [[s.value for s in hop.slots] for hop in trace.hops] == [["A"], ["B", "C"]]
    assert [s.value for s in trace.slots] == ["A", "B", "C"]
    assert slot_words(trace.slots[0]) == "S – director: A"


def test_a_slot_before_any_hop_is_kept() -> None:
    assert [s.value for s in fold_all([ev.SlotFilled(slot("p1", "A"), 0)]).slots] == ["A"]
    assert Trace().slots == ()
