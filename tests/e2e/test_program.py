"""The real program with the small model in a real terminal: what a user does on the first day."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import psutil
import pytest

from .conftest import QUESTION, Desk
from .terminal import Terminal

pytestmark = pytest.mark.model
READY, ANSWERED = "● ready", "✓ confidence"


def program(terminal: Terminal) -> psutil.Process:
    """The Python process under the terminal's shell."""
    shell = psutil.Process(terminal.pid)
    return next(p for p in [shell, *shell.children(recursive=True)] if "python" in p.name())


@pytest.mark.parametrize("tmux", [True, False], ids=["tmux", "pty"])
def test_first_day(bare: Callable[[], Desk], tmux: bool) -> None:
    """Index a folder, ask, open the citation, keep and forget a fact, search the sessions, leave; the second start resumes."""
    import shutil

    if tmux and shutil.which("tmux") is None:
        pytest.skip("tmux is not installed; the same steps run over a pty")
    desk = bare()
    with desk.open(tmux=tmux) as terminal:
        terminal.wait("documents  156")  # the demo, until something is indexed
        terminal.line(f"/index {desk.folder / 'notes'}")
        terminal.wait("3 added")
        terminal.line(QUESTION)
        terminal.wait(ANSWERED)
        terminal.wait("[1] Rivers")
        terminal.line("[1]")
        assert "Passage" in terminal.wait("The Isar flows through Munich")
        terminal.press("Escape")
        terminal.wait("Ask about")
        terminal.line("/remember Marta Lindqvist likes green tea")
        shown = terminal.wait("saved f")
        fact = shown[shown.index("saved f") :].split()[1]
        terminal.line(f"/memory show {fact}")
        terminal.wait(lambda screen: screen.count("green tea") >= 2)
        terminal.line(f"/forget {fact}")
        terminal.wait("forg")
        terminal.press("C-r")
        terminal.wait("search titles, questions and answers")
        terminal.type("Isar")
        terminal.wait(lambda screen: screen.count(QUESTION[:20]) >= 1 and "turn" in screen)
        terminal.press("Escape")
        terminal.wait("Ask about")
        terminal.press("C-q")
        left = terminal.wait("left with 0")
        assert "Karwendel" not in left, "the screen that was there before is back"
    assert desk.json("memory", "list")["facts"] == []
    (session,) = desk.json("sessions", "list")["sessions"]
    with desk.open("chat", "--session", session["id"], tmux=tmux) as terminal:
        terminal.wait(QUESTION)
        assert "Karwendel" in terminal.wait(READY)


@pytest.mark.parametrize("size", [(120, 40), (60, 15)], ids=["wide", "small"])
def test_an_answer_shows_at_other_sizes(desk: Desk, size: tuple[int, int]) -> None:
    with desk.open(size=size) as terminal:
        terminal.wait(READY)
        terminal.line(QUESTION)
        assert "Karwendel" in terminal.wait(ANSWERED)
        terminal.press("F4")
        assert "Rivers" in terminal.wait("position of")
        terminal.press("C-q")
        terminal.wait("left with 0")


LONG = {"MINDCHAT_ENGINE__POLICY": "sentences", "MINDCHAT_ENGINE__MAX_SENTENCES": "40", "MINDCHAT_ENGINE__REASONING_TOKENS": "2000"}
"""A turn that goes on until somebody stops it."""


@pytest.mark.parametrize("key", ["Escape", "C-c"])
def test_a_turn_is_stopped_and_the_next_one_is_answered(desk: Desk, key: str) -> None:
    with desk.open(**LONG) as terminal:
        terminal.wait("documents  3")
        terminal.line("Tell me about every lighthouse and its keeper, one after another.")
        terminal.wait("esc Stop")
        terminal.press(key)
        terminal.wait("stopped")
        terminal.wait(READY)
        terminal.line("/policy once")
        terminal.line(QUESTION)
        terminal.wait(ANSWERED)
        terminal.press("C-q")
        terminal.wait("left with 0")


def test_sigterm_leaves_the_terminal_as_it_was(desk: Desk) -> None:
    with desk.open() as terminal:
        terminal.wait("documents  3")
        program(terminal).send_signal(signal.SIGTERM)
        screen = terminal.wait("left with")
        assert "documents  3" not in screen
        assert screen.split("left with", 1)[1].split()[1] == "3", f"icanon, isig and echo are not all set:\n{screen}"


def test_kill_9_while_streaming_keeps_the_question_and_what_was_written(desk: Desk) -> None:
    with desk.open(**LONG) as terminal:
        terminal.wait("documents  3")
        terminal.line("Where does the Isar rise, and what does it flow through?")
        terminal.wait("esc Stop")
        end = time.monotonic() + 90
        while not (kept := desk.run("sessions", "search", "Isar", check=False).stdout) and time.monotonic() < end:
            time.sleep(0.3)
        os.kill(program(terminal).pid, signal.SIGKILL)
        terminal.wait("left with 137")
    assert "Isar" in kept, "the question is stored before the first word of the answer"
    with desk.open("chat", "--continue") as terminal:
        terminal.wait("Where does the Isar rise")
        terminal.wait(READY)


def test_two_screens_and_one_ask_write_at_once(desk: Desk) -> None:
    with desk.open() as one, desk.open() as other:
        for terminal in (one, other):
            terminal.wait("documents  3")
        one.line("Which mountains does the Isar rise in, one?")
        other.line("Which mountains does the Isar rise in, two?")
        desk.run("ask", "--quiet", "Which mountains does the Isar rise in, three?")
        for terminal in (one, other):
            terminal.wait(ANSWERED)
            terminal.press("C-q")
            terminal.wait("left with 0")
    titles = " ".join(session["title"] for session in desk.json("sessions", "list")["sessions"])
    assert all(f"in, {number}?" in titles for number in ("one", "two", "three")), titles


def test_idle_costs_next_to_nothing(desk: Desk, record_property: Callable[[str, object], None]) -> None:
    """Aim: under 1 % of a core. Processor time is counted, so that other work on the machine does not matter; the bound leaves room for a slow one."""
    with desk.open() as terminal:
        terminal.wait("documents  3")
        terminal.wait(READY)
        time.sleep(2)
        process = program(terminal)
        before, started = process.cpu_times(), time.monotonic()
        time.sleep(6)
        after, seconds = process.cpu_times(), time.monotonic() - started
        share = (after.user + after.system - before.user - before.system) / seconds
        record_property("idle_share_of_a_core", round(share, 4))
        assert share < 0.03


@pytest.mark.parametrize("extra", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "dumb"])
def test_poor_terminals_answer_too(desk: Desk, extra: dict[str, str]) -> None:
    with desk.open(**extra) as terminal:
        terminal.wait(lambda screen: "documents  3" in screen or "You:" in screen)
        terminal.line(QUESTION)
        terminal.wait(lambda screen: "Karwendel" in screen.split(QUESTION[-12:], 1)[-1])
