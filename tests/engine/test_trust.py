"""The number beside the verdict: only where a fit tells something."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mindchat import events as ev
from mindchat.corpus.search.memory_index import MemoryIndex
from mindchat.engine import trust
from mindchat.engine.trust import Fit, shipped, signals
from mindchat.trace import fold_all, report

from ..fakes import WORLD, draft, run

FIT = Fit(
    date="",
    n=100,
    sets="",
    auroc=0.7,
    low=0.6,
    high=0.8,
    ece=0.05,
    bias=0.0,
    weights={"sourced": 1.0, "max_entropy": -1.0},
)


def test_the_shipped_fits_say_on_what_and_how_well() -> None:
    for fit in shipped().values():
        assert fit.n >= 100
        assert fit.date
        assert fit.low <= fit.auroc <= fit.high
        assert set(fit.weights) == set(signals(draft(("Vienna", 0.1), probability=0.9), 0.5, True, (), "sourced") or {})


def test_a_fit_whose_interval_holds_a_half_gives_no_number() -> None:
    assert FIT.trust({"sourced": 1.0}) is not None
    assert replace(FIT, low=0.49).trust({"sourced": 1.0}) is None


def test_without_signals_there_is_no_number() -> None:
    bare = draft(("Vienna", 0.1))
    assert (
        signals(replace(bare, tokens=tuple(replace(t, entropy=None) for t in bare.tokens)), 0.5, True, (), "sourced")
        is None
    )


@pytest.mark.parametrize(("policy", "given"), [("once", True), ("auto", True), ("mind", False)])
def test_an_answer_carries_it(policy: str, given: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "shipped", lambda: {"scripted": FIT})
    tape = ["So the answer is Vienna.", "Vienna"] if policy == "mind" else ["Vienna"]
    events = run(
        "Where was Fritz Lang born?",
        tape,
        f"engine.policy={policy}",
        "rind.first=true",
        "answer.refuse=off",
        retriever=MemoryIndex(WORLD),
    )
    end = events[-1]
    assert isinstance(end, ev.AnswerReady)
    assert (end.answer.trust is not None) is given
    shown = report(fold_all(events))
    assert (shown["confidence"] is not None) is given
    assert shown["confidence"] == (shown["trust"]["p"] if given else None)
