"""The window: never over it, whole things only, every drop named."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindchat.engine.budget import fit, recent, remembered
from mindchat.errors import WindowError
from mindchat.events import DocumentsDropped, PromptBuilt, QuestionRewritten
from mindchat.prompts.core import AssistantRole, UserRole
from mindchat.trace import Trace, fold, report
from mindchat.values import Budget, Fact, Message, Passage, Prompt, Recalled, Text, TurnState

from ..fakes import ListMemory, config, of, passage, run

sizes = st.lists(st.integers(1, 60), max_size=20)


def count(prompt: Prompt) -> int:
    return sum(len(message.text.split()) for message in prompt.messages)


def shown(prompt: Prompt) -> str:
    return "\n".join(message.text for message in prompt.messages)


@settings(max_examples=500, deadline=None)
@given(
    sizes,
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(10, 900),
    st.integers(0, 60),
    st.integers(0, 2),
    st.sampled_from(["user", "assistant"]),
)
def test_any_documents_and_window(
    lengths: list[int], turns: int, facts: int, window: int, room: int, copies: int, role: str
) -> None:
    passages = tuple(
        passage(f"p{n}", " ".join(f"w{n}x{i}" for i in range(size)), f"T{n}", rank=n % 3 + 1)
        for n, size in enumerate(lengths)
    )
    hop = TurnState(
        1, "Who was it?", passages=passages, facts=tuple(Fact(f"f{n}", f"s{n}", "is", "o", 1.0) for n in range(facts))
    )
    history = [(f"old question {n}", "old answer") for n in range(turns)]
    composer = (UserRole if role == "user" else AssistantRole)(config())
    try:
        fitted = fit(lambda h, past: composer.answer(h, copies, past), hop, history, count, Budget(window, room))
    except WindowError:
        bare = composer.answer(TurnState(1, "Who was it?"), copies, history[-1:])
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
    assert [name for name in named if name.startswith("turn:")] == [
        f"turn: old question {n}" for n in range(turns) if f"question {n}" not in shown(fitted.prompt)
    ]
    assert not turns or f"old question {turns - 1}" in shown(fitted.prompt), "the newest turn stays"
    assert len(fitted.hop.facts) == facts - sum(name.startswith("memory:") for name in named)
    assert [p for p in hop.passages if p in fitted.hop.passages] == list(fitted.hop.passages), "order kept"


def test_older_turns_go_first_then_memory_then_the_worst_passages() -> None:
    best, worst = passage("best", "b " * 30, rank=1), passage("worst", "w " * 30, rank=9)
    hop = TurnState(1, "Who?", passages=(worst, best), facts=(Fact("f1", "s", "p", "o", 1.0),))
    sizes_seen: list[str] = []

    def compose(h: TurnState, past: object) -> Prompt:
        return UserRole(config()).answer(h, 0, past)  # type: ignore[arg-type]

    fitted = fit(
        compose, hop, [("asked before", "answered"), ("asked last", "answered")], lambda p: count(p), Budget(78, 0)
    )
    sizes_seen = [drop.passage for drop in fitted.dropped]
    assert sizes_seen == ["turn: asked before", "memory: f1", "worst"]
    assert fitted.hop.passages == (best,)


def test_a_question_too_long_beside_the_newest_turn_says_so() -> None:
    with pytest.raises(WindowError, match="beside the turn before it") as failure:
        fit(
            lambda hop, past: Prompt((Message("user", (Text("word " * 30 * len(past)),)),)),
            TurnState(0, "?"),
            [("a", "b")],
            count,
            Budget(20, 0),
        )
    assert "new conversation" in failure.value.hint


def test_a_question_too_long_is_refused_with_both_numbers() -> None:
    prompt = Prompt((Message("user", (Text("word " * 50),)),))
    with pytest.raises(WindowError, match=r"50 tokens.*window has 40"):
        fit(lambda hop, past: prompt, TurnState(0, "?"), [], count, Budget(40, 0))


def test_ten_hops_of_ten_documents_stay_within_the_window_and_drops_are_told() -> None:
    many: tuple[Passage, ...] = tuple(
        passage(f"d{n}", f"topic{n % 10} " * 40, f"T{n}", rank=n % 10 + 1) for n in range(100)
    )
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
    trace = Trace()
    for event in events:
        trace = fold(trace, event)
    assert [d["passage"] for d in report(trace)["context"]["dropped"]] == dropped, (
        "what people and programs are shown names every one"
    )


# ── allowances of their own
# ──────────────────────────────────────────────────────────────────────────────────────────────


def words_of(text: str) -> int:
    return len(text.split())


@given(st.lists(st.integers(1, 30), max_size=12), st.integers(0, 6), st.integers(0, 120))
def test_the_history_keeps_its_newest_turns_within_both_allowances(lengths: list[int], turns: int, tokens: int) -> None:
    history = [(f"q{n}", " ".join(["a"] * size)) for n, size in enumerate(lengths)]
    kept, dropped = recent(history, words_of, turns, tokens)
    assert kept == history[len(history) - len(kept) :]
    assert len(kept) <= turns
    assert len(kept) == 1 or sum(words_of(f"{asked}\n{answer}") for asked, answer in kept) <= tokens
    assert bool(kept) == bool(history and turns and tokens), "the newest turn stays"
    if turns and tokens:
        assert bool(dropped) == (len(kept) < len(history))
        assert sum(drop.passage.startswith("turn: q") for drop in dropped) == min(turns, len(history)) - len(kept)
    else:
        assert (kept, dropped) == ([], ())


def fact(n: int, words: int = 3) -> Fact:
    return Fact(f"f{n}", f"s{n}", "is", " ".join(["o"] * words), 1.0)


def size(facts: Sequence[Fact]) -> int:
    return sum(words_of(f"{f.subject} {f.predicate} {f.object}") for f in facts)


@given(st.lists(st.integers(1, 30), max_size=10), st.integers(0, 8), st.integers(0, 100), st.integers(1, 2000))
def test_new_facts_stand_within_memorys_allowances_or_are_named(
    lengths: list[int], most: int, tokens: int, window: int
) -> None:
    news = [fact(n, words) for n, words in enumerate(lengths)]
    kept, dropped = remembered((), news, size, most, tokens, window)
    assert len(kept) <= most
    assert size(kept) <= min(tokens, window // 10)
    assert [f"memory: {f.id}" for f in news if f not in kept] == [drop.passage for drop in dropped]


def test_which_allowance_left_a_fact_out_is_said() -> None:
    news = [fact(0), fact(1)]
    assert remembered((), news, size, 1, 256, 4096)[1][0].why == "over memory.max_facts = 1"
    assert remembered((), news, size, 6, 7, 4096)[1][0].why == "over memory.max_tokens = 7"
    assert remembered((), news, size, 6, 256, 79)[1][0].why == "over a tenth of the window of 79 tokens"


def test_facts_over_the_allowance_are_left_out_of_the_prompt_visibly() -> None:
    facts = tuple(fact(n, 12) for n in range(6))
    memory = ListMemory({"Metropolis": Recalled(facts)})
    events = run(
        "Who directed the film Metropolis?", ["Lang"], "engine.policy=once", "memory.max_tokens=60", memory=memory
    )
    dropped = [d.passage for e in of(events, DocumentsDropped) for d in e.dropped]
    (answer,) = of(events, PromptBuilt)
    shown_facts = [f.id for f in facts if f"| is | {'o ' * 11}o" in answer.sent and f"] {f.subject} |" in answer.sent]
    assert 0 < len(shown_facts) < 6
    assert dropped == [f"memory: {f.id}" for f in facts if f.id not in shown_facts]
    block = answer.sent[answer.sent.index("<memory") : answer.sent.index("</memory>")]
    assert len(block.split()) <= 60


def test_a_follow_up_sees_the_newest_turns_and_the_rest_is_named() -> None:
    history = tuple((f"Who is person {n}?", "word " * 20 + f"Name{n}") for n in range(6))
    tape = [" Where was Name5 born?", "Vienna"]
    events = run(
        "And where was he born?",
        tape,
        "engine.policy=once",
        "engine.history_tokens=60",
        "engine.history_turns=4",
        history=history,
    )
    dropped = [(d.passage, d.why) for e in of(events, DocumentsDropped) for d in e.dropped]
    assert [name for name, _ in dropped] == ["turns: the first 2", "turn: Who is person 2?", "turn: Who is person 3?"]
    assert dropped[0][1] == "over engine.history_turns = 4"
    assert dropped[1][1] == "over engine.history_tokens = 60"
    assert of(events, QuestionRewritten)[0].standalone == "Where was Name5 born?"
    (built,) = of(events, PromptBuilt)
    assert "Name4" in built.sent
    assert "Name5" in built.sent
    assert "Name3" not in built.sent


@pytest.mark.parametrize("off", ["engine.history_turns=0", "engine.history_tokens=0"])
def test_a_history_that_is_switched_off_is_no_omission(off: str) -> None:
    events = run(
        "And where was he born?", ["Vienna"], "engine.policy=once", off, history=(("Who directed it?", "Lang"),)
    )
    assert of(events, DocumentsDropped) == []
    assert of(events, QuestionRewritten) == []
