"""Recorded turns made again with the prefix cache and without it: the account is exact, the words are the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mindchat.errors import MindChatError
from mindchat.events import AnswerReady, PassagesFound, QueryFormed, TurnFailed
from mindchat.lab.bench.recorder import Recorder
from mindchat.lab.bench.turns import FIXED, Same, Turn, Unseen, bench_turns, record, replay
from mindchat.values import Answer, Draft, Message, Passage, Prompt, Query, Signal, Span, Text, Token

pytestmark = pytest.mark.slow

SURE = frozenset({Signal.LOGPROB, Signal.ENTROPY, Signal.ATTENTION})
DOCUMENT = "The capital of France is Paris, and its river is the Seine. " * 4
PASSAGES = [Passage(f"p{i}", f"d{i}", f"D{i}", f"{i}. {DOCUMENT}", 0, 9, rank=i) for i in range(1, 6)]


def prompt(question: str) -> Prompt:
    return Prompt(
        (
            Message("system", (Text("You answer questions about France."),)),
            Message("user", (Text(DOCUMENT, "passage"), Text(question, "question"))),
        )
    )


class Fixed:
    """An engine whose turn is three calls; what it asks, a test says."""

    def __init__(self, model: Recorder) -> None:
        self.model = model
        self.histories: list[int] = []

    def run(self, question: str, *, history: Any = (), **rest: Any) -> Iterator[Any]:
        self.histories.append(len(history))
        if question == "fail":
            yield TurnFailed("window", "Too long.", "Shorten it.")
            return
        stream = self.model.stream(prompt(question), want=SURE, max_tokens=8)
        taken = [item for item, _ in zip(stream, range(4), strict=False) if isinstance(item, Token)]
        stream.close()  # type: ignore[attr-defined]
        assert taken
        yield QueryFormed(Query(question), 1)
        yield PassagesFound(question, (), 0)
        yield QueryFormed(Query(question), 2, True)
        best = max(self.model.choose(prompt(question), [" yes", " no"]), key=lambda choice: choice.logprob).option
        draft = self.model.sample(prompt(question), n=1, want=SURE, max_tokens=3, seed=1)[0]
        self.model.attention(prompt(question), Draft(draft.text, draft.tokens), Span(1, 2))
        yield AnswerReady(Answer(best, best, False, "sourced", ()), "answered")


def turns_of(model: Any, questions: list[str]) -> tuple[list[Turn], Fixed]:
    recorder = Recorder(model)
    engine = Fixed(recorder)
    found: Any = engine
    return record(found, recorder, questions), engine


@pytest.fixture
def model(tiny: Any) -> Any:
    made = tiny("llama")
    made.ends = frozenset()
    return made


def test_every_verb_is_kept_and_made_again(model: Any) -> None:
    (turn,), engine = turns_of(model, ["Is Paris big?"])
    assert [call.verb for call in turn.calls] == ["stream", "choose", "sample", "attention"]
    assert (turn.hops, turn.searches) == (2, 1)
    assert engine.histories == [0]
    assert turn.calls[0].ids == model.format.render(prompt("Is Paris big?")).ids
    assert len(turn.calls[3].ids) == len(turn.calls[0].ids) + 1  # and the draft up to the span
    assert turn.calls[1].again().said == turn.short
    left = turn.calls[0].again().said
    assert 0 < len(left) < 8  # as many tokens as were taken before the stream was left


@pytest.mark.parametrize("family", ["llama", "mistral"])
def test_all_that_is_shared_is_reused_and_the_words_stay(tiny: Any, family: str) -> None:
    model = tiny(family)
    model.ends = frozenset()
    store = model.store
    turns, engine = turns_of(model, ["Is Paris big?", "Is the Seine big?"])
    assert engine.histories == [0, 1]
    first, second = replay(model, turns)
    assert model.store is store
    assert all(made.same for made in (*first, *second))
    assert first[0].shared == first[0].cached == 0
    for made in (*first[1:], *second):
        assert made.cached == made.shared > 0
        assert made.free_cached <= made.cached
    assert second[0].shared < second[0].prompt - 1  # the questions differ
    assert first[1].shared == first[1].prompt - 1  # the same prompt again: all but the token whose logits are wanted


def test_fixed_instructions_are_told_apart(model: Any) -> None:
    turns, _ = turns_of(model, ["Is Paris big?", "Is the Seine big?"])
    made = replay(model, turns)[1][0]
    origins = turns[1].calls[0].origins
    assert made.free == sum(origin not in FIXED for origin in origins)
    assert made.free < made.prompt
    assert made.free_cached == sum(origin not in FIXED for origin in origins[: made.cached])


def test_an_eviction_shows_as_reuse_below_one(model: Any) -> None:
    turns, _ = turns_of(model, ["Is Paris big?"])
    model.section = type(model.section)(cache_mb=0)
    made = replay(model, turns)[0]
    assert made[1].shared > made[1].cached == 0


def test_the_report_looks_at_how_the_last_turn_begins(model: Any) -> None:
    turns, _ = turns_of(model, ["Is Paris big?", "Is Paris big?"])
    report = bench_turns(model, turns)
    assert report["turns"] == report["searches"] == 2
    assert report["calls"] == 8
    assert report["shared_reused"] == 1.0
    assert report["same_text"]
    assert report["last_turn"]["share"] > 0.9
    assert report["last_turn"]["reused"] == 1.0
    assert report["last_turn"]["first_token_speed"] > 0
    assert report["prompt_tokens"] > report["shared_tokens"] == report["cached_tokens"]
    assert report["calls_with_other_text"] == 0
    assert report["calls_60_percent_shared"] == 7  # all but the very first
    assert report["speed_where_60_percent_is_shared"] > 0
    assert report["first_token_speed_where_60_percent_is_shared"] > 0


def test_a_failed_turn_is_no_recording(model: Any) -> None:
    with pytest.raises(MindChatError, match=r"Too long\."):
        turns_of(model, ["fail"])


def test_unseen_brings_each_passage_once_and_same_always_the_same() -> None:
    class All:
        def search(self, query: Query, k: int) -> list[Passage]:
            return PASSAGES[:k]

    unseen, same = Unseen(All()), Same(PASSAGES[:2])
    assert [[p.id for p in unseen.search(Query("a"), 2)] for _ in range(3)] == [["p1", "p2"], ["p3", "p4"], ["p5"]]
    assert [p.id for p in same.search(Query("a"), 3)] == ["p1", "p2"]
