"""Taking facts out of the tables: on request, and where a scope has too many.

Owns: deleting rows with all that hangs on them, the order of eviction. Does not own: tombstones, which facts a person
means (forgetting.py).
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from mindchat.memory.tables.entity_keys import drop_orphan
from mindchat.memory.tables.ledger import note
from mindchat.storage.sqlite_file import sqlite3


def forget_rows(connection: sqlite3.Connection, facts: list[int]) -> None:
    """Delete facts with evidence, audit details, and entities nobody names any more."""
    for fact in facts:
        row = connection.execute("SELECT subject_id, object_id FROM fact WHERE id=?", (fact,)).fetchone()
        connection.execute("DELETE FROM fact WHERE id=?", (fact,))
        connection.execute("DELETE FROM event WHERE fact_id=?", (fact,))
        for entity in {row["subject_id"], row["object_id"]} - {None}:
            drop_orphan(connection, entity)


def evict(connection: sqlite3.Connection, scope: int, limit: int) -> int:
    """Bring a scope under its limit; how many facts went. Never pinned ones or the user's own; closed ones and
    candidates go first.
    """
    over = int(connection.execute("SELECT count(*) FROM fact WHERE scope_id=?", (scope,)).fetchone()[0]) - limit
    if over <= 0:
        return 0
    columns = "id, status, confidence, use_count, coalesce(last_used_at, recorded_at) AS used"
    sql = f"SELECT {columns} FROM fact WHERE scope_id=? AND pinned=0 AND kind='document'"
    rows = sorted(connection.execute(sql, (scope,)).fetchall(), key=_worth)[:over]
    forget_rows(connection, [row["id"] for row in rows])
    if rows:
        note(connection, "evict", count=len(rows))
    return len(rows)


def _worth(row: Any) -> tuple[bool, float, int]:
    """Sort key of eviction, the least worth keeping first: served facts last, then confidence · log(uses + 2), halved
    every 90 idle days.
    """
    idle = (datetime.now(UTC) - datetime.fromisoformat(row["used"])).total_seconds() / 86400
    return (
        row["status"] in ("active", "disputed"),
        row["confidence"] * math.log1p(row["use_count"] + 1) * 0.5 ** (idle / 90),
        row["id"],
    )
