"""A turn on screen: every pane fills, the answer stays, cancel and failure are said, late news is dropped."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import mindchat.engine
from mindchat import events as ev
from mindchat.errors import ModelMissingError
from mindchat.pace import Forecast
from mindchat.trace import Trace
from mindchat.tui.bridge import EventsArrived, SessionView, StartFailed, failure
from mindchat.tui.widgets.status import Status, painted_now
from mindchat.values import Absent, Answer, Filled, Span, Token


async def test_all_panes_fill_while_the_turn_runs(stage: Any, fakes: Any) -> None:
    async with stage(pause=0.1) as s:  # slow enough for a busy machine to look before the turn has ended
        await s.say(fakes.QUESTION)
        await s.until(lambda: "Louis▲1.62" in s.pane("uncertainty"))
        await s.until(lambda: "Copy 2 of 2" in s.pane("context"))
        await s.until(lambda: "Charles Bretagne Marie – father" in s.pane("memory"))
        await s.until(lambda: "father of Jean Bretagne Charles" in s.pane("hops"))
        assert s.chat.busy


async def test_a_citation_on_screen_says_its_page_and_heading(stage: Any, fakes: Any) -> None:
    there = tuple(replace(passage, page=7, heading="Youth") for passage in fakes.PASSAGES)
    news = [replace(event, passages=there) if isinstance(event, ev.PassagesFound) else event for event in fakes.turn()]
    async with stage(script=lambda _: news) as s:
        await s.answer(fakes.QUESTION)
        assert re.search(r"\[1\] Charles Bretagne Marie de La Trémoille › Youth, page 7  “", s.text())


async def test_missing_names_are_told_while_the_turn_runs_and_stay(stage: Any, fakes: Any) -> None:
    news = fakes.turn()
    news.insert(2, ev.NamesAbsent((Absent("Metropolis", ("Metropolitan [b]Opera",)),)))
    async with stage(script=lambda _: news) as s:
        await s.answer(fakes.QUESTION)
        assert (
            "No document names “Metropolis”. Near: “Metropolitan [b]Opera”."
            in s.chat.newest.query_one(".absent").content.plain
        )
        assert s.chat.newest.query_one(".absent").display


def test_every_step_of_the_engine_has_words_for_people() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in Path(mindchat.engine.__file__).parent.glob("*.py"))
    steps, purposes = set(re.findall(r'\.step\(\s*"(\w+)"', source)), set(re.findall(r'\.compose\(\s*"(\w+)"', source))
    assert {"search", "judge"} < steps
    assert {"reasoning", "thinking", "probe"} < purposes
    for phase in [*steps, *(f"prefill {purpose}" for purpose in purposes)]:
        trace = Trace(state="running", phase=phase)
        said = painted_now(Status(SessionView(model_ready=True), trace, Trace(), busy=True)).plain
        assert "prefill" not in said
        assert said.partition("·")[0].strip(" ●") != phase, f"{phase!r} is told as it is named in the code"
        assert ("reading" in said) == (phase.startswith("prefill") or phase == "rewrite")


async def test_answer_reasoning_and_citations(stage: Any, fakes: Any) -> None:
    async with stage() as s:
        await s.answer(fakes.QUESTION)
        text = s.text()
        assert "Charles Armand René de La" in text
        assert "9: unverified" in s.chat.newest.query_one(".answer").source
        assert "▸ reasoning  3 sentences · 1 withdrawn · 2 looked up" in text
        assert "[1] Charles Bretagne Marie" in text
        await s.pilot.press("ctrl+t")
        assert "⟨Louis of Thouars.⟩↩" in s.chat.query_one("Reasoning .reasoning-body").content.plain


async def test_withdrawn_words_are_struck(stage: Any, fakes: Any) -> None:
    from mindchat.tui.widgets.transcript import painted_reasoning

    async with stage() as s:
        await s.answer(fakes.QUESTION)
        content = painted_reasoning(s.chat.newest.trace)
        start = content.plain.index("Louis")
        assert any("strike" in str(span.style) for span in content.spans if span.start <= start < span.end)
        assert content.plain.replace("⟨Louis of Thouars.⟩↩", "").split() == s.chat.newest.trace.reasoning.split()


async def test_context_shows_every_character_sent(stage: Any, fakes: Any) -> None:
    from mindchat.tui.widgets.context import stretches

    built = fakes.prompt(2, "answer")
    assert "".join(piece[0] for piece in stretches(built)) == built.sent
    assert {piece[2] for piece in stretches(built) if piece[1] == "passage"} == {0, 1}


async def test_what_was_left_out_is_named_with_its_reason(stage: Any, fakes: Any) -> None:
    async with stage() as s:
        await s.answer(fakes.QUESTION)
        dropped = s.chat.newest.trace.dropped
        assert dropped
        for each in dropped:
            assert each.passage in s.pane("context")
            assert each.why in s.pane("context")


async def test_folded_copy_opens(stage: Any, fakes: Any) -> None:
    async with stage() as s:
        await s.answer(fakes.QUESTION)
        assert s.pane("context").count(fakes.SON) == 1
        s.chat.query_one("#context").focus()
        await s.pilot.press("x")
        assert s.pane("context").count(fakes.SON) == 2


async def test_word_cursor_shows_entropy_and_attention(stage: Any, fakes: Any) -> None:
    async with stage() as s:
        await s.answer(fakes.QUESTION)
        s.chat.query_one("#uncertainty").focus()
        await s.pilot.press("left")
        assert "score S = H·a·s 1.040" in s.pane("uncertainty")
        assert "raw 0.120" in s.pane("uncertainty")


async def test_the_answers_own_words_show_how_unsure_they_were(stage: Any, fakes: Any) -> None:
    """Also under a policy that does not reason, where no sentence is judged."""
    words = [Token(0, 1, "Lo", -0.1, 0.25), Token(1, 2, "is", -0.1, 1.75)]
    async with stage() as s:
        s.session.script = lambda text: [
            ev.TurnStarted(text, text, "m", "once", "auto", 1, "user", "same"),
            *(ev.TokenDrafted(token, "answer") for token in words),
            ev.DraftAccepted("Lois", "answer", 2),
            ev.AnswerReady(Answer("Lois", "Lois", False, "doubtful"), "answered", 1.0),
        ]
        await s.say(fakes.QUESTION)
        await s.until(lambda: "mean 1.00  peak 1.75 at “is”" in s.pane("uncertainty"))


async def test_a_question_is_stopped_before_its_turn_has_begun(stage: Any, fakes: Any) -> None:
    """The engine thread may still be busy with something that is no turn; Esc in that moment is meant for the question."""
    async with stage(pause=0.01) as s:
        await s.answer(fakes.QUESTION)
        held = threading.Event()
        blocked = asyncio.ensure_future(s.chat.bridge.call(lambda session: held.wait(20)))
        await s.say("And who was his mother?")
        await s.until(lambda: len(s.chat.turns) == 2)
        await s.pilot.press("escape")
        held.set()
        await blocked
        await s.until(lambda: s.chat.newest.trace.state == "cancelled")


async def test_escape_stops_and_the_app_goes_on(stage: Any, fakes: Any) -> None:
    async with stage(pause=0.03) as s:
        await s.say(fakes.QUESTION)
        await s.until(lambda: s.chat.newest and s.chat.newest.trace.reasoning)
        await s.pilot.press("escape")
        await s.until(lambda: s.chat.newest.trace.state == "cancelled")
        assert "stopped" in s.text()
        assert "His father was Jean" in s.text()
        s.session.pause = 0
        await s.answer("again")
        assert s.chat.newest.trace.state == "answered"


async def test_expected_failure_is_said_with_its_hint(stage: Any) -> None:
    script = lambda _: [ev.TurnFailed("index_missing", "Nothing is indexed in [/x].", "Type /index FOLDER.", 3)]  # noqa: E731
    async with stage(script=script) as s:
        await s.answer("x")
        assert "✗ Nothing is indexed in [/x]." in s.text()
        assert "Type /index FOLDER." in s.text()


async def test_a_bug_in_the_engine_ends_the_turn_only(stage: Any) -> None:
    def script(_: str) -> list[ev.Event]:
        raise ValueError("[boom")

    async with stage(script=script) as s:
        await s.answer("x")
        assert "ValueError: [boom" in s.text()
        s.session.script = lambda _: [ev.TurnCancelled("")]
        await s.answer("y")
        assert s.chat.newest.trace.state == "cancelled"


async def test_missing_model_is_said_and_typing_goes_on(stage: Any, fakes: Any, tmp_path: Any) -> None:
    async with stage() as s:
        s.chat.post_message(
            StartFailed(failure(ModelMissingError("The model x is not here.", "mindchat models pull x")), fatal=False)
        )
        await s.until(lambda: "The model x is not here." in s.text())
        await s.pilot.press("a", "b")
        assert s.chat.query_one("Prompt").draft == "ab"


async def test_late_news_of_an_old_turn_is_dropped(stage: Any, fakes: Any) -> None:
    async with stage() as s:
        await s.ready()
        s.chat.post_message(EventsArrived(999, (ev.TurnFailed("x", "zz-late", ""),)))
        await s.pilot.pause(0.1)
        assert "zz-late" not in s.text()


async def test_questions_queue_while_busy(stage: Any, fakes: Any) -> None:
    async with stage(pause=0.004) as s:
        await s.say("first")
        await s.say("second")
        await s.until(lambda: len(s.chat.turns) == 2 and not s.chat.busy)
        assert [view.trace.question for view in s.chat.turns.values()] == ["first", "second"]


async def test_typing_while_the_model_loads(stage: Any) -> None:
    async with stage(slow_load=True) as s:
        await s.until(lambda: "model: load" in s.text())
        await s.pilot.press("h", "i")
        assert s.chat.query_one("Prompt").draft == "hi"
        assert not s.chat.view.model_ready
        s.session.may_load.set()
        await s.ready()


async def test_the_session_lives_in_one_thread(stage: Any, fakes: Any) -> None:
    async with stage() as s:
        await s.answer("x")
        assert s.session.threads == {"mindchat-engine"}
        assert threading.current_thread().name != "mindchat-engine"


async def test_news_is_batched(stage: Any, fakes: Any) -> None:
    batches: list[tuple[float, int]] = []
    async with stage(app_options={"fps": 10.0}, pause=0.01) as s:
        deliver = s.app.bridge._post

        def count(message: Any) -> None:
            if isinstance(message, EventsArrived):
                batches.append((time.monotonic(), len(message.events)))
            deliver(message)

        s.app.bridge._post = count
        await s.say("x")
        await s.until(lambda: s.chat.turns and not s.chat.busy)
    busiest = max(sum(1 for other, _ in batches if start <= other < start + 1) for start, _ in batches)
    assert busiest <= 11
    assert sum(size for _, size in batches) >= len(fakes.turn())


async def test_quit_is_quick_even_if_the_engine_hangs(stage: Any) -> None:
    gate = threading.Event()

    def script(_: str) -> list[ev.Event]:
        gate.wait(5)
        return []

    async with stage(script=script) as s:
        await s.say("x")
        await s.until(lambda: s.chat.busy)
        before = time.monotonic()
        await s.pilot.press("ctrl+q")
        await asyncio.wait_for(_ended(s.app), 2)
        assert time.monotonic() - before < 2
        gate.set()


async def _ended(app: Any) -> None:
    while app.is_running:
        await asyncio.sleep(0.02)


async def test_ctrl_c_never_throws_a_draft_away(stage: Any, tmp_path: Any) -> None:
    async with stage() as s:
        await s.ready()
        s.chat.query_one("Prompt").restore("half a question")
        await s.pilot.press("ctrl+c")
        assert s.app.is_running
        assert s.chat.query_one("Prompt").draft == "half a question"
        await s.pilot.press("ctrl+q")
    async with stage() as s:
        assert s.chat.query_one("Prompt").draft == "half a question"


async def test_what_every_question_begins_with_is_read_before_there_is_one(stage: Any, fakes: Any) -> None:
    async with stage() as s:
        await s.ready()
        await s.until(lambda: s.session.read_for == [s.session.config])
        await s.answer(fakes.QUESTION)
        assert len(s.session.read_for) == 1, "the turn has read it"
        await s.app.bridge.call(lambda session: session.change("engine.policy", "none"))
        await s.until(lambda: s.session.read_for[1:] == [s.session.config])
        assert s.session.threads == {"mindchat-engine"}


async def test_reading_ahead_makes_way_for_a_question_and_for_leaving(stage: Any, fakes: Any) -> None:
    async with stage() as s:
        s.session.reading = True
        await s.until(lambda: s.session.read_for)
        await s.answer(fakes.QUESTION)
        assert s.chat.newest.trace.state == "answered"
        await s.app.bridge.call(lambda session: session.change("engine.policy", "none"))
        await s.until(lambda: len(s.session.read_for) == 2)
        s.app.bridge.stop()
        assert s.app.bridge.join(2.0)


async def test_a_head_start_that_fails_is_no_failure(stage: Any, fakes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Any, *, cancel: Any) -> int:
        raise RuntimeError("no memory left")

    monkeypatch.setattr(fakes.FakeSession, "read_ahead", broken)
    async with stage() as s:
        await s.ready()
        await s.answer(fakes.QUESTION)
        assert s.chat.newest.trace.state == "answered"


async def test_a_long_question_is_announced_before_it_is_asked(stage: Any, fakes: Any) -> None:
    async with stage(pause=0.05) as s:
        s.session.expected = Forecast(2000, 40, 47.0)
        await s.say("/status")  # the screens look at the session again after each command
        await s.until(lambda: "ready, about 47 s a question" in s.text())
        await s.say(fakes.QUESTION)
        await s.until(lambda: "s of about 47 s" in s.text())
        s.session.expected = Forecast(200, 40, 7.0)
        await s.until(lambda: not s.chat.busy)
        await s.until(lambda: "ready" in s.text() and "about" not in s.text().splitlines()[-2])


async def test_a_relation_that_was_read_stands_in_the_hops(stage: Any, fakes: Any) -> None:
    source = fakes.PASSAGES[0]
    place = (source.id, source.document, source.start, source.start + 1, Span(source.start, source.end))
    slot = Filled("Jean [b]Bretagne", "father", "father", "Charles", *place, "memory", 0.9)
    news = fakes.turn()
    news.insert(-1, ev.SlotFilled(slot, 1))
    async with stage(script=lambda _: news) as s:
        await s.answer(fakes.QUESTION)
        assert "Jean [b]Bretagne – father: Charles  from memory" in s.pane("hops")


async def test_an_answer_that_no_model_wrote_has_no_uncertainty(stage: Any, fakes: Any) -> None:
    source = fakes.PASSAGES[0]
    place = (source.id, source.document, source.start, source.start + 1, Span(source.start, source.end))
    slot = Filled("Jean", "father", "father", "Charles", *place, "pattern", 0.9)
    started, end = fakes.turn()[0], fakes.turn()[-1]
    async with stage(script=lambda _: [started, ev.SlotFilled(slot, 1), end]) as s:
        await s.answer(fakes.QUESTION)
        assert "No model wrote it" in " ".join(s.pane("uncertainty").split())
    asked = ev.ModelAsked("slot", 1, 0, 1)
    async with stage(script=lambda _: [started, asked, ev.SlotFilled(slot, 1), end]) as s:
        await s.answer(fakes.QUESTION)
        assert "No model wrote it" not in " ".join(s.pane("uncertainty").split())
