"""How often the documents are read: auto, core, thinking first, other words; on a tape."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mindchat import events as ev
from mindchat.engine.reading import PROBE_TOKENS, attention_shares
from mindchat.engine.rewording import RewordingFile, key_of
from mindchat.models.scripted import Reply
from mindchat.prompts.core import copies_of
from mindchat.trace import fold_all, report
from mindchat.values import Piece, Signal

from ..fakes import CURIE, LANG, METROPOLIS, WORLD, engine, of, passage, run
from .conftest import with_parts

QUESTION = "Where was the director of Metropolis born?"
AUTO = ("layout.repeat=auto", "engine.policy=none")
UNSURE, SURE = "Vienna{2.0} city{1.5}", "Vienna"


def prompts(events: list[ev.Event]) -> list[tuple[str, int]]:
    """(purpose, copies) of every prompt."""
    return [(e.purpose, len(e.copies)) for e in of(events, ev.PromptBuilt)]


def calls(events: list[ev.Event]) -> list[str]:
    return [e.kind for e in of(events, ev.ModelAsked)]


def told(events: list[ev.Event]) -> str:
    return " ".join(e.text for e in of(events, ev.Notice))


def answer(events: list[ev.Event]) -> ev.AnswerReady:
    assert isinstance(events[-1], ev.AnswerReady), events[-1]
    return events[-1]


# ── auto ──


def test_a_sure_probe_is_the_answer() -> None:
    events = run(QUESTION, [SURE], *AUTO, given=WORLD)
    assert answer(events).answer.short == "Vienna"
    assert prompts(events) == [("probe", 1)]
    assert calls(events) == ["probe"]
    assert "sure: entropy 0.01 of at most 0.5" in told(events)
    assert [e.token.text for e in of(events, ev.TokenDrafted)] == ["Vienna"]
    assert fold_all(events).kept_tokens == 1


def test_the_documents_are_repeated_only_while_the_probe_is_unsure() -> None:
    events = run(QUESTION, [UNSURE, UNSURE, SURE], *AUTO, given=WORLD)
    assert prompts(events) == [("probe", 1), ("probe", 2), ("probe", 3)]
    assert answer(events).answer.short == "Vienna"
    assert "5 of 6 orders of 3 documents" in told(events)
    assert "6 of 6 orders of 3 documents" in told(events)
    shown = report(fold_all(events))
    assert shown["layout"]["repeat"] == "auto"
    assert shown["counts"]["generated_side"] == 4, "the words of the two discarded probes"


def test_never_more_copies_than_order_can_need() -> None:
    events = run(QUESTION, [UNSURE] * 3, *AUTO, given=WORLD)
    assert prompts(events) == [("probe", 1), ("probe", 2), ("probe", 3)]
    assert "3 copies hold every order of 3 documents" in told(events)
    assert answer(events).answer.short == "Vienna city"
    many = tuple(METROPOLIS for _ in range(9))
    assert len(prompts(run(QUESTION, [UNSURE] * 9, *AUTO, given=many))) == 4
    assert prompts(run(QUESTION, [UNSURE], *AUTO, given=(LANG,))) == [("probe", 1)], "one document has one order"


def test_never_over_the_window_and_no_document_is_dropped_for_a_copy() -> None:
    whole = run(QUESTION, [UNSURE, UNSURE, SURE], *AUTO, given=WORLD)
    two, three = (e.tokens for e in of(whole, ev.PromptBuilt)[1:])
    room = 32
    for window, copies in ((two + room - 1, 1), (two + room, 2), (three + room - 1, 2), (three + room, 3)):
        events = run(QUESTION, [UNSURE] * 3, *AUTO, given=WORLD, window=window)
        assert len(prompts(events)) == copies
        assert not of(events, ev.DocumentsDropped)
        assert all(e.tokens + room <= window for e in of(events, ev.PromptBuilt))
    assert "another copy needs" in told(run(QUESTION, [UNSURE], *AUTO, given=WORLD, window=two + room - 1))


def test_a_comparison_is_not_repeated() -> None:
    events = run("Who was born earlier, Fritz Lang or Marie Curie?", ["Fritz{3} Lang"], *AUTO, given=WORLD)
    assert prompts(events) == [("answer", 1)]
    assert "comparison" in told(events)


def test_a_name_that_ends_like_a_comparison_is_none() -> None:
    events = run("Who was the father of the Earl of Strathmore and Kinghorne?", [UNSURE, SURE], *AUTO, given=WORLD)
    assert prompts(events) == [("probe", 1), ("probe", 2)]


def test_an_answer_that_says_nothing_is_unsure() -> None:
    events = run(QUESTION, ["unknown", SURE], *AUTO, given=WORLD)
    assert prompts(events) == [("probe", 1), ("probe", 2)]
    assert answer(events).answer.short == "Vienna"


def test_a_long_answer_is_continued_by_its_own_ids() -> None:
    words = [f"word{n}" for n in range(12)]
    first, rest = " ".join(words[:PROBE_TOKENS]), " " + " ".join(words[PROBE_TOKENS:])
    events = run(QUESTION, [" ".join(words), rest], *AUTO, given=WORLD)
    assert calls(events) == ["probe", "answer"]
    assert answer(events).answer.text == " ".join(words)
    last = of(events, ev.PromptBuilt)[-1]
    assert last.prompt.messages[-1].text == "Answer:" + first
    assert [e.token.index for e in of(events, ev.TokenDrafted)] == list(range(12))


def test_the_threshold_is_a_setting() -> None:
    assert len(prompts(run(QUESTION, [UNSURE], *AUTO, "layout.auto_entropy=2", given=WORLD))) == 1
    assert len(prompts(run(QUESTION, [SURE] * 3, *AUTO, "layout.auto_entropy=0", given=WORLD))) == 3


def test_a_model_without_entropy_repeats_once_and_says_so() -> None:
    events = run(QUESTION, [SURE], *AUTO, given=WORLD, provides=frozenset({Signal.LOGPROB}))
    assert prompts(events) == [("answer", 2)]
    assert "no entropy" in told(events)


def test_without_documents_nothing_is_probed() -> None:
    assert prompts(run(QUESTION, [SURE], *AUTO)) == [("answer", 0)]


# ── core ──


def test_core_repeats_what_the_first_reading_used() -> None:
    fixed = ("layout.repeat=2", "layout.as=core", "engine.policy=none")
    events = run(QUESTION, [SURE, SURE], *fixed, given=WORLD, provides=frozenset({Signal.LOGPROB, Signal.ENTROPY}))
    assert prompts(events) == [("probe", 1), ("answer", 3)]
    assert of(events, ev.PromptBuilt)[-1].copies == (("p1", "p2", "p3"), ("p2",), ("p2",))
    assert "1 of 3 documents" in told(events)
    assert "holds the short answer" in told(events)


def test_core_looks_at_attention_where_it_is_measured() -> None:
    long = tuple(p for p in (METROPOLIS, LANG, CURIE))
    events = run(QUESTION, [SURE, SURE], "layout.repeat=1", "layout.as=core", "engine.policy=none", given=long)
    assert calls(events) == ["probe", "attention", "answer"]
    assert "% of the attention" in told(events)
    assert set(of(events, ev.PromptBuilt)[-1].copies[1]) >= {"p2"}


def test_core_without_a_trace_of_use_repeats_everything() -> None:
    events = run(
        QUESTION,
        ["yes", "yes"],
        "layout.repeat=1",
        "layout.as=core",
        "engine.policy=none",
        given=WORLD,
        provides=frozenset({Signal.ENTROPY}),
    )
    assert of(events, ev.PromptBuilt)[-1].copies == (("p1", "p2", "p3"),) * 2
    assert "every document is repeated" in told(events)


def test_shares_of_attention() -> None:
    pieces = [
        Piece("x", 5.0, "template"),
        Piece("a", 0.2, "passage"),
        Piece("b", 0.1, "passage"),
        Piece("-", 9.0, "instruction"),
        Piece("c", 0.1, "passage"),
    ]
    first, second = attention_shares(pieces, 2)
    assert math.isclose(first, 0.75)
    assert math.isclose(second, 0.25)
    assert attention_shares(pieces, 3) == (), "passages could not be told apart"
    assert attention_shares([], 0) == ()


# ── thinking first ──


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_thinking_first_then_the_short_answer(role: str) -> None:
    tape = [" Metropolis is by Lang. Lang is from Vienna.", " Vienna"]
    events = run(
        QUESTION, tape, "layout.cot=true", "layout.repeat=1", f"layout.role={role}", "engine.policy=none", given=WORLD
    )
    assert prompts(events) == [("thinking", 2), ("answer", 2)]
    assert calls(events) == ["thinking", "answer"]
    first, second = of(events, ev.PromptBuilt)
    assert second.sent.startswith(first.sent + tape[0])
    trace = fold_all(events)
    assert trace.reasoning == tape[0]
    assert answer(events).answer.short == "Vienna"


def test_a_sure_probe_spares_the_thinking() -> None:
    assert calls(run(QUESTION, [SURE], *AUTO, "layout.cot=true", given=WORLD)) == ["probe"]
    unsure = run(QUESTION, [UNSURE] * 3 + [" Because.", " Vienna"], *AUTO, "layout.cot=true", given=WORLD)
    assert calls(unsure) == ["probe", "probe", "probe", "thinking", "answer"]
    assert prompts(unsure)[-2:] == [("thinking", 3), ("answer", 3)]


# ── other words ──


def test_each_document_is_reworded_once_also_across_restarts(tmp_path: Path) -> None:
    file = tmp_path / "cache" / "rewordings.jsonl"

    def ask(tape: list[str]) -> list[ev.Event]:
        loop = engine(tape, "layout.repeat=1", "layout.as=summary", "engine.policy=none", given=WORLD)
        return list(with_parts(loop, rewordings=RewordingFile(file)).run(QUESTION))

    first = ask(["A German film.", "A man from Vienna.", "A woman from Warsaw.", SURE])
    assert calls(first) == ["summary"] * 3 + ["answer"]
    again = ask([SURE])
    assert calls(again) == ["answer"]
    for events in (first, again):
        (built,) = of(events, ev.PromptBuilt)
        assert "Document [1] Fritz Lang: A man from Vienna." in built.sent
        assert built.sent.count(LANG.text) == 1
    assert copies_of(of(again, ev.PromptBuilt)[0].prompt) == (("p1", "p2", "p3"),) * 2


@settings(max_examples=60, deadline=None)
@given(
    st.integers(80, 340),
    st.permutations((1, 2, 2, 3)),
    st.lists(st.integers(1, 12), min_size=4, max_size=4),
    st.sampled_from(["layout.cot=true", "layout.cot=false"]),
    st.integers(1, 3),
)
def test_what_the_window_drops_is_not_reworded(
    window: int, ranks: list[int], lengths: list[int], cot: str, repeat: int
) -> None:
    """At most one call is in vain: the one whose own words were too many."""
    shown = tuple(passage(f"q{n}", f"Document {n} tells {'more ' * 9}.", rank=rank) for n, rank in enumerate(ranks))
    layout = (f"layout.repeat={repeat}", "layout.as=summary", "engine.policy=none", "engine.reasoning_tokens=40", cot)
    tape = [*(f"Summary {'short ' * length}." for length in lengths), *["Vienna"] * 6]
    loop = engine(tape, *layout, given=shown, window=window)
    events = list(loop.run(QUESTION))
    if isinstance(events[-1], ev.TurnFailed):
        assert events[-1].code == "window"
        return
    built = of(events, ev.PromptBuilt)[0]
    written = calls(events).count("summary")
    stay = len(built.copies[0]) if built.copies else 0
    assert stay <= written <= stay + 1
    assert all(sorted(copy) == sorted(built.copies[0]) for copy in built.copies)
    assert len({p.passage for e in of(events, ev.DocumentsDropped) for p in e.dropped}) == 4 - stay


def test_documents_that_never_fit_are_not_reworded_and_known_words_cost_no_call(tmp_path: Path) -> None:
    ranked = tuple(replace(p, rank=rank) for rank, p in enumerate(WORLD, 1))
    layout = ("layout.repeat=1", "layout.as=summary", "engine.policy=none")
    roomy = run(QUESTION, ["A.", "B.", "C.", SURE], *layout, given=ranked[:2])
    window = of(roomy, ev.PromptBuilt)[-1].tokens + 32
    file = RewordingFile(tmp_path / "r.jsonl")

    def ask(tape: list[str]) -> list[ev.Event]:
        return list(with_parts(engine(tape, *layout, given=ranked, window=window), rewordings=file).run(QUESTION))

    first = ask(["B.", "A.", SURE])
    assert calls(first) == ["summary", "summary", "answer"]
    assert [d.passage for e in of(first, ev.DocumentsDropped) for d in e.dropped] == ["p3"]
    assert calls(ask([SURE])) == ["answer"]


def test_reasoning_without_passages_is_neither_reworded_nor_probed() -> None:
    """SeaKR may answer from its reasoning alone; then there is nothing to repeat."""
    from mindchat.engine.reading import Reading, decide
    from mindchat.engine.turn import Turn
    from mindchat.ports import NEVER

    for repeat in ("auto", "2"):
        loop = engine([], f"layout.repeat={repeat}", "layout.as=summary", given=WORLD)
        turn = Turn(loop._parts, loop._config, QUESTION, (), NEVER, 0.0)
        turn.basis = "reasoning"
        with pytest.raises(StopIteration) as end:
            next(decide(turn))
        assert end.value.value == Reading(0)


def test_a_rewording_that_is_cut_loses_its_half_sentence_and_an_empty_one_stands_as_it_was() -> None:
    cut = Reply("A film. It was " + "very " * 60, ends=False)
    events = run(
        QUESTION,
        ["A woman.", "", cut, SURE],
        "layout.repeat=1",
        "layout.as=paraphrase",
        "engine.policy=none",
        given=WORLD,
    )
    (built,) = of(events, ev.PromptBuilt)
    assert "Metropolis: A film.\n" in built.sent
    assert built.sent.count(LANG.text) == 2
    assert "wrote no paraphrase of Fritz Lang" in told(events)


def test_the_file_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    RewordingFile(path).put("a", "first")
    with path.open("ab") as file:
        file.write(b'{"key":"b","te')
    one, other = RewordingFile(path), RewordingFile(path)
    assert one.get("a") == "first"
    assert one.get("b") is None
    one.put("b", "second\nline")
    assert other.get("b") == "second\nline"
    assert RewordingFile(path).get("a") == "first"
    assert path.stat().st_mode & 0o077 == 0


def test_the_key_names_everything_that_a_rewording_depends_on() -> None:
    base = ("summary", "text", "model", "fp32")
    others = [
        ("paraphrase", *base[1:]),
        ("summary", "other", *base[2:]),
        ("summary", "text", "m2", "fp32"),
        ("summary", "text", "model", "int8"),
    ]
    assert len({key_of(*each) for each in (base, *others)}) == 5


def test_a_full_disk_is_said_and_the_turn_goes_on() -> None:
    class Full:
        def get(self, key: str) -> None:
            return None

        def put(self, key: str, text: str) -> None:
            raise OSError(28, "No space left on device")

    loop = engine(["A.", "B.", "C.", SURE], "layout.repeat=1", "layout.as=summary", "engine.policy=none", given=WORLD)
    events = list(with_parts(loop, rewordings=Full()).run(QUESTION))
    assert "No space left" in told(events)
    assert answer(events).answer.short == "Vienna"


# ── the report ──


def test_the_report_tells_positions_and_tokens() -> None:
    events = run(QUESTION, [SURE], "layout.repeat=1", "layout.as=reverse", "engine.policy=none", given=WORLD)
    context = report(fold_all(events))["context"]
    assert context["copies"] == [["p1", "p2", "p3"], ["p3", "p2", "p1"]]
    assert context["positions"] == {"p1": [1, 3], "p2": [2, 2], "p3": [3, 1]}
    assert context["tokens_new"] + context["tokens_cached"] == context["tokens"] > 0
