"""Helpers of the screen tests: an app over the fake session, waiting for a predicate, the screen as text."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mindchat.tui.app import MindChatApp
from mindchat.tui.screens.chat import ChatScreen

HERE = Path(__file__).parent
PATIENCE = 60.0
"""Seconds to wait for what must come on a slow, busy machine; nothing is asserted about time here."""


def _load_fakes() -> ModuleType:
    if "tui_fakes" not in sys.modules:
        spec = importlib.util.spec_from_file_location("tui_fakes", HERE / "fakes.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules["tui_fakes"] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules["tui_fakes"]


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder with a short name of always the same length: screens break long ones into lines."""
    with tempfile.TemporaryDirectory(prefix="mt-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def fakes() -> Any:
    return _load_fakes()


class Stage:
    """A running app, its pilot and its fake session."""

    def __init__(self, app: MindChatApp, pilot: Any, session: Any) -> None:
        self.app, self.pilot, self.session = app, pilot, session

    @property
    def chat(self) -> ChatScreen:
        screen = self.app.screen_stack[0]
        assert isinstance(screen, ChatScreen)
        return screen

    async def until(self, predicate: Callable[[], object], seconds: float = PATIENCE) -> None:
        end = time.monotonic() + seconds
        while True:
            try:
                if predicate():
                    return
            except LookupError:
                pass
            if time.monotonic() > end:
                raise AssertionError(f"never came true; the screen was\n{self.text()}")
            await asyncio.sleep(0.02)

    async def say(self, text: str) -> None:
        """Put a text into the prompt and send it."""
        self.chat.query_one("Prompt").restore(text)
        await self.pilot.pause()
        await self.pilot.press("enter")

    async def ready(self) -> None:
        await self.until(lambda: self.chat.view.model_ready)

    async def answer(self, text: str) -> None:
        """Ask and wait for the end of the turn."""
        count = len(self.chat.turns)
        await self.say(text)
        await self.until(lambda: len(self.chat.turns) > count and not self.chat.busy)
        await self.pilot.pause()

    def text(self) -> str:
        """The screen as plain text, trailing blanks cut."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips).rstrip()

    def pane(self, name: str) -> str:
        content = self.chat.query_one(f"#{name}").painted()
        return content.plain if content is not None else ""


@pytest.fixture
def stage(tmp_path: Path, fakes: Any) -> Any:
    @asynccontextmanager
    async def open_stage(
        size: tuple[int, int] = (120, 40), app_options: dict[str, Any] | None = None, **session_options: Any
    ) -> AsyncIterator[Stage]:
        session = fakes.FakeSession(tmp_path / "home", **session_options)
        app = MindChatApp(lambda: session, **{"state": tmp_path / "state", "fps": 50.0, **(app_options or {})})
        async with app.run_test(size=size) as pilot:
            yield Stage(app, pilot, session)
        app.bridge.stop()
        session.may_load.set()
        app.bridge.join(2.0)

    return open_stage


@pytest.fixture
def snapshot(request: pytest.FixtureRequest) -> Callable[[Stage], Awaitable[None]]:
    """Compare a screen's text with the recorded one, waiting until it has settled; SCREENS_SNAP=1 records it anew."""

    async def check(s: Stage) -> None:
        name = request.node.name.removeprefix("test_").replace("[", "-").replace("]", "")
        file = HERE / "snapshots" / f"{name}.txt"
        if os.environ.get("SCREENS_SNAP"):
            last = ""
            while last != (last := still(s.text())):
                await asyncio.sleep(0.7)
            file.parent.mkdir(exist_ok=True)
            file.write_text(last, encoding="utf-8")
        wanted, end = file.read_text(encoding="utf-8"), time.monotonic() + PATIENCE
        while still(s.text()) != wanted and time.monotonic() < end:
            await asyncio.sleep(0.05)
        assert still(s.text()) == wanted, f"the screen differs from {file.name}; SCREENS_SNAP=1 records it anew"

    return check


def still(text: str) -> str:
    """The screen without what may differ from run to run: temporary folders, the ends of scroll bars, the clock of the
    status line.
    """
    text = re.sub(r"(?m)^( ● .*) · [\d.]+\xa0s", r"\1 · …", text)
    rows = ("" if "home" in row else re.sub(r"\s*[▁▂▃▄▅▆▇█]?$", "", row) for row in text.splitlines())
    return "\n".join(rows).rstrip() + "\n"
