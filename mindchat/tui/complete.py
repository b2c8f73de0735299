"""Slash completion: fuzzy over names, arguments and paths.

Owns: suggest(). Does not own: the commands (COMMANDS) and their argument choices (asked of the session by the screen
and passed in).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from mindchat.commands import COMMANDS

MOST = 40
"""Most suggestions of one list."""
PATH_COMMANDS = frozenset({"index", "remove", "export", "trace"})
"""Commands whose first argument is a path."""


class Suggestion(Struct, frozen=True):
    """One line of the list."""

    text: str
    """What the whole input becomes."""
    label: str
    help: str = ""


def rank(typed: str, candidate: str) -> int | None:
    """How well a candidate fits: 0 prefix, 1 inside, 2 letters in order; None: not at all."""
    typed, candidate = typed.lower(), candidate.lower()
    if candidate.startswith(typed):
        return 0
    if typed in candidate:
        return 1
    rest = iter(candidate)
    return 2 if all(letter in rest for letter in typed) else None


def fitting(typed: str, candidates: Iterable[str]) -> list[str]:
    """Candidates that fit, best first, in their own order within a rank."""
    ranked = [(place, candidate) for candidate in candidates if (place := rank(typed, candidate)) is not None]
    return [candidate for _, candidate in sorted(ranked, key=lambda pair: pair[0])][:MOST]


def paths(typed: str) -> list[str]:
    """Files and folders that begin as typed; folders end in a slash. Hidden ones only if a dot was typed."""
    folder, _, start = typed.rpartition("/")
    base = Path(f"{folder}/" if folder or typed.startswith("/") else ".").expanduser()
    try:
        found = sorted(base.iterdir(), key=lambda path: (path.is_file(), path.name.lower()))
    except OSError:
        return []
    named = [
        path
        for path in found
        if path.name.lower().startswith(start.lower()) and (start.startswith(".") or not path.name.startswith("."))
    ]
    lead = f"{folder}/" if folder or typed.startswith("/") else ""
    return [f"{lead}{path.name}{'/' if path.is_dir() else ''}" for path in named[:MOST]]


def suggest(text: str, choices: Callable[[str], Mapping[str, str] | list[str]]) -> list[Suggestion]:
    """Suggestions for an input that begins with a slash. `choices(name)`: known values of a command's first argument."""
    name, space, argument = text[1:].partition(" ")
    if not space:
        exact = [Suggestion(f"/{found} ", f"/{found}", COMMANDS[found].help) for found in fitting(name, COMMANDS)]
        return exact
    if name not in COMMANDS or " " in argument.strip():
        return []
    values = paths(argument) if name in PATH_COMMANDS else fitting(argument, choices(name))
    return [Suggestion(f"/{name} {value}", value) for value in values if value != argument]
