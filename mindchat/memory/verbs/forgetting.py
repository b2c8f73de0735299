"""Forgetting: the row, its full-text postings, its WAL and its backups; and a tombstone so that reading again does not
bring it back.

Owns: /memory forget in all its forms. Does not own: undoing it (undo.py), erasing single chats (chats.py). Soft: the
rows go, an image stays in this process's RAM for undo. Hard: no image, nothing left in the file, its WAL or its
backups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindchat.errors import RefusedError, UsageError
from mindchat.memory.facts import FactMemory
from mindchat.memory.tables import ledger, snapshots
from mindchat.memory.tables.removal import forget_rows
from mindchat.memory.tables.tombstones import bury, bury_entity
from mindchat.memory.verbs import undo
from mindchat.memory.verbs.outcomes import Forgotten
from mindchat.memory.verbs.selecting import item, one, some
from mindchat.storage.chats import ChatStore
from mindchat.storage.erasing import erase, left_over
from mindchat.storage.sqlite_file import sqlite3
from mindchat.text.folding import fold


def forget(
    memory: FactMemory,
    ids: Sequence[str] = (),
    *,
    match: str | None = None,
    entity: str | None = None,
    doc: str | None = None,
    session: bool = False,
    since: str | None = None,
    everything: bool = False,
    dry_run: bool = False,
    hard: bool = False,
    yes: bool = False,
    chats: ChatStore | None = None,
) -> Forgotten:
    """Forget what is named, in whatever status. Pinned facts, and everything hard, need `yes`. `chats` (only hard):
    erase all chats too.

    Raises RefusedError if a confirmation is missing, UsageError if nothing or too much is named.
    """
    named = [bool(ids), match is not None, entity is not None, doc is not None, session, since is not None, everything]
    if sum(named) != 1:
        raise UsageError(
            "What should be forgotten?", "ID…, or one of --match, --entity, --doc, --session, --since, --all."
        )
    if chats is not None and not hard:
        raise UsageError("--chats goes with --hard.", "mindchat sessions delete ID erases a single chat.")
    rows = [one(memory, prefix) for prefix in dict.fromkeys(ids)] or _select(
        memory, match, entity, doc, session, since, everything
    )
    facts = tuple(item(memory, row) for row in rows)
    if dry_run:
        return Forgotten(facts, dry_run=True, hard=hard, everything=everything, project=memory.project)
    if hard and everything and not yes:
        raise RefusedError(
            f'This erases {len(facts)} facts of project "{memory.project}" and cannot be undone.',
            "Confirm with the project's name, or --yes.",
        )
    if any(fact.pinned for fact in facts) and not yes:
        raise RefusedError(f"{', '.join(fact.id for fact in facts if fact.pinned)} pinned.", "Unpin, or add --yes.")
    before = memory.store.bytes()
    if rows:
        _remove(memory, rows, entity, hard, everything)
    erased = chats.erase_all() if chats is not None else None
    left: list[str] = []
    if hard:
        erase(memory.store, "fact_fts")
        left = [*left_over(memory.store.path), *(left_over(chats.store.path) if chats is not None else ())]
    after = memory.store.bytes()
    return Forgotten(
        facts,
        hard=hard,
        everything=everything,
        project=memory.project,
        before=before,
        after=after,
        chats=erased,
        left=tuple(left),
    )


def _select(
    memory: FactMemory,
    match: str | None,
    entity: str | None,
    doc: str | None,
    session: bool,
    since: str | None,
    everything: bool,
) -> list[Any]:
    if everything:
        return [row for scope in ("project", "session") for row in some(memory, status="all", scope=scope)[0]]
    return some(memory, status="all", words=match, entity=entity, doc=doc, session=session, since=since)[0]


def _remove(memory: FactMemory, rows: Sequence[Any], entity: str | None, hard: bool, everything: bool) -> None:
    with memory.store.write() as connection:
        before, graves = (
            ({}, set())
            if hard
            else (snapshots.image(connection, [row["id"] for row in rows]), snapshots.graves(connection))
        )
        for row in rows:
            if not (hard and everything):  # a wiped project starts afresh: its documents may be learned again
                bury(connection, row["scope_id"], row["subject"], row["predicate"], row["object_norm"])
            if hard:
                _erase_traces(connection, row)
        if entity is not None:
            bury_entity(connection, rows[0]["scope_id"], entity)
        forget_rows(connection, [row["id"] for row in rows])
        for row in rows:
            ledger.settle_slot(connection, row["scope_id"], row["slot_key"])
        if hard and everything:
            scope = ledger.scope_id(connection, "project", memory.project)
            connection.execute("DELETE FROM tombstone WHERE scope_id=?", (scope,))
            connection.execute(
                "DELETE FROM event WHERE session_id IN (SELECT id FROM session WHERE scope_id=?)", (scope,)
            )
        ledger.note(connection, "forget", count=len(rows))
        if hard:
            memory.changes.clear()
        else:
            label = f"forget of {', '.join(row['uid'] for row in rows[:5])}{'…' if len(rows) > 5 else ''}"
            undo.remember(memory, snapshots.Change(label, before, graves=tuple(snapshots.graves(connection) - graves)))


def _erase_traces(connection: sqlite3.Connection, row: Any) -> None:
    """Audit rows (dropped claims, missed lookups) may name the fact without pointing to it."""
    names = {fold(row["subject"]), fold(row["object_text"])}
    for event in connection.execute("SELECT id, detail FROM event WHERE detail IS NOT NULL").fetchall():
        if any(name in fold(event["detail"]) for name in names):
            connection.execute("DELETE FROM event WHERE id=?", (event["id"],))
