"""CoRe in the reasoning prompt (Appendix E): IRCoT and decompose behind repeated passages and repeated reasoning, on a
tape.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mindchat import events as ev

from ..fakes import LANG, METROPOLIS, WORLD, ListRetriever, of, run

QUESTION = "Where was the director of Metropolis born?"
FIRST, SECOND, LAST = "Metropolis was directed by Fritz Lang.", " He was born in Vienna.", " So the answer is Vienna."


def reasoning(events: list[ev.Event]) -> list[ev.PromptBuilt]:
    return [e for e in of(events, ev.PromptBuilt) if e.purpose == "reasoning"]


@pytest.mark.parametrize("how", ["hop", "sentence"])
def test_ircot_repeats_after_every_sentence(how: str) -> None:
    found = ListRetriever([METROPOLIS], [LANG])
    events = run(
        QUESTION,
        [f"{FIRST} X", LAST, "Vienna"],
        "engine.policy=ircot",
        "layout.repeat=1",
        f"layout.reasoning={how}",
        retriever=found,
    )
    first, second = reasoning(events)
    assert first.copies == (("p1",), ("p1",))
    assert second.copies == (("p1", "p2"), ("p1", "p2"))
    assert first.sent.count("Notes:") == 0
    assert second.sent.count(FIRST) == 2, "once in the first copy, once as what is continued"
    assert second.sent.index(f"Notes: {FIRST}") < second.sent.index("Look again the input prompt:")
    assert second.prompt.messages[-1].text == FIRST
    assert isinstance(events[-1], ev.AnswerReady)
    assert events[-1].answer.short == "Vienna"


def test_decompose_repeats_with_every_sub_question_and_names_them_once() -> None:
    tape = [" Who directed Metropolis?\n2. Where was Fritz Lang born?", f"{FIRST} X", f"{SECOND}{LAST}", "Vienna"]
    found = ListRetriever([METROPOLIS], [LANG])
    settings = ("engine.policy=decompose", "layout.repeat=2", "layout.role=assistant", "layout.reasoning=hop")
    events = run(QUESTION, tape, *settings, retriever=found)
    first, second = reasoning(events)
    assert first.copies == (("p1",),) * 3
    assert second.copies == (("p1", "p2"),) * 3
    assert second.sent.count("Follow these sub-questions one by one:") == 1
    assert second.sent.count(FIRST) == 3
    assert [m.role for m in second.prompt.messages[-4:]] == ["user", "assistant", "user", "assistant"]


def test_without_a_search_only_sentence_lays_out_anew() -> None:
    for how, tape, built in (
        ("sentence", [f"{FIRST} X", f"{SECOND} X", LAST], [0, 1, 2]),
        ("hop", [f"{FIRST}{SECOND}{LAST}"], [0]),
        ("once", [f"{FIRST}{SECOND}{LAST}"], [0]),
    ):
        events = run(
            QUESTION,
            [*tape, "Vienna"],
            "rind.fixed=9",
            "rind.threshold=fixed",
            "layout.repeat=1",
            f"layout.reasoning={how}",
            given=WORLD,
        )
        notes = [
            sum(words in e.sent.partition("Notes:")[2].partition("Look again")[0] for words in (FIRST, SECOND))
            for e in reasoning(events)
        ]
        assert notes == built
        assert [e.text for e in of(events, ev.DraftAccepted) if e.channel == "reasoning"] == [FIRST, SECOND, LAST]
        assert all(len(e.copies) == 1 + (how != "once") for e in reasoning(events))


def test_nothing_is_repeated_without_passages_or_with_repeat_0() -> None:
    for settings, given in ((("layout.repeat=1",), ()), (("layout.repeat=0",), WORLD)):
        events = run(
            QUESTION,
            [f"{FIRST}{LAST}", "Vienna"],
            "rind.threshold=fixed",
            "rind.fixed=9",
            "layout.reasoning=sentence",
            *settings,
            given=given,
        )
        (only,) = reasoning(events)
        assert len(only.copies) == bool(given)
        assert "Look again" not in only.sent


def test_auto_counts_as_one_copy() -> None:
    settings = ("engine.policy=ircot", "layout.repeat=auto", "layout.reasoning=hop")
    events = run(QUESTION, [LAST, "Vienna"], *settings, retriever=ListRetriever([METROPOLIS]))
    assert [e.copies for e in reasoning(events)] == [(("p1",), ("p1",))]


def test_copies_in_the_reasoning_prompt_keep_to_the_window() -> None:
    ranked = tuple(replace(passage, rank=rank) for rank, passage in enumerate(WORLD, 1))
    settings = (
        "rind.threshold=fixed",
        "rind.fixed=9",
        "layout.repeat=3",
        "layout.reasoning=hop",
        "engine.reasoning_tokens=64",
    )
    free = reasoning(run(QUESTION, [LAST, "Vienna"], *settings, given=ranked))[0]
    window = free.tokens + 64 - 1
    events = run(QUESTION, [LAST, "Vienna"], *settings, given=ranked, window=window)
    (dropped,) = of(events, ev.DocumentsDropped)
    assert [d.passage for d in dropped.dropped] == ["p3"]
    assert all(e.tokens < window for e in of(events, ev.PromptBuilt))
    assert reasoning(events)[0].copies == (("p1", "p2"),) * 4
