"""A trial: the newest question once more under other settings, with nothing written down; for /compare.

Owns: trial(), which leaves the session as it was. Does not own: showing it (screens.compare). Chats are left out, and
memory is read but not written: a trial that learned would change what the next answer is made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from mindchat.errors import UsageError
from mindchat.events import Event
from mindchat.ports import Cancel
from mindchat.session import Session


def written(value: Any) -> str:
    """A setting's value as change() takes it."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def setting(session: Session, key: str) -> str:
    """The value now, as change() takes it; "" for a key that does not exist (change() will name the nearest)."""
    section, _, name = key.partition(".")
    return written(msgspec.to_builtins(session.config).get(section, {}).get(name, ""))


def trial(session: Session, changes: Sequence[str], cancel: Cancel) -> Iterator[Event]:
    """One turn over the newest question; `changes` are section.key=value. Raises what Session.change and Session.ask
    raise.
    """
    if not session.turns:
        raise UsageError("There is no question to compare.", "Ask one first.")
    newest = session.turns[-1]
    pairs = [(key.strip(), value.strip()) for key, _, value in (change.partition("=") for change in changes)]
    if session.config.memory.mode == "on" and all(key != "memory.mode" for key, _ in pairs):
        pairs.append(("memory.mode", "readonly"))
    before = {key: setting(session, key) for key, _ in pairs}
    id, turns, events, history = session.id, list(session.turns), list(session.events), list(session.history)
    done: list[str] = []
    try:
        for key, value in pairs:
            session.change(key, value)
            done.append(key)
        session.rooms = replace(session.rooms, chats=None)
        session.history = history[:-1] if newest.answer is not None else history
        yield from session.ask(newest.question, cancel=cancel)
    finally:
        session.id = id
        for key in reversed(done):
            session.change(key, before[key])
        session.turns, session.events, session.history = turns, events, history
