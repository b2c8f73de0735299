"""Hostile text through every pane and screen: nothing is parsed as markup, nothing reaches the terminal as a control
sequence.
"""

from __future__ import annotations

import importlib.util
import os
import random
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindchat import events as ev
from mindchat.text.clean import clean
from mindchat.tui.drawable import block, line

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def _hostile() -> Any:
    spec = importlib.util.spec_from_file_location("tui_hostile", HERE / "hostile.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HOSTILE = _hostile()


def assert_harmless(s: Any) -> None:
    """No segment of the screen holds a control character, and every row has the screen's width."""
    for strip in s.app.screen._compositor.render_strips():
        text = "".join(segment.text for segment in strip)
        assert not CONTROLS.search(text), repr(text)


def _few(texts: list[str]) -> list[str]:
    """The first, and all in one: quick enough for every run; the soak run takes each alone."""
    return [texts[0], " ".join(texts)]


FEW = [pytest.param(_few(getattr(HOSTILE, kind)), id=kind.lower()) for kind in ("MARKUP", "ESCAPES", "WIDE")]


@pytest.mark.parametrize("texts", [*FEW, pytest.param(HOSTILE.ALL, id="each", marks=pytest.mark.soak)])
async def test_every_pane_and_screen(stage: Any, texts: list[str]) -> None:
    async with stage((100, 40), script=HOSTILE.turn) as s:
        s.chat.open_pane("hops")
        for text in texts:
            s.session.rooms.registry.texts[text] = text
            s.session.rooms.chats.sessions["s1aaaaa"] = (text, [(text, text)])
            s.session.rooms.project = text
            await s.answer(text.strip() or "x")
            assert s.chat.newest.trace.state == "answered"
            assert_harmless(s)
            s.chat.newest.query_one(".citation").action_open()
            await s.until(lambda: s.app.screen.id == "passage")
            await s.pilot.pause()
            assert_harmless(s)
            await s.pilot.press("escape", "ctrl+r")
            await s.until(lambda: s.app.screen.id == "sessions" and s.app.screen.query_one("OptionList").option_count)
            assert_harmless(s)
            await s.pilot.press("escape")
            await s.until(lambda: s.app.screen is s.chat)
            await s.chat.clear(session=True)
        assert s.app.is_running


async def test_brackets_are_shown_verbatim(stage: Any) -> None:
    async with stage((120, 60), script=HOSTILE.turn) as s:
        for text in HOSTILE.MARKUP:
            await s.chat.clear(session=True)
            await s.answer(text)
            for pane in ("uncertainty", "hops", "context", "memory"):
                assert text in s.pane(pane)
            await s.chat.note(text, text)
            s.app.notify(text)
            await s.pilot.pause()
        assert s.app.is_running


async def test_brackets_in_every_field(stage: Any) -> None:
    async with stage() as s:
        await s.ready()
        for text in ("[", "[/]", "]", "[b +"):
            s.chat.query_one("Prompt").restore("/" + text)
            await s.pilot.pause()
        s.chat.query_one("Prompt").restore("")
        await s.pilot.press("ctrl+r")
        await s.until(lambda: s.app.screen.id == "sessions")
        await s.pilot.press("left_square_bracket", "slash", "right_square_bracket")
        await s.pilot.pause(0.05)
        assert s.app.is_running


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="[]/\\@=$#ab +'\"\n", max_size=40))
def test_ink_never_parses(text: str) -> None:
    assert block(text).plain == clean(text)
    assert line((text, "bold")).plain == clean(text).replace("\n", " ")


async def test_truncated_markdown_renders(stage: Any) -> None:
    full = (
        "# T\n\n* a **b `c` [d](e)\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n```py\nprint(1)\n```\n> q ![i](j) ~~s~~ <b>"
        " &amp; [^1]: z\n1. n\n"
    )
    cuts = random.Random(0).sample(range(len(full)), 12)
    async with stage(script=lambda _: []) as s:
        await s.ready()
        from textual.widgets import Markdown

        from mindchat.tui.widgets.transcript import linked, parser

        view = Markdown(parser_factory=parser, open_links=False)
        await s.chat.query_one("#flow").mount(view)
        for cut in cuts:
            await view.update(linked(full[:cut], {1}))
        assert s.app.is_running


async def test_a_sequence_split_over_tokens_is_held_back(stage: Any) -> None:
    from mindchat.values import Token

    pieces = ["one ", "\x1b", "]52;c;", "ZXZp", "bA==", "\x07", " two"]

    def script(_: str) -> list[ev.Event]:
        drafted = [ev.TokenDrafted(Token(i, i, piece), "answer") for i, piece in enumerate(pieces)]
        return [ev.TurnStarted("q", "q", "m", "none", "none", 0, "user", "same"), *drafted, ev.TurnCancelled("")]

    async with stage(script=script, pause=0.03) as s:
        await s.say("q")
        await s.until(lambda: "two" in s.text())
        assert "52;c" not in s.text()


DRIVER = """
import importlib.util, sys
from pathlib import Path
def load(name):
    spec = importlib.util.spec_from_file_location(name, Path({here!r}) / (name + ".py"))
    module = importlib.util.module_from_spec(spec); sys.modules[name] = module; spec.loader.exec_module(module); return module
fakes, hostile = load("fakes"), load("hostile")
from mindchat.tui.app import run
def script(text):
    if {crash}: raise SystemExit(3)
    return [event for item in hostile.ESCAPES for event in hostile.turn(item)[:-1]] + [hostile.turn(hostile.ESCAPES[0])[-1]]
sys.exit(run(lambda: fakes.FakeSession(Path({home!r}), script=script, pause={pause}), state=Path({home!r})))
"""

RESTORED = (b"\x1b[?1000l", b"\x1b[?1003l", b"\x1b[?1006l", b"\x1b[?2004l", b"\x1b[?1049l")


class Terminal:
    """The real app in a pty."""

    def __init__(self, home: Path, pause: float = 0.0) -> None:
        import pty

        self.main, side = pty.openpty()
        code = DRIVER.format(here=str(HERE), home=str(home), crash=False, pause=pause)
        environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=side, stdout=side, stderr=side, env=environ, start_new_session=True
        )
        os.close(side)
        self.seen = b""

    def until(self, words: bytes, seconds: float = 25.0) -> None:
        end = time.monotonic() + seconds
        while words not in self.seen:
            assert time.monotonic() < end, self.seen[-2000:]
            self.read()

    def read(self) -> bool:
        ready, _, _ = select.select([self.main], [], [], 0.2)
        if not ready:
            return False
        try:
            piece = os.read(self.main, 65536)
        except OSError:
            return False
        self.seen += piece
        return bool(piece)

    def send(self, text: bytes) -> None:
        os.write(self.main, text)

    def rest(self) -> int:
        end = time.monotonic() + 20
        while self.process.poll() is None and time.monotonic() < end:
            self.read()
        while self.read():
            pass
        if self.process.poll() is None:
            self.process.kill()
        os.close(self.main)
        return self.process.wait()


@pytest.mark.skipif(sys.platform == "win32", reason="ptys are a Unix thing")
def test_no_hostile_byte_reaches_a_real_terminal_and_quitting_restores_it(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.until(b"ready")
    terminal.send(b"hello\r")
    terminal.until(b"unresolved")
    terminal.send(b"\x11")
    assert terminal.rest() == 0
    for bad in (b"\x1b]52", b"ZXZpbA", b"\x1b]8;;http", b"\x9b31m", b"\x1bc", b"\xe2\x80\xae"):
        assert bad not in terminal.seen
    for sequence in RESTORED:
        assert terminal.seen.rfind(sequence) > len(terminal.seen) - 2000


@pytest.mark.skipif(sys.platform == "win32", reason="signals are a Unix thing")
def test_sigterm_in_the_middle_of_a_turn_restores_the_terminal(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, pause=0.2)
    terminal.until(b"ready")
    terminal.send(b"hello\r")
    terminal.until(b"waiting")
    before = time.monotonic()
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.rest() == 143
    assert time.monotonic() - before < 5
    for sequence in RESTORED:
        assert terminal.seen.rfind(sequence) > len(terminal.seen) - 2000
