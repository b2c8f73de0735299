"""What a command is and what it gives back.

Owns: Command, Reply, the splitting of a line. Does not own: any command.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from mindchat.session import Session


def split(args: str) -> list[str]:
    """The words of a line, quoted as in a shell; a line with an unclosed quote is split at blanks."""
    try:
        return shlex.split(args)
    except ValueError:
        return args.split()


class Reply(Struct, frozen=True):
    """What a command says; `action` names what a screen should do besides."""

    text: str = ""
    ok: bool = True
    action: str = ""
    """quit | new | clear | ask | retry | more | edit | pane:NAME | copy | passage[:N] | sessions | compare | model; ""
    for none.
    """
    data: Any = None


class Command(Struct, frozen=True):
    """One slash command."""

    name: str
    usage: str
    help: str
    run: Callable[[Session, str], Iterator[Reply]]
    """Yields progress replies, the last one is the result. Raises MindChatError."""
    choices: Callable[[Session], list[str]] | None = None
    """Completions of the first argument; None: none."""
