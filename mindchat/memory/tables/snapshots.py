"""Images of facts before a change, and putting them back.

Owns: reading and restoring whole rows. Does not own: the changes, or when they are taken back (undo.py).
A forgotten fact's image lives in RAM only and dies with the process: what is forgotten must not stay on the disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from mindchat.memory.tables import ledger
from mindchat.memory.tables.removal import forget_rows
from mindchat.storage.clock import now
from mindchat.storage.sqlite_file import sqlite3

_TABLES = ("entity", "alias", "fact", "evidence")


class Change(Struct, frozen=True):
    """One undoable command."""

    label: str
    rows: dict[str, list[dict[str, Any]]]
    """Images by table, of everything the command touched, before it."""
    created: tuple[str, ...] = ()
    """Ids of facts that did not exist before."""
    graves: tuple[tuple[int, str, str], ...] = ()
    """Tombstones that did not exist before."""
    counter: tuple[tuple[int, str, str], ...] = ()
    """Tombstones that were lifted."""


def image(connection: sqlite3.Connection, facts: Iterable[int]) -> dict[str, list[dict[str, Any]]]:
    """The rows of these facts, their evidence, entities and aliases."""
    found: dict[str, dict[Any, dict[str, Any]]] = {table: {} for table in _TABLES}

    def take(table: str, sql: str, *values: Any) -> None:
        for row in connection.execute(sql, values).fetchall():
            image = dict(zip(row.keys(), row, strict=True))
            found[table][image.get("id", (image.get("norm"), image.get("entity_id")))] = image

    for fact in facts:
        take("fact", "SELECT * FROM fact WHERE id=?", fact)
        take("evidence", "SELECT * FROM evidence WHERE fact_id=?", fact)
        take("entity", "SELECT e.* FROM entity e JOIN fact f ON e.id IN (f.subject_id, f.object_id) WHERE f.id=?", fact)
    for entity in list(found["entity"]):
        take("alias", "SELECT * FROM alias WHERE entity_id=?", entity)
    return {table: list(rows.values()) for table, rows in found.items()}


def graves(connection: sqlite3.Connection) -> set[tuple[int, str, str]]:
    """All tombstones."""
    return {tuple(row) for row in connection.execute("SELECT scope_id, kind, key_hmac FROM tombstone").fetchall()}


def put_back(connection: sqlite3.Connection, change: Change) -> None:
    """Undo a change inside the caller's transaction."""
    for uid in change.created:
        take_back(connection, connection.execute("SELECT * FROM fact WHERE uid=?", (uid,)).fetchall())
    for table in _TABLES:
        for row in change.rows.get(table, ()):
            if table != "evidence" or _still_there(connection, row):
                _write(connection, table, row)
    for grave in change.graves:
        connection.execute("DELETE FROM tombstone WHERE scope_id=? AND kind=? AND key_hmac=?", grave)
    for grave in change.counter:
        connection.execute(
            "INSERT INTO tombstone(scope_id, kind, key_hmac, created_at) VALUES(?,?,?,?) ON CONFLICT DO NOTHING",
            (*grave, now()),
        )
    # Triggers recount support while evidence returns; the image's own status has the last word.
    for row in change.rows.get("fact", ()):
        connection.execute(
            "UPDATE fact SET status=?, prev_status=? WHERE id=?", (row["status"], row["prev_status"], row["id"])
        )
        ledger.note(connection, "undo", row["id"])


def _still_there(connection: sqlite3.Connection, row: dict[str, Any]) -> bool:
    return (
        row["chunk_id"] is None
        or connection.execute("SELECT 1 FROM chunk WHERE id=?", (row["chunk_id"],)).fetchone() is not None
    )


def _write(connection: sqlite3.Connection, table: str, row: dict[str, Any]) -> None:
    key = "norm, entity_id" if table == "alias" else "id"
    sets = ", ".join(f"{name}=excluded.{name}" for name in row)
    sql = (
        f"INSERT INTO {table}({', '.join(row)}) VALUES({', '.join('?' * len(row))}) ON CONFLICT({key}) DO UPDATE SET"
        f" {sets}"
    )
    connection.execute(sql, tuple(row.values()))


def take_back(connection: sqlite3.Connection, rows: Sequence[Any]) -> None:
    """Delete facts; what they had superseded is open again, and a dispute of which one side is left ends."""
    for row in rows:
        connection.execute(
            "UPDATE fact SET status=coalesce(prev_status, 'active'), prev_status=NULL, closed_at=NULL, closed_by=NULL,"
            " closed_why=NULL WHERE closed_by=? AND status='superseded'",
            (row["id"],),
        )
        forget_rows(connection, [row["id"]])
        ledger.settle_slot(connection, row["scope_id"], row["slot_key"])
