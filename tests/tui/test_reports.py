"""What users of other terminal programs reported, as far as it has no test beside the part it concerns (drafts,
selecting, wide letters, loading).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textual.widgets import Static

from mindchat import events as ev
from mindchat.tui.app import MindChatApp
from mindchat.values import Answer, Citation, Passage

WIDE = "👨‍👩‍👧 ❤️ 日本語 שלום e\u0301 Trémoille"


async def test_an_unsent_text_is_there_again_after_a_restart(stage: Any, fakes: Any, tmp_path: Path) -> None:
    async with stage() as s:
        await s.ready()
        s.chat.query_one("Prompt").restore("half a question\nin two lines")
        await s.pilot.press("ctrl+q")
    again = MindChatApp(lambda: fakes.FakeSession(tmp_path / "home"), state=tmp_path / "state", load=False)
    async with again.run_test(size=(80, 24)):
        assert again.screen_stack[0].query_one("Prompt").draft == "half a question\nin two lines"  # type: ignore[attr-defined]
    again.bridge.stop()


async def test_help_opens_and_closes_while_the_model_loads(stage: Any) -> None:
    async with stage(slow_load=True) as s:
        await s.pilot.press("f1")
        await s.until(lambda: "Keys" in s.text())
        assert not s.chat.view.model_ready
        await s.pilot.press("escape")
        await s.until(lambda: s.app.screen is s.chat)


def wide_turn(question: str) -> list[ev.Event]:
    passage = Passage("p1", "/docs/[x]日本.md", WIDE, WIDE * 4, 0, len(WIDE) * 4, 1.0, 1)
    answer = Answer(
        f"{WIDE} [1]", WIDE, False, "sourced", (Citation(1, passage.document, "p1", 0, 20, WIDE[:20], "model"),)
    )
    return [
        ev.TurnStarted(question, question, "m", "once", "none", 0, "user", "same"),
        ev.PassagesFound(WIDE, (passage,), 1),
        ev.DraftAccepted(answer.text, "answer", 4),
        ev.AnswerReady(answer, "answered", 1.0, 0.1),
    ]


async def test_letters_of_any_width_leave_the_borders_straight(stage: Any) -> None:
    async with stage((120, 40), script=wide_turn) as s:
        await s.ready()
        await s.pilot.press("f3")
        await s.answer(WIDE)
        strips = s.app.screen._compositor.render_strips()
        assert {strip.cell_length for strip in strips} == {120}
        edge = s.chat.query_one("#hops").region
        for row in range(edge.y + 1, edge.bottom - 1):
            assert strips[row].crop(edge.x, edge.x + 1).text == "│", strips[row].text
            assert strips[row].crop(edge.right - 1, edge.right).text == "│", strips[row].text


async def test_a_selection_over_several_messages_is_plain_text(stage: Any, fakes: Any) -> None:
    async with stage((120, 40)) as s:
        for question in ("first question", "second question"):
            await s.answer(question)
        first, last = s.chat.query(".question").first(Static), s.chat.query(".question").last(Static)
        await s.until(lambda: first.region.y >= 0 and last.region.height)
        s.chat.query_one("Transcript").scroll_home(animate=False)
        await s.pilot.pause()
        await s.pilot.mouse_down(first, offset=(0, 0))
        await s.pilot.hover(last, offset=(12, 0))
        await s.pilot.mouse_up(last, offset=(12, 0))
        selected = s.chat.get_selected_text() or ""
        assert "first question" in selected
        assert "Charles Armand René de La Trémoille" in selected
        assert not set("│╭╰─") & set(selected)
