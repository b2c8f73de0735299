"""Taking back changes: images in RAM for what this process did, the audit trail for what an earlier one saved.

Owns: the order of undoing. Does not own: images (snapshots.py).
"""

from __future__ import annotations

from mindchat.memory.facts import FactMemory
from mindchat.memory.tables import snapshots
from mindchat.memory.tables.snapshots import Change
from mindchat.memory.verbs.outcomes import Undone
from mindchat.storage.sqlite_file import sqlite3


def remember(memory: FactMemory, change: Change) -> None:
    """Put a change on the stack of this process (the last 50)."""
    memory.changes.append(change)
    del memory.changes[:-50]


def undo(memory: FactMemory, n: int = 1) -> Undone:
    """Take back the last n memory changes of this session, newest first. What an earlier process saved is found in the
    audit trail.
    """
    done: list[str] = []
    note = ""
    for _ in range(max(1, n)):
        with memory.store.write() as connection:
            if memory.changes:
                change = memory.changes.pop()
                snapshots.put_back(connection, change)
                label = change.label
            else:
                label = _undo_saved(connection, memory)
        if not label:
            note = "" if done else "nothing to undo; a forget can be undone only by the process that did it"
            break
        done.append(label)
    return Undone(tuple(done), note)


def _undo_saved(connection: sqlite3.Connection, memory: FactMemory) -> str:
    """Take back the last automatic save of this session, and what it had superseded or disputed."""
    row = connection.execute(
        "SELECT e.id AS event, f.* FROM event e JOIN session s ON s.id=e.session_id JOIN fact f ON f.id=e.fact_id WHERE"
        " e.name='store' AND s.uid=? ORDER BY e.id DESC LIMIT 1",
        (memory.session,),
    ).fetchone()
    if row is None:
        return ""
    snapshots.take_back(connection, [row])
    return f"saved {row['uid']}  {row['statement']}"
