"""Finding facts for the commands: by id, words, entity, document, session or age, in any status.

Owns: turning what a person names into rows and list items. Does not own: what the engine reads (recall.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from mindchat.errors import NotFoundError, UsageError
from mindchat.memory.facts import FactMemory
from mindchat.memory.learning.slots import predicates
from mindchat.memory.tables.listing import COLUMNS, SOURCES
from mindchat.memory.tables.recall import named, source_label
from mindchat.memory.verbs.results import Item
from mindchat.storage.clock import ago
from mindchat.text.clean import clean_line
from mindchat.text.folding import norm, search_query

STATUSES = ("active", "candidate", "disputed", "stale", "superseded")
SCOPES = ("session", "project", "global", "all")
_ORDER = {
    "recent": "f.recorded_at DESC, f.id DESC",
    "confidence": "f.confidence DESC, f.id DESC",
    "used": "f.use_count DESC, f.id DESC",
}


def item(memory: FactMemory, row: Any) -> Item:
    """The list item of a row of COLUMNS."""
    sources = memory.store.rows(f"{SOURCES} LIMIT 1", (row["id"],))
    source = source_label(sources[0]) if sources else ""
    if source == "you":
        source = f"you, {datetime.fromisoformat(row['recorded_at']):%d %b}"
    return Item(
        row["uid"],
        named(row["subject"], row["disambig"]),
        row["predicate"],
        predicates()[row["predicate"]].phrase if row["predicate"] in predicates() else row["predicate"],
        row["object_text"],
        row["confidence"],
        row["use_count"],
        source,
        row["status"],
        row["kind"],
        bool(row["pinned"]),
        row["scope_kind"],
        row["support"],
        row["recorded_at"],
        row["closed_at"],
    )


def _visible(memory: FactMemory, scope: str | None) -> tuple[str, list[str]]:
    """SQL and parameters of the scopes that a command sees: its session, project and the global one. "all" is every
    project.
    """
    if scope == "all":
        return "1", []
    if scope is not None and scope not in SCOPES:
        raise UsageError(f"{scope!r} is no scope.", f"One of {', '.join(SCOPES)}.")
    names = [name for name in memory.reader.names if scope in (None, name[0])]
    return f"({' OR '.join('(s.kind=? AND s.name=?)' for _ in names)})", [part for name in names for part in name]


def one(memory: FactMemory, prefix: str) -> Any:
    """The row of a visible fact by any unique prefix of at least three characters. Raises UsageError, NotFoundError."""
    wanted = prefix.strip().lower().rstrip("*")
    if len(wanted) < 3:
        raise UsageError(
            f"{clean_line(prefix, 20)!r} is too short for an id.",
            "Give at least three characters; /memory list shows ids.",
        )
    where, parameters = _visible(memory, None)
    rows = memory.store.rows(
        f"{COLUMNS} WHERE {where} AND substr(f.uid, 1, ?)=? LIMIT 2", [*parameters, len(wanted), wanted]
    )
    if not rows:
        raise NotFoundError(f"No fact {clean_line(prefix, 20)}.", "/memory list --status all shows every id.")
    if len(rows) > 1:
        raise UsageError(f"Several facts begin with {clean_line(prefix, 20)}.", "Give more characters.")
    return rows[0]


def by_key(memory: FactMemory, key: int) -> Any:
    """The row of a fact by its key."""
    return memory.store.row(f"{COLUMNS} WHERE f.id=?", (key,))


def some(
    memory: FactMemory,
    *,
    scope: str | None = None,
    kind: str | None = None,
    status: str = "active",
    doc: str | None = None,
    entity: str | None = None,
    words: str | None = None,
    session: bool = False,
    since: str | None = None,
    sort: str = "recent",
    limit: int = -1,
    after: str | None = None,
) -> tuple[list[Any], int]:
    """(rows, how many there are in all) of the facts that fit every condition."""
    where, parameters = _visible(memory, scope)
    conditions = [where]

    def need(sql: str, *values: Any) -> None:
        conditions.append(sql)
        parameters.extend(values)

    if status != "all":
        if status not in STATUSES:
            raise UsageError(f"{status!r} is no status.", f"One of {', '.join(STATUSES)}, all.")
        need("f.status=?", status)
    if kind is not None:
        need("f.kind=?", kind)
    if doc is not None:
        full = str(Path(doc).expanduser().absolute())
        named = "d.uri IN (?, ?) OR d.title=? OR substr(d.uri, 1, ?)=?"
        sql = f"f.id IN (SELECT v.fact_id FROM evidence v JOIN document d ON d.id=v.document_id WHERE {named})"
        need(sql, doc, full, doc, len(full) + 1, f"{full}#")
    if entity is not None:
        keys = [row[0] for row in memory.store.rows("SELECT entity_id FROM alias WHERE norm=?", (norm(entity),))]
        marks = ",".join("?" * len(keys))
        need(f"(f.subject_id IN ({marks}) OR f.object_id IN ({marks}) OR f.object_norm=?)", *keys, *keys, norm(entity))
    if words is not None:
        query = search_query(words).replace(" OR ", " AND ")
        if not query:
            raise UsageError("There is no word to search for.", "Give a name or a rare word.")
        need("f.id IN (SELECT rowid FROM fact_fts WHERE fact_fts MATCH ?)", query)
    if session:
        need(
            "f.id IN (SELECT v.fact_id FROM evidence v JOIN session n ON n.id=v.session_id WHERE n.uid=?)",
            memory.session,
        )
    if since is not None:
        need("f.recorded_at >= ?", ago(since))
    total = int(memory.store.value(f"SELECT count(*) FROM ({COLUMNS} WHERE {' AND '.join(conditions)})", parameters))
    return _page(memory, conditions, parameters, sort, limit, after), total


def _page(
    memory: FactMemory, conditions: Sequence[str], parameters: Sequence[Any], sort: str, limit: int, after: str | None
) -> list[Any]:
    if sort not in _ORDER:
        raise UsageError(f"{sort!r} is no order.", f"One of {', '.join(_ORDER)}.")
    rows = memory.store.rows(f"{COLUMNS} WHERE {' AND '.join(conditions)} ORDER BY {_ORDER[sort]}", parameters)
    if after is not None:
        key = one(memory, after)["id"]
        places = [i for i, row in enumerate(rows) if row["id"] == key]
        rows = rows[places[0] + 1 :] if places else []
    return rows if limit < 0 else rows[:limit]
