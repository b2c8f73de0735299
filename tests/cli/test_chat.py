"""`mindchat` and `mindchat chat`: which of screens and lines is chosen, and with what."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from mindchat.cli import chat

from .board import Board, Run


class Terminal:
    """A standard stream that says it is a terminal."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def isatty(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, board: Board) -> list[tuple[str, Any]]:
    """What was shown: ("screens" | "lines", the session that was made)."""
    calls: list[tuple[str, Any]] = []
    monkeypatch.setattr(chat, "_screens", lambda make, setup, incognito: calls.append(("screens", make())) or 0)
    monkeypatch.setattr(chat, "_lines", lambda make: calls.append(("lines", make())) or 0)
    return calls


@pytest.mark.parametrize(
    ("arguments", "terminal", "term", "kind"),
    [
        ([], True, "xterm", "screens"),
        (["chat"], True, "xterm", "screens"),
        (["chat", "--plain"], True, "xterm", "lines"),
        ([], True, "dumb", "lines"),
        (["chat"], False, "xterm", "lines"),
    ],
)
def test_screens_where_there_is_a_screen(
    run: Run,
    shown: list[tuple[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    terminal: bool,
    term: str,
    kind: str,
) -> None:
    monkeypatch.setenv("TERM", term)
    if terminal:
        monkeypatch.setattr(sys, "stdin", Terminal(sys.stdin))
        monkeypatch.setattr(sys, "stdout", Terminal(sys.stdout))
        monkeypatch.setattr(sys, "stderr", Terminal(sys.stderr))  # Textual draws there
    assert run(*arguments).code == 0
    assert [call[0] for call in shown] == [kind]


def test_flags_reach_the_session(run: Run, shown: list[tuple[str, Any]], board: Board) -> None:
    assert (
        run(
            "chat",
            "--plain",
            "-m",
            "smollm2-135m",
            "--no-memory",
            "--incognito",
            "--no-mouse",
            "--set",
            "ui.theme=nord",
        ).code
        == 0
    )
    opened = board.opened[0]
    assert (opened["memory"], opened["incognito"]) == (False, True)
    assert (opened["config"].model.name, opened["config"].ui.mouse, opened["config"].ui.theme) == (
        "smollm2-135m",
        False,
        "nord",
    )


@pytest.mark.parametrize(("code", "left"), [(143, 130), (130, 130), (3, 3), (0, 0)])
def test_exit_codes_are_the_contracts(
    run: Run, board: Board, monkeypatch: pytest.MonkeyPatch, code: int, left: int
) -> None:
    monkeypatch.setattr(chat, "_lines", lambda make: code)
    assert run("chat").code == left


def test_wrong_settings_stop_before_any_screen(run: Run, shown: list[tuple[str, Any]]) -> None:
    assert run("chat", "--set", "engine.policy=mnd").code == 2
    assert run("chat", "-c").code == 2
    assert shown == []


@pytest.mark.parametrize(
    ("sets", "style"),
    [([], "full"), (["--set", "answer.style=short"], "short"), (["--set", "answer.style=full"], "full")],
)
def test_a_chat_answers_in_sentences_unless_the_user_chose(
    sets: list[str], style: str, run: Run, board: Board, shown: list[tuple[str, Any]]
) -> None:
    assert run("chat", "--plain", *sets).code == 0
    assert board.opened[0]["config"].answer.style == style
