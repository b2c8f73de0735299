"""Commands about memory: /memory with its verbs, /remember, /forget, /undo.

Owns: the parsing of a slash line into a verb and its arguments. Does not own: what verbs do and say (memory/verbs.py).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mindchat.commands.reply import Command, Reply, split
from mindchat.errors import UsageError
from mindchat.session import Session
from mindchat.text.clean import clean_line
from mindchat.text.nearest_name import nearest

if TYPE_CHECKING:
    from mindchat.memory.facts import FactMemory

FLAGS: dict[str, tuple[str, Any]] = {
    "-n": ("n", int),
    "--scope": ("scope", str),
    "--kind": ("kind", str),
    "--status": ("status", str),
    "--doc": ("doc", str),
    "--entity": ("entity", str),
    "--sort": ("sort", str),
    "--after": ("after", str),
    "--match": ("match", str),
    "--since": ("since", str),
    "--session": ("session", None),
    "--all": ("everything", None),
    "--dry-run": ("dry_run", None),
    "--hard": ("hard", None),
    "--yes": ("yes", None),
    "--fix": ("fix", None),
    "--keep": ("resolve", "keep"),
    "--replace": ("resolve", "replace"),
}
"""Flag → (keyword, type of its value). No type: the flag takes no value and means True, or the text given here."""


class Line(Struct, frozen=True):
    """A parsed slash line."""

    words: list[str]
    flags: dict[str, Any]

    @property
    def text(self) -> str:
        """All words as one text."""
        return " ".join(self.words)


def parse(args: str) -> Line:
    """Words and flags of a line; raises UsageError naming the flag that is wrong."""
    tokens = split(args)
    words: list[str] = []
    flags: dict[str, Any] = {}
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token not in FLAGS:
            if token.startswith("--"):
                near = nearest(token, FLAGS)
                raise UsageError(
                    f"There is no {clean_line(token, 30)} here." + (f" Did you mean {near}?" if near else ""),
                    "/memory help",
                )
            words.append(token)
            continue
        key, kind = FLAGS[token]
        if not callable(kind):
            flags[key] = kind or True
            continue
        if at == len(tokens):
            raise UsageError(f"{token} needs a value.", "/memory help")
        try:
            flags[key] = kind(tokens[at])
        except ValueError as error:
            raise UsageError(
                f"{token} needs a number, got {clean_line(tokens[at], 20)}.", "/memory list -n 20"
            ) from error
        at += 1
    return Line(words, flags)


def memory_of(session: Session) -> FactMemory:
    """The facts. Raises UsageError where there are none."""
    if session.rooms.memory is None:
        raise UsageError("Memory is off in this conversation.", "/incognito off, or /set memory.mode on")
    return session.rooms.memory  # type: ignore[return-value]


def _one(line: Line) -> str:
    if len(line.words) != 1:
        raise UsageError("Which fact?", "Give its id, or the first three characters of it.")
    return line.words[0]


def _edit(call: Callable[..., Any], memory: FactMemory, line: Line) -> Any:
    changes = dict(word.partition("=")[::2] for word in line.words[1:])
    return call(memory, line.words[0] if line.words else "", changes)


def _alias(call: Callable[..., Any], memory: FactMemory, line: Line) -> Any:
    from mindchat.memory.verbs.editing import alias_rm

    if line.words[:1] == ["rm"]:
        return alias_rm(memory, " ".join(line.words[1:]))
    name, _, other = line.text.partition("=")
    return call(memory, name.strip(), other.strip())


def _merge(call: Callable[..., Any], memory: FactMemory, line: Line) -> Any:
    name, _, into = line.text.partition(" INTO ")
    return call(memory, name.strip(), into.strip())


def _import(call: Callable[..., Any], memory: FactMemory, line: Line) -> Any:
    return call(memory, Path(_one(line)).expanduser(), **line.flags)


SHAPES: dict[str, Callable[[Callable[..., Any], FactMemory, Line], Any]] = {
    "status": lambda call, memory, line: call(memory),
    "list": lambda call, memory, line: call(memory, **line.flags),
    "search": lambda call, memory, line: call(memory, line.text, **line.flags),
    "show": lambda call, memory, line: call(memory, _one(line)),
    "why": lambda call, memory, line: call(memory, line.words[0] if line.words else None),
    "add": lambda call, memory, line: call(memory, line.text, **line.flags),
    "edit": _edit,
    "pin": lambda call, memory, line: call(memory, line.words),
    "unpin": lambda call, memory, line: call(memory, line.words),
    "confirm": lambda call, memory, line: call(memory, line.words),
    "reject": lambda call, memory, line: call(memory, line.words),
    "forget": lambda call, memory, line: call(memory, line.words, **line.flags),
    "undo": lambda call, memory, line: call(
        memory, int(line.words[0]) if line.words and line.words[0].isdigit() else 1
    ),
    "alias": _alias,
    "merge": _merge,
    "export": lambda call, memory, line: call(memory, Path(_one(line)).expanduser(), **line.flags),
    "import": _import,
    "stats": lambda call, memory, line: call(memory, **line.flags),
    "doctor": lambda call, memory, line: call(memory, **line.flags),
    "path": lambda call, memory, line: call(memory),
}
"""Verb → how its function takes a parsed line."""
MODES = ("on", "readonly", "off")


def run_verb(memory: FactMemory, verb: str, args: str) -> Reply:
    """One /memory verb; raises UsageError with the nearest verb for an unknown one."""
    from mindchat.memory.verbs import VERBS

    if verb in MODES:
        result = VERBS["mode"](memory, verb)
    elif verb in SHAPES:
        try:
            result = SHAPES[verb](VERBS[verb], memory, parse(args))
        except TypeError as error:
            raise UsageError(f"/memory {verb} does not take these: {error}.", "/memory help") from error
    elif verb == "help":
        return Reply("/memory " + " · ".join((*SHAPES, *MODES)))
    else:
        near = nearest(verb, (*SHAPES, *MODES))
        raise UsageError(
            f"unknown: {clean_line(verb, 30)}." + (f" Did you mean {near}?" if near else ""), "/memory help"
        )
    return Reply(result.render(), ok=result.exit_code == 0, data=result)


def memory(session: Session, args: str) -> Iterator[Reply]:
    """A verb of memory; bare: its status."""
    verb, _, rest = args.strip().partition(" ")
    yield run_verb(memory_of(session), verb or "status", rest)


def remember(session: Session, args: str) -> Iterator[Reply]:
    """Keep a note of the user's."""
    if not args.strip():
        raise UsageError("What should be remembered?", "/remember TEXT")
    yield run_verb(memory_of(session), "add", shlex.quote(args.strip()))


def forget(session: Session, args: str) -> Iterator[Reply]:
    """Forget facts."""
    yield run_verb(memory_of(session), "forget", args)


def undo(session: Session, args: str) -> Iterator[Reply]:
    """Take back the newest memory changes."""
    yield run_verb(memory_of(session), "undo", args)


COMMANDS = (
    Command(
        "memory",
        "/memory [VERB …]",
        "what is remembered; /memory help lists its verbs",
        memory,
        lambda _: [*SHAPES, *MODES],
    ),
    Command("remember", "/remember TEXT", "keep a note", remember),
    Command("forget", "/forget ID… | --match WORDS", "forget facts for good", forget),
    Command("undo", "/undo [N]", "take back the newest changes of memory", undo),
)
