"""Screens as they stand at the moments that matter: while words come, when one is doubted, when it is withdrawn, and
when something is wrong.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from mindchat import commands
from mindchat import events as ev
from mindchat.commands import Command, Reply


class Held:
    """The turn of the fakes up to the first event that `until` accepts; the rest comes when it is let go."""

    def __init__(self, fakes: Any, until: Callable[[ev.Event], bool]) -> None:
        events = fakes.turn()
        self.at = next(number for number, event in enumerate(events) if until(event))
        self.events, self.gate = events, threading.Event()

    def __call__(self, _: str) -> Iterator[ev.Event]:
        yield from self.events[: self.at]
        self.gate.wait(60)
        yield from self.events[self.at :]


MOMENTS: dict[str, tuple[Callable[[ev.Event], bool], str]] = {
    "streaming": (lambda event: isinstance(event, ev.AttentionSettled), "His father was Jean Bretagne"),
    "triggered": (lambda event: isinstance(event, ev.TextRetracted), "Louis"),
    "retracted": (lambda event: isinstance(event, ev.QueryFormed), "⟨Louis of Thouars.⟩"),
    "answering": (
        lambda event: isinstance(event, ev.DraftAccepted) and event.channel == "answer",
        "paternal grandfather was",
    ),
}


@pytest.mark.parametrize("name", sorted(MOMENTS))
async def test_moment(stage: Any, fakes: Any, snapshot: Any, name: str) -> None:
    until, sign = MOMENTS[name]
    held = Held(fakes, until)
    try:
        async with stage((120, 40), script=held) as s:
            await s.ready()
            await s.say(fakes.QUESTION)
            await s.until(lambda: sign in s.text())
            await snapshot(s)
            held.gate.set()
            await s.until(lambda: not s.chat.busy)
    finally:
        held.gate.set()


async def test_error(stage: Any, snapshot: Any) -> None:
    failed = ev.TurnFailed(
        "model_missing",
        "The model qwen-x is not on this machine [/x].",
        "mindchat models pull qwen-x fetches it.",
        3,
        "It was",
    )
    async with stage((80, 24), script=lambda _: [failed]) as s:
        await s.ready()
        await s.answer("Who was it?")
        await s.until(lambda: "models pull qwen-x" in s.text())
        await snapshot(s)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
async def test_help(stage: Any, snapshot: Any, size: tuple[int, int]) -> None:
    async with stage(size) as s:
        await s.ready()
        await s.pilot.press("f1")
        await s.until(lambda: "Keys" in s.text())
        await snapshot(s)


async def test_memory_search(stage: Any, fakes: Any, snapshot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def run(session: Any, args: str) -> Iterator[Reply]:
        asked.append(args)
        yield Reply("one fact", data=SimpleNamespace(facts=(fakes.FACT,)))

    monkeypatch.setitem(commands.COMMANDS, "memory", Command("memory", "/memory", "facts", run))
    async with stage((80, 24)) as s:
        await s.ready()
        await s.say("/memory search father")
        await s.until(lambda: asked == ["search father"])
        await s.pilot.press("f5")
        await s.until(lambda: fakes.FACT.id in s.text() and "ready" in s.text())
        await snapshot(s)


async def test_no_color(stage: Any, fakes: Any, snapshot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same marks without colour: what the terminal gets passes Textual's monochrome filter."""
    monkeypatch.setenv("NO_COLOR", "1")
    async with stage((120, 40)) as s:
        await s.ready()
        await s.answer(fakes.QUESTION)
        await s.until(lambda: "[2] Jean" in s.text() and "ready" in s.text())
        await snapshot(s)
        assert s.app.no_color
        assert "Monochrome" in {type(used).__name__ for used in s.app._filters}
