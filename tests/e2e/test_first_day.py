"""What a user does on the first day, with the real program and the small model in a real terminal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import QUESTION, Desk, program, share_of_a_core
from .terminal import Terminal, squeezed

pytestmark = [pytest.mark.model, pytest.mark.slow]
READY, ANSWERED, PROMPT = "● ready", "check the source", "Ask about your documents"
IDLE_SHARE = 0.01
"""Of a core."""


def open_memory(terminal: Terminal) -> None:
    """The memory pane in the chat's place, with the keys going to it."""
    terminal.press("F5", "F6")
    terminal.wait("f Forget")


def choose_first(terminal: Terminal) -> None:
    """The first fact of the memory pane."""
    terminal.press("Down")
    terminal.wait("▸")


def test_first_day(bare: Desk) -> None:
    """Index, ask, open the citation, inspect and forget a fact, search the sessions, leave; find the session again and
    resume it.
    """
    with bare.open() as terminal:
        welcome = terminal.wait(READY)
        assert squeezed("the demo collection, until you index your own") in squeezed(welcome)
        assert "/index ~/Documents" in welcome

        terminal.line(f"/index add {bare.notes}")
        terminal.wait("3 added")
        terminal.line(QUESTION)
        answered = terminal.wait(ANSWERED)
        assert "Karwendel" in answered
        assert "[1] Rivers" in answered

        terminal.line("[1]")
        terminal.wait(
            lambda screen: all(words in screen for words in ("rivers.m", "score", "The Isar flows through Munich."))
        )
        terminal.press("Escape")
        terminal.wait(PROMPT)

        terminal.line("/remember Marta Lindqvist likes green tea")
        fact = terminal.wait("saved f").split("saved ")[1].split()[0]
        open_memory(terminal)
        terminal.press("a")
        terminal.wait("All facts  1")
        choose_first(terminal)
        terminal.press("w")  # what it rests on
        terminal.wait(lambda screen: "evidence" in screen and fact in screen)
        open_memory(terminal)
        choose_first(terminal)
        terminal.press("f")
        terminal.wait(f"forgot {fact}")

        terminal.press("C-q")
        terminal.wait("settings as before")
        assert terminal.left_on() == set()
    assert bare.json("memory", "search", "green tea", check=False)["facts"] == []
    (session,) = bare.json("sessions", "list")["sessions"]

    with bare.open() as terminal:
        terminal.wait(READY)
        terminal.press("C-r")
        terminal.wait("search titles, questions and answers")
        terminal.type("Karwendel")  # a word of the answer, not of the title
        terminal.wait(lambda screen: "found in" in screen and session["id"] in screen)
        terminal.press("Enter")
        resumed = terminal.wait(lambda screen: PROMPT in screen and "Karwendel" in screen)
        assert squeezed(QUESTION) in squeezed(resumed)
        terminal.line("/retry")
        terminal.wait(ANSWERED)
        terminal.press("C-q")
        terminal.wait("left with 0")
    (again,) = bare.json("sessions", "list")["sessions"]
    assert (again["id"], again["turns"]) == (session["id"], 2)


@pytest.mark.parametrize("size", [(120, 40), (60, 15)], ids=["wide", "small"])
def test_other_sizes(desk: Desk, size: tuple[int, int], record_property: Callable[[str, object], None]) -> None:
    """The same at 120 × 40, where panes stand beside the chat, and at 60 × 15. While nothing is asked, next to nothing
    is computed.
    """
    with desk.open(size=size) as terminal:
        terminal.wait(READY)
        process = program(terminal)
        shares = [share_of_a_core(process, 4)]
        while shares[-1] >= IDLE_SHARE and len(shares) < 8:  # what is read ahead while nobody waits comes to an end
            shares.append(share_of_a_core(process, 4))
        record_property("idle_share_of_a_core", round(shares[-1], 4))
        assert shares[-1] < IDLE_SHARE, shares
        terminal.line(QUESTION)
        assert "Karwendel" in terminal.wait(ANSWERED)
        terminal.press("F4")
        assert "Rivers" in terminal.wait(lambda screen: "tokens" in screen and "Rivers" in screen)
        terminal.press("F4", "C-q")
        terminal.wait("left with 0")
        assert terminal.left_on() == set()


def test_no_color(desk: Desk) -> None:
    with desk.open(NO_COLOR="1") as terminal:
        terminal.wait(READY)
        terminal.line(QUESTION)
        assert "Karwendel" in terminal.wait(ANSWERED)
        terminal.press("C-q")
        terminal.wait("left with 0")


def test_a_dumb_terminal_gets_lines(desk: Desk) -> None:
    """No screen is drawn: what was typed, the answer and its source stand below one another."""
    with desk.open(TERM="dumb") as terminal:
        terminal.wait("You:")
        terminal.line(QUESTION)
        screen = terminal.wait("Source [1]: Rivers")
        assert "Assistant:" in screen
        assert "Karwendel" in screen
        assert not set(screen) & set("│╭█●")
        assert terminal.left_on() == set()
        terminal.line("/quit")
        terminal.wait("settings as before")
