"""What was forgotten stays forgotten: keyed hashes of it, without its words.

Owns: the table of tombstones. Does not own: what is forgotten (forgetting.py) and who asks before writing (ledger.py).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from mindchat.storage.clock import now
from mindchat.storage.sqlite_file import sqlite3
from mindchat.text.folding import norm


def _tombstone_key(connection: sqlite3.Connection) -> bytes:
    connection.execute(
        "INSERT INTO meta(key, value) VALUES('tombstone_key', ?) ON CONFLICT(key) DO NOTHING", (secrets.token_hex(32),)
    )
    return bytes.fromhex(connection.execute("SELECT value FROM meta WHERE key='tombstone_key'").fetchone()[0])


def _mac(connection: sqlite3.Connection, *parts: str) -> str:
    return hmac.new(_tombstone_key(connection), "\x1f".join(parts).encode(), hashlib.sha256).hexdigest()


def _graves(connection: sqlite3.Connection, subject: str, predicate: str, value: str) -> list[tuple[str, str]]:
    names = [norm(subject), value]
    return [
        ("fact", _mac(connection, norm(subject), predicate, value)),
        *(("entity", _mac(connection, name)) for name in names),
    ]


def bury(connection: sqlite3.Connection, scope: int, subject: str, predicate: str, value: str) -> None:
    """Remember, without its words, that this fact was forgotten."""
    kind, mac = _graves(connection, subject, predicate, value)[0]
    sql = "INSERT INTO tombstone(scope_id, kind, key_hmac, created_at) VALUES(?,?,?,?) ON CONFLICT DO NOTHING"
    connection.execute(sql, (scope, kind, mac, now()))


def bury_entity(connection: sqlite3.Connection, scope: int, name: str) -> None:
    """Remember, without its name, that everything about this entity was forgotten."""
    sql = "INSERT INTO tombstone(scope_id, kind, key_hmac, created_at) VALUES(?,'entity',?,?) ON CONFLICT DO NOTHING"
    connection.execute(sql, (scope, _mac(connection, norm(name)), now()))


def buried(connection: sqlite3.Connection, scope: int, subject: str, predicate: str, value: str) -> bool:
    """Whether this fact, or everything about one of its entities, was forgotten in this scope."""
    sql = "SELECT 1 FROM tombstone WHERE scope_id=? AND kind=? AND key_hmac=?"
    return any(
        connection.execute(sql, (scope, kind, mac)).fetchone()
        for kind, mac in _graves(connection, subject, predicate, value)
    )


def exhume(connection: sqlite3.Connection, scope: int, subject: str, predicate: str, value: str) -> None:
    """Lift the tombstones that keep this fact out: the user asks for it again."""
    for kind, mac in _graves(connection, subject, predicate, value):
        connection.execute("DELETE FROM tombstone WHERE scope_id=? AND kind=? AND key_hmac=?", (scope, kind, mac))
