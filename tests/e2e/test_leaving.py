"""Stopping and leaving the real program: Esc, Ctrl+C, quitting in every phase, SIGTERM, kill -9, and several programs
at once.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import psutil
import pytest

from .conftest import QUESTION, STREAMING, TALE, Desk, program, share_of_a_core
from .terminal import Terminal, squeezed

pytestmark = [pytest.mark.model, pytest.mark.slow]
READY, ANSWERED = "● ready", "check the source"
QUIT_SECONDS = 30.0
"""Aim: 2 s on a quiet machine. What this catches is a program that waits for the model, an index or a thread."""
LOST_SECONDS = 6.0
"""Aim: 1 s. What this catches is an answer that is written down only at its end."""
Record = Callable[[str, object], None]


def begin_tale(terminal: Terminal) -> None:
    """A turn that is writing and would go on for minutes."""
    terminal.wait(READY)
    terminal.line(TALE)
    terminal.wait("● reasoning")
    terminal.wait("▌")


@pytest.mark.parametrize("key", ["Escape", "C-c"])
def test_a_stopped_turn_ends_and_the_next_one_is_answered(desk: Desk, key: str) -> None:
    with desk.open(**STREAMING) as terminal:
        begin_tale(terminal)
        terminal.press(key)
        terminal.wait("■ stopped")
        terminal.wait(READY)
        process = program(terminal)
        end = time.monotonic() + 30
        while share_of_a_core(process, 1) > 0.2:
            assert time.monotonic() < end, "the processor still works for a turn that was stopped"
        terminal.line("/set layout.cot=false")
        terminal.wait("cot")
        terminal.line(QUESTION)
        assert "Karwendel" in terminal.wait(ANSWERED)
        terminal.press("C-q")
        terminal.wait("left with 0")
    (session,) = desk.json("sessions", "list")["sessions"]
    stopped, answered = desk.json("sessions", "show", session["id"])["turns"]
    assert (stopped["status"], answered["status"]) == ("cancelled", "done")
    assert stopped["answer"], "what was written stays"


def loading(desk: Desk, terminal: Terminal) -> None:
    terminal.wait("MindChat")


def reading(desk: Desk, terminal: Terminal) -> None:
    terminal.wait(READY)
    terminal.line("/set layout.repeat=6")  # so much to read that it cannot be over before the screen is looked at
    terminal.wait("layout.repeat")
    terminal.line(TALE)
    terminal.wait("● reading")


def writing(desk: Desk, terminal: Terminal) -> None:
    begin_tale(terminal)


def indexing(desk: Desk, terminal: Terminal) -> None:
    many = desk.folder / "many"
    many.mkdir()
    for n in range(600):
        (many / f"{n}.md").write_text(
            f"# Note {n}\n\n" + f"Lighthouse {n} stands on rock {n}. " * 200, encoding="utf-8"
        )
    terminal.wait(READY)
    terminal.line(f"/index {many}")
    terminal.wait("● /index")


@pytest.mark.parametrize("phase", [loading, reading, writing, indexing], ids=lambda phase: phase.__name__)
def test_quitting_does_not_wait(desk: Desk, phase: Callable[[Desk, Terminal], None], record_property: Record) -> None:
    with desk.open(**STREAMING) as terminal:
        phase(desk, terminal)
        started = time.monotonic()
        terminal.press("C-q")
        terminal.wait("settings as before")
        took = time.monotonic() - started
        record_property(f"quit_seconds_{phase.__name__}", round(took, 2))
        assert "left with 0" in terminal.text()
        assert terminal.left_on() == set()
        assert took < QUIT_SECONDS
    assert "rivers.md" in desk.run("index", "search", "Karwendel").stdout, "the index is whole"


@pytest.mark.parametrize("tmux", [None, False], ids=["usual", "pty"])
@pytest.mark.parametrize("when", [loading, writing], ids=lambda phase: phase.__name__)
def test_sigterm_leaves_the_terminal_as_it_was(
    desk: Desk, when: Callable[[Desk, Terminal], None], tmux: bool | None
) -> None:
    with desk.open(tmux=tmux, **STREAMING) as terminal:
        when(desk, terminal)
        program(terminal).send_signal(signal.SIGTERM)
        terminal.wait("settings as before")
        assert terminal.left_on() == set()


def watched_until_killed(terminal: Terminal, process: psutil.Process) -> tuple[list[tuple[float, str]], float]:
    """(second, screen) while the answer streams; then the second of the kill."""
    seen: list[tuple[float, str]] = []
    begun = time.monotonic()
    while time.monotonic() - begun < 6 or len({screen for _, screen in seen}) < 20:
        assert time.monotonic() - begun < 120, "nothing streams"
        seen.append((time.monotonic(), squeezed(terminal.text())))
        time.sleep(0.05)
    process.kill()
    return seen, time.monotonic()


def test_kill_9_while_streaming_loses_no_more_than_the_last_moment(desk: Desk, record_property: Record) -> None:
    with desk.open(**STREAMING) as terminal:
        begin_tale(terminal)
        seen, killed = watched_until_killed(terminal, program(terminal))
        terminal.wait("left with 137")
    (hit,) = desk.json("sessions", "search", "lighthouse")["hits"]
    (turn,) = desk.json("sessions", "show", hit["chat"])["turns"]
    assert turn["question"] == TALE
    kept = squeezed(turn["answer"])
    assert kept, "nothing of the answer was written down"
    # The last words that were kept were on the screen at some moment: what came after it is lost. If they never were,
    # nothing that was shown is.
    lost = next((killed - second for second, screen in seen if kept[-100:] in screen), 0.0)
    record_property("lost_seconds", round(lost, 2))
    assert lost < LOST_SECONDS

    with desk.open("chat", "--continue") as terminal:
        terminal.wait(READY)
        assert kept[-40:] in squeezed(terminal.wait("not finished"))
        terminal.line(QUESTION)
        terminal.wait(ANSWERED)
        terminal.press("C-q")
        terminal.wait("left with 0")
    assert [turn["question"] for turn in desk.json("sessions", "show", hit["chat"])["turns"]] == [TALE, QUESTION]


def test_two_screens_and_one_ask_write_at_once(desk: Desk) -> None:
    questions = [f"Which mountains does the Isar rise in, {n}?" for n in ("one", "two", "three")]
    with desk.open() as one, desk.open() as other:
        for terminal in (one, other):
            terminal.wait(READY)
        one.line(questions[0])
        other.line(questions[1])
        desk.run("ask", "--quiet", questions[2])
        for terminal in (one, other):
            terminal.wait(ANSWERED)
            terminal.press("C-q")
            terminal.wait("left with 0")
    written = [
        desk.json("sessions", "show", session["id"])["turns"] for session in desk.json("sessions", "list")["sessions"]
    ]
    assert sorted(turn["question"] for turns in written for turn in turns) == sorted(questions)
    assert all(turn["status"] == "done" and turn["answer"] for turns in written for turn in turns)
