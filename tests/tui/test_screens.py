"""What the screens look like, as text; sizes, themes and panes."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_welcome(stage: Any, snapshot: Any, size: tuple[int, int]) -> None:
    async with stage(size) as s:
        await s.ready()
        await s.until(lambda: "ready" in s.text())
        await snapshot(s)


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_answered(stage: Any, snapshot: Any, fakes: Any, size: tuple[int, int]) -> None:
    async with stage(size) as s:
        await s.ready()
        await s.answer(fakes.QUESTION)
        await s.until(lambda: "ready" in s.text() and "[2] Jean" in s.text())
        await snapshot(s)


@pytest.mark.parametrize("pane", ["uncertainty", "hops", "context", "memory"])
async def test_pane(stage: Any, snapshot: Any, fakes: Any, pane: str) -> None:
    async with stage((80, 40)) as s:
        await s.ready()
        await s.answer(fakes.QUESTION)
        await s.pilot.press({"uncertainty": "f2", "hops": "f3", "context": "f4", "memory": "f5"}[pane])
        await s.until(lambda: "ready" in s.text())
        await s.pilot.pause(0.05)
        await snapshot(s)


async def test_wide_panes_toggle(stage: Any, fakes: Any) -> None:
    async with stage((120, 40)) as s:
        assert s.chat.query_one("#uncertainty").display
        await s.pilot.press("f2")
        assert not s.chat.query_one("#uncertainty").display
        await s.pilot.press("f3", "f4", "f5", "f3")
        assert not s.chat.query_one("#side").display
        await s.pilot.press("f5")
        assert s.chat.query_one("#side").display


async def test_narrow_pane_takes_the_place_of_the_chat(stage: Any) -> None:
    async with stage((80, 24)) as s:
        await s.pilot.press("f4")
        assert not s.chat.query_one("#talk").display
        assert s.chat.query_one("#context").display
        await s.pilot.press("a")
        assert s.chat.query_one("Prompt").draft == "a"
        await s.pilot.press("f4")
        assert s.chat.query_one("#talk").display


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "ansi-dark", "ansi-light", "no-such-theme"])
async def test_themes(stage: Any, fakes: Any, theme: str) -> None:
    async with stage(app_options={"theme": theme}) as s:
        await s.answer(fakes.QUESTION)
        assert "Charles Armand René" in s.text()


async def test_no_color_keeps_every_mark(stage: Any, fakes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with stage((120, 60)) as s:
        await s.answer(fakes.QUESTION)
        assert s.app.no_color
        assert "Louis▲1.62" in s.pane("uncertainty")
        assert "✗" in s.pane("hops")


async def test_scrolling_up_holds_the_view_and_end_follows(stage: Any, fakes: Any) -> None:
    async with stage((80, 24)) as s:
        for number in range(4):
            await s.answer(f"question {number}")
        transcript = s.chat.query_one("Transcript")
        assert transcript.following
        await s.pilot.press("pageup", "pageup")
        held = transcript.scroll_y
        s.session.pause = 0.005
        s.chat.bridge.ask("elsewhere")  # news that belongs to no view must not move it either
        await s.pilot.pause(0.3)
        assert transcript.scroll_y == held
        assert s.chat.query_one("#below").display
        await s.pilot.press("end")
        await s.until(lambda: transcript.following)


async def test_keys_can_be_remapped(stage: Any) -> None:
    async with stage(app_options={"keymap": {"pane.uncertainty": "f9"}}) as s:
        await s.pilot.press("f9")
        assert not s.chat.query_one("#uncertainty").display
        await s.pilot.press("f1")
        await s.until(lambda: "F9" in s.text())


async def test_function_keys_work_from_the_prompt(stage: Any) -> None:
    async with stage() as s:
        assert s.app.focused is s.chat.query_one("#input")
        await s.pilot.press("f6")
        assert s.app.focused is not s.chat.query_one("#input")


async def test_help_closes_with_escape(stage: Any) -> None:
    async with stage() as s:
        await s.pilot.press("f1")
        await s.until(lambda: "Keys" in s.text())
        await s.pilot.press("escape")
        assert s.app.screen is s.chat
