"""The window: never over it, whole things only, every drop named."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindchat.engine.budget import fit
from mindchat.errors import WindowError
from mindchat.events import DocumentsDropped, PromptBuilt
from mindchat.prompts.core import AssistantRole, UserRole
from mindchat.values import Budget, Fact, Hop, Message, Passage, Prompt, Text

from ..fakes import config, of, passage, run

sizes = st.lists(st.integers(1, 60), max_size=20)


def count(prompt: Prompt) -> int:
    return sum(len(message.text.split()) for message in prompt.messages)


def shown(prompt: Prompt) -> str:
    return "\n".join(message.text for message in prompt.messages)


@settings(max_examples=500, deadline=None)
@given(
    sizes, st.integers(0, 4), st.integers(0, 4), st.integers(10, 900), st.integers(0, 60), st.integers(0, 2), st.sampled_from(["user", "assistant"])
)
def test_any_documents_and_window(lengths: list[int], turns: int, facts: int, window: int, room: int, copies: int, role: str) -> None:
    passages = tuple(passage(f"p{n}", " ".join(f"w{n}x{i}" for i in range(size)), f"T{n}", rank=n % 3 + 1) for n, size in enumerate(lengths))
    hop = Hop(1, "Who was it?", passages=passages, facts=tuple(Fact(f"f{n}", f"s{n}", "is", "o", 1.0) for n in range(facts)))
    history = [(f"old question {n}", "old answer") for n in range(turns)]
    composer = (UserRole if role == "user" else AssistantRole)(config())
    try:
        fitted = fit(lambda h, past: composer.answer(h, copies, past), hop, history, count, Budget(window, room))
    except WindowError:
        bare = composer.answer(Hop(1, "Who was it?"), copies, [])
        assert count(bare) + room > window
        return
    assert fitted.tokens == count(fitted.prompt)
    assert fitted.tokens + room <= window
    named = [drop.passage for drop in fitted.dropped]
    assert all(drop.why for drop in fitted.dropped)
    for p in passages:
        times = shown(fitted.prompt).count(p.text)
        assert (times == 0) == (p.id in named), "in whole or named as dropped"
        assert times in (0, copies + 1)
        if p.id in named:
            assert f"{p.text.split()[0]} " not in shown(fitted.prompt) + " ", "no part of a dropped passage stays"
    assert sum(name.startswith("turn:") for name in named) == turns - shown(fitted.prompt).count("old question")
    assert len(fitted.hop.facts) == facts - sum(name.startswith("memory:") for name in named)
    assert [p for p in hop.passages if p in fitted.hop.passages] == list(fitted.hop.passages), "order kept"


def test_history_goes_first_then_memory_then_the_worst_passages() -> None:
    best, worst = passage("best", "b " * 30, rank=1), passage("worst", "w " * 30, rank=9)
    hop = Hop(1, "Who?", passages=(worst, best), facts=(Fact("f1", "s", "p", "o", 1.0),))
    sizes_seen: list[str] = []

    def compose(h: Hop, past: object) -> Prompt:
        return UserRole(config()).answer(h, 0, past)  # type: ignore[arg-type]

    fitted = fit(compose, hop, [("asked before", "answered")], lambda p: count(p), Budget(75, 0))
    sizes_seen = [drop.passage for drop in fitted.dropped]
    assert sizes_seen == ["turn: asked before", "memory: f1", "worst"]
    assert fitted.hop.passages == (best,)


def test_a_question_too_long_is_refused_with_both_numbers() -> None:
    prompt = Prompt((Message("user", (Text("word " * 50),)),))
    with pytest.raises(WindowError, match=r"50 tokens.*window has 40"):
        fit(lambda hop, past: prompt, Hop(0, "?"), [], count, Budget(40, 0))


def test_ten_hops_of_ten_documents_stay_within_the_window_and_drops_are_told() -> None:
    many: tuple[Passage, ...] = tuple(passage(f"d{n}", f"topic{n % 10} " * 40, f"T{n}", rank=n % 10 + 1) for n in range(100))
    tape = [f"Topic{n}{{9,0.9}} was about topic{n} words." for n in range(10)] + ["So the answer is x.", "x"]

    class Retriever:
        def __init__(self) -> None:
            self.at = 0

        def search(self, query: object, k: int) -> tuple[Passage, ...]:
            self.at += 10
            return many[self.at - 10 : self.at]

    events = run(
        "Who?",
        tape,
        "engine.policy=sentences",
        "engine.max_hops=10",
        "retrieve.max_passages=100",
        "retrieve.k=10",
        "engine.max_sentences=20",
        retriever=Retriever(),
        window=1200,
    )
    for built in of(events, PromptBuilt):
        assert built.tokens < built.window == 1200
    dropped = [d.passage for e in of(events, DocumentsDropped) for d in e.dropped]
    last = of(events, PromptBuilt)[-1].copies[0]
    assert dropped
    assert not set(dropped) & set(last)
