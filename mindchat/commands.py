"""Slash commands, headless: a table of name, usage, help and function over a Session.

Owns: COMMANDS, run, complete. Does not own: screens (commands that need one return an `action` for it) or asking questions.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from mindchat.session import Session


class Reply(Struct, frozen=True):
    """What a command says; `action` names what a screen should do besides (quit, new, passage, pane …)."""

    text: str = ""
    ok: bool = True
    action: str = ""
    data: Any = None


class Command(Struct, frozen=True):
    """One slash command."""

    name: str
    usage: str
    help: str
    run: Callable[[Session, str], Iterator[Reply]]
    """Yields progress replies, the last one is the result."""
    choices: Callable[[Session], list[str]] | None = None
    """Completions of the first argument; None: none."""


COMMANDS: dict[str, Command] = {}
"""Name without slash → command."""


def nearest(name: str) -> str:
    """The known command closest to a mistyped one, or ""."""
    return next(iter(difflib.get_close_matches(name, list(COMMANDS), 1, 0.5)), "")
