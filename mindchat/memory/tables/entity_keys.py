"""Entities, their aliases, and the keys under which facts about them meet.

Owns: finding or making an entity, dropping one that nobody names. Does not own: what a user says about aliases
(editing.py), facts (ledger.py).
"""

from __future__ import annotations

import hashlib

from mindchat.storage.clock import now
from mindchat.storage.sqlite_file import sqlite3
from mindchat.text.clean import clean_line
from mindchat.text.folding import norm


def entity_id(
    connection: sqlite3.Connection, name: str, etype: str, disambig: str = "", source: str = "surface"
) -> int:
    """The entity of this name and type; made, with its alias, if it is new. Never merges by similarity.

    An entity whose type was not known takes the first known one. A name without parenthesis means the only entity of
    that name, whatever its parenthesis; a name known only as the user's alias is its owner's if that is unique.
    """
    key, kind = norm(name), "other" if etype == "any" else etype
    rows = connection.execute(
        "SELECT id, etype FROM entity WHERE norm=? AND disambig=? AND merged_into IS NULL ORDER BY id", (key, disambig)
    ).fetchall()
    if not rows and not disambig:
        rows = connection.execute(
            "SELECT id, etype FROM entity WHERE norm=? AND merged_into IS NULL LIMIT 2", (key,)
        ).fetchall()
        rows = rows if len(rows) == 1 else []
    match = [row for row in rows if row["etype"] == kind] or (
        [rows[0]] if len(rows) == 1 and "other" in (kind, rows[0]["etype"]) else []
    )
    if not match and not disambig:
        aliased = connection.execute(
            "SELECT e.id, e.etype FROM alias a JOIN entity e ON e.id=a.entity_id WHERE a.norm=? AND a.source='user' AND"
            " e.merged_into IS NULL",
            (key,),
        ).fetchall()
        match = aliased if len(aliased) == 1 else []
    if match:
        found = int(match[0]["id"])
        if match[0]["etype"] == "other" != kind:
            connection.execute("UPDATE entity SET etype=? WHERE id=?", (kind, found))
    else:
        row = connection.execute(
            "INSERT INTO entity(name, norm, etype, disambig, created_at) VALUES(?,?,?,?,?)",
            (clean_line(name, 200), key, kind, disambig, now()),
        )
        found = int(row.lastrowid or 0)
    connection.execute(
        "INSERT INTO alias(norm, entity_id, surface, source) VALUES(?,?,?,?) ON CONFLICT(norm, entity_id) DO UPDATE SET"
        " n=n+1",
        (key, found, clean_line(name, 200), source),
    )
    return found


def _sha(*parts: object) -> str:
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()


def slot_key(subject: int, predicate: str) -> str:
    """The key under which contradicting facts meet."""
    return _sha(subject, predicate)


def fact_key(subject: int, predicate: str, value: str) -> str:
    """The key under which equal facts meet."""
    return _sha(subject, predicate, value, 1)


def drop_orphan(connection: sqlite3.Connection, entity: int) -> None:
    """Delete an entity (and its aliases) that no fact and no merge refers to."""
    used = (
        "SELECT 1 FROM fact WHERE subject_id=:e OR object_id=:e UNION ALL SELECT 1 FROM entity WHERE merged_into=:e"
        " LIMIT 1"
    )
    if not connection.execute(used, {"e": entity}).fetchone():
        connection.execute("DELETE FROM entity WHERE id=?", (entity,))
