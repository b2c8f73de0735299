"""Where a question comes from: the argument, standard input, or both.

Owns: read_question. Does not own: what is done with it.
"""

from __future__ import annotations

import os
import select
import stat
import sys

from mindchat.cli.output import Narrator
from mindchat.errors import UsageError
from mindchat.values import MAX_QUESTION

PATIENCE_SECONDS = 5.0
"""How long a silent pipe is waited for when the question already stands in the argument."""

_HINT = 'Type one, for example: mindchat ask "Who directed Metropolis?"'


def read_question(argument: str | None, narrator: Narrator) -> str:
    """The question; piped text precedes the argument, `-` means standard input alone. Raises UsageError if nothing is
    there.
    """
    if argument is None or argument == "-":
        if argument is None and sys.stdin.isatty():
            raise UsageError("The question is empty.", _HINT)
        question = _read_all()
    else:
        piped = _piped(narrator).strip()
        question = f"{piped}\n\n{argument}" if piped and argument.strip() else argument
    if not question.strip():
        raise UsageError("The question is empty.", _HINT)
    return question.strip()


def _read_all() -> str:
    source = getattr(sys.stdin, "buffer", None)
    # a character more than a session takes, so that it can say so; a pipe may never end
    return sys.stdin.read() if source is None else source.read(4 * MAX_QUESTION + 1).decode("utf-8", "replace")


def _piped(narrator: Narrator) -> str:
    """What a pipe or a redirected file holds. A pipe that stays open and silent (a job runner's) is given up after a
    while, and that is said.
    """
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError, AttributeError):
        return ""
    if stat.S_ISREG(mode):
        return _read_all()
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return ""
    if os.name == "posix" and not select.select([sys.stdin], [], [], PATIENCE_SECONDS)[0]:
        narrator.warn("Standard input stayed silent, so the question is asked without it (use - to wait for it).")
        return ""
    return _read_all()
