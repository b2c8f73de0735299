"""Changing facts by hand: add, remember, edit, pin, confirm, reject, alias, merge, the project's switch.

Owns: these commands; each is one transaction and can be undone. Does not own: forgetting (forgetting.py).
Every text passes the same screens as learned facts: secrets and personal numbers are refused, whoever writes them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from mindchat.errors import NotFoundError, RefusedError, UsageError
from mindchat.memory.facts import FactMemory, Mode
from mindchat.memory.learning import redaction
from mindchat.memory.learning.slots import Predicate, find_predicate, predicates
from mindchat.memory.tables import ledger, snapshots
from mindchat.memory.tables.entity_keys import drop_orphan, entity_id, fact_key, slot_key
from mindchat.memory.tables.ledger import Claim, Evidence
from mindchat.memory.tables.removal import forget_rows
from mindchat.memory.tables.tombstones import bury, exhume
from mindchat.memory.verbs import undo
from mindchat.memory.verbs.outcomes import Added, Aliased, Changed, Edited, ModeSet
from mindchat.memory.verbs.selecting import by_key, item, one
from mindchat.storage.clock import now
from mindchat.storage.sqlite_file import sqlite3
from mindchat.text.clean import clean_line
from mindchat.text.folding import norm, split_title
from mindchat.text.typed_spans import value_norm

Resolve = Literal["ask", "keep", "replace"]
_SELF = {"you", "i", "me", "user", "myself"}
_DATE = re.compile(r"\d{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?")
_MANUAL = Evidence("manual", "manual", 0)


def _screened(text: str) -> str:
    """The text on one line. Raises RefusedError for a secret, UsageError if it is empty or too long."""
    if kind := redaction.secret(text) or redaction.personal(text):
        raise RefusedError(f"not saved: looks like a secret ({kind}).", "Memory never stores secrets.")
    line = clean_line(text)
    if not norm(line):
        raise UsageError("There is nothing to remember.", "/remember TEXT, or /memory add SUBJECT | PREDICATE | OBJECT")
    if len(line) > 250:
        raise UsageError(
            f"A fact may have 250 characters, this has {len(line)}.", "Say it shorter, or put it into a document."
        )
    return line


def _writable(memory: FactMemory) -> None:
    if memory.mode == "off":
        raise RefusedError("Memory is off.", "/memory on switches it on.")
    if memory.mode == "readonly":
        raise RefusedError("Memory is read only.", "/memory on allows writing.")


def add(memory: FactMemory, text: str, *, resolve: Resolve = "ask", scope: str = "project") -> Added:
    """/remember TEXT, or SUBJECT | PREDICATE | OBJECT. A contradiction writes nothing until `resolve` says what to do."""
    _writable(memory)
    parts = [part.strip() for part in text.split("|")]
    if len(parts) not in (1, 3):
        raise UsageError("A fact has three parts.", "/memory add SUBJECT | PREDICATE | OBJECT, or plain text without |")
    line = _screened(text.replace("|", " — ") if len(parts) == 3 else text)
    subject, predicate, value = (
        (_screened(parts[0]), find_predicate(parts[1]), _screened(parts[2]))
        if len(parts) == 3
        else (ledger.USER, predicates()["note"], line)
    )
    claim = _claim(subject, predicate, value)
    with memory.store.write() as connection:
        scope_key, session, name = _scope(connection, memory, scope)
        rivals = [] if resolve != "ask" else _contradicted(connection, scope_key, claim)
        if rivals:
            return Added(
                None, conflicts=tuple(item(memory, by_key(memory, row["id"])) for row in rivals), project=memory.project
            )
        before = snapshots.image(connection, [row["id"] for row in _slot_rows(connection, scope_key, claim)])
        lifted = snapshots.graves(connection)
        exhume(connection, scope_key, claim.subject, predicate.name, claim.object_norm)
        written = ledger.write(
            connection, scope_key, name, claim, session=session, turn=memory.turn, replace=resolve == "replace"
        )
        _promote(connection, written.fact)
        saved = item(memory, by_key(memory, written.fact))
        new = written.outcome == "new"
        counter = tuple(lifted - snapshots.graves(connection))
        undo.remember(
            memory,
            snapshots.Change(
                f"saved {saved.id}  {saved.statement}", before, (saved.id,) if new else (), counter=counter
            ),
        )
        conflicts = tuple(item(memory, by_key(memory, key)) for key in written.conflicts)
    return Added(saved, new, conflicts, memory.project)


def _claim(subject: str, predicate: Predicate, value: str, confidence: float = 1.0) -> Claim:
    mine = subject.casefold() in _SELF
    if predicate.kind == "user" and not mine:
        raise UsageError(f"{predicate.phrase} is only about you.", f"/memory add you | {predicate.phrase} | …")
    name, disambig = (ledger.USER, "") if mine else split_title(subject)
    kind: Literal["user", "document"] = "user" if mine else "document"
    return Claim(
        name,
        predicate,
        value,
        value_norm(value, predicate.range),
        confidence,
        "active",
        _MANUAL,
        disambig,
        "user" if mine else "",
        kind,
    )


def _scope(connection: sqlite3.Connection, memory: FactMemory, kind: str) -> tuple[int, int, str]:
    names = {"project": memory.project, "session": memory.session, "global": "global"}
    if kind not in names:
        raise UsageError(f"{kind!r} is no scope.", f"One of {', '.join(names)}.")
    project = ledger.scope_id(connection, "project", memory.project)
    key = project if kind == "project" else ledger.scope_id(connection, kind, names[kind])
    return key, ledger.session_id(connection, memory.session, project), names[kind]


def _slot_rows(connection: sqlite3.Connection, scope: int, claim: Claim) -> list[Any]:
    kind = claim.subject_type or claim.predicate.domain
    subject = entity_id(connection, claim.subject, kind, claim.disambig)
    found = ledger.rivals(connection, scope, subject, claim.predicate.name)
    drop_orphan(connection, subject)
    return found


def _contradicted(connection: sqlite3.Connection, scope: int, claim: Claim) -> list[Any]:
    """Served facts that hold another value of a one-value slot; the user's own facts are simply replaced."""
    if claim.predicate.cardinality == "many" or claim.kind == "user":
        return []
    rows = [row for row in _slot_rows(connection, scope, claim) if row["status"] in ("active", "disputed")]
    return [] if any(row["object_norm"] == claim.object_norm for row in rows) else rows


def _promote(connection: sqlite3.Connection, fact: int) -> None:
    """A person's word makes a candidate active, and sure."""
    connection.execute(
        "UPDATE fact SET confidence=1.0, status=CASE status WHEN 'candidate' THEN 'active' ELSE status END WHERE id=?",
        (fact,),
    )


def edit(memory: FactMemory, prefix: str, changes: dict[str, str]) -> Edited:
    """object="…", valid-from=YYYY[-MM[-DD]], valid-to=…, scope=…. A new object supersedes the old fact, or merges with
    an equal one.
    """
    _writable(memory)
    row = one(memory, prefix)
    unknown = set(changes) - {"object", "valid-from", "valid-to", "scope"}
    if unknown or not changes:
        raise UsageError(
            f"{next(iter(unknown), 'nothing')!r} cannot be edited.",
            'object="…", valid-from=YYYY-MM-DD, valid-to=…, scope=project',
        )
    for name in ("valid-from", "valid-to"):
        if changes.get(name) and not _DATE.fullmatch(changes[name]):
            raise UsageError(f"{changes[name]!r} is no date.", "YYYY, YYYY-MM or YYYY-MM-DD")
    old, merged, settled = item(memory, row), False, False
    with memory.store.write() as connection:
        slot = connection.execute(
            "SELECT id FROM fact WHERE slot_key=? AND scope_id=?", (row["slot_key"], row["scope_id"])
        ).fetchall()
        before = snapshots.image(connection, [found["id"] for found in slot])
        key, created = int(row["id"]), ""
        if "object" in changes:
            key, merged, settled = _edit_object(connection, memory, row, _screened(changes["object"]))
            created = "" if merged or key == row["id"] else ledger.uid_of(connection, key)
        for name, column in (("valid-from", "valid_from"), ("valid-to", "valid_to")):
            if name in changes:
                connection.execute(f"UPDATE fact SET {column}=? WHERE id=?", (changes[name] or None, key))
        if "scope" in changes:
            connection.execute(
                "UPDATE fact SET scope_id=? WHERE id=?", (_scope(connection, memory, changes["scope"])[0], key)
            )
        ledger.note(connection, "edit", key, uid=old.id)
        undo.remember(memory, snapshots.Change(f"edit of {old.id}", before, (created,) if created else ()))
        current = item(memory, by_key(memory, key))
    return Edited(old, current, merged, settled)


def _edit_object(connection: sqlite3.Connection, memory: FactMemory, row: Any, value: str) -> tuple[int, bool, bool]:
    """(the fact that holds the value now, merged into an existing one, a dispute ended)."""
    predicate = predicates()[row["predicate"]]
    wanted = value_norm(value, predicate.range)
    sql = f"SELECT * FROM fact WHERE scope_id=? AND slot_key=? AND object_norm=? AND id<>? AND status IN {ledger.OPEN}"
    twin = connection.execute(sql, (row["scope_id"], row["slot_key"], wanted, row["id"])).fetchone()
    if twin is not None:
        forget_rows(connection, [row["id"]])
        ledger.attach(connection, twin["id"], _claim(row["subject"], predicate, value), None)
        _promote(connection, twin["id"])
        return int(twin["id"]), True, ledger.settle_slot(connection, row["scope_id"], row["slot_key"]) is not None
    if wanted == row["object_norm"]:
        connection.execute("UPDATE fact SET object_text=? WHERE id=?", (value, row["id"]))
        return int(row["id"]), False, False
    # The old fact is closed first: while it is open the ledger would take a shorter or coarser value for the same one.
    connection.execute(
        "UPDATE fact SET status='superseded', prev_status=status, closed_at=?, closed_why='user' WHERE id=?",
        (now(), row["id"]),
    )
    claim = _claim(row["subject"] + (f" ({row['disambig']})" if row["disambig"] else ""), predicate, value)
    _, session, name = _scope(connection, memory, row["scope_kind"])
    exhume(connection, row["scope_id"], row["subject"], predicate.name, wanted)
    written = ledger.write(connection, row["scope_id"], name, claim, session=session, turn=memory.turn)
    connection.execute("UPDATE fact SET closed_by=? WHERE id=?", (written.fact, row["id"]))
    connection.execute("UPDATE fact SET pinned=? WHERE id=?", (row["pinned"], written.fact))
    _promote(connection, written.fact)
    return written.fact, False, ledger.settle_slot(connection, row["scope_id"], row["slot_key"]) is not None


def _each(memory: FactMemory, prefixes: Sequence[str], done: str, event: str, sql: str) -> Changed:
    _writable(memory)
    rows = [one(memory, prefix) for prefix in prefixes]
    if not rows:
        raise UsageError("Which facts?", f"/memory {event} ID…")
    with memory.store.write() as connection:
        before = snapshots.image(connection, [row["id"] for row in rows])
        for row in rows:
            connection.execute(sql, (row["id"],))
            ledger.note(connection, event, row["id"])
        undo.remember(memory, snapshots.Change(f"{event} of {', '.join(row['uid'] for row in rows)}", before))
        return Changed(done, tuple(item(memory, by_key(memory, row["id"])) for row in rows))


def pin(memory: FactMemory, prefixes: Sequence[str]) -> Changed:
    """Pinned facts are never changed automatically and never evicted."""
    return _each(memory, prefixes, "pinned", "pin", "UPDATE fact SET pinned=1 WHERE id=?")


def unpin(memory: FactMemory, prefixes: Sequence[str]) -> Changed:
    """Undo pin."""
    return _each(memory, prefixes, "unpinned", "unpin", "UPDATE fact SET pinned=0 WHERE id=?")


def _living(connection: sqlite3.Connection, memory: FactMemory, row: Any) -> Any:
    """The row that stands for this fact now: a superseded one may have been learned again since, and a fact lives once
    in a scope.
    """
    again = connection.execute(
        "SELECT id FROM fact WHERE scope_id=? AND fact_key=? AND id<>? AND status IN"
        " ('candidate','active','disputed','stale')",
        (row["scope_id"], row["fact_key"], row["id"]),
    ).fetchone()
    return row if again is None else by_key(memory, again["id"])


def confirm(memory: FactMemory, prefixes: Sequence[str]) -> Changed:
    """Make candidates active, and decide disputes: the other sides are superseded."""
    _writable(memory)
    rows = [one(memory, prefix) for prefix in prefixes]
    if not rows:
        raise UsageError("Which facts?", "/memory list --status candidate shows what waits.")
    with memory.store.write() as connection:
        rows = [_living(connection, memory, row) for row in rows]
        sides = [
            r["id"]
            for row in rows
            for r in connection.execute(
                "SELECT id FROM fact WHERE slot_key=? AND scope_id=?", (row["slot_key"], row["scope_id"])
            )
        ]
        before = snapshots.image(connection, [*sides, *(row["id"] for row in rows)])
        for row in rows:
            predicate = predicates()[row["predicate"]]
            ledger.attach(connection, row["id"], _claim(row["subject"], predicate, row["object_text"]), None)
            connection.execute("UPDATE fact SET status='active', confidence=1.0 WHERE id=?", (row["id"],))
            if predicate.cardinality == "one":
                connection.execute(
                    "UPDATE fact SET status='superseded', prev_status=status, closed_at=?, closed_by=?,"
                    " closed_why='user' WHERE scope_id=? AND slot_key=? AND id<>? AND status IN ('active','disputed')",
                    (now(), row["id"], row["scope_id"], row["slot_key"], row["id"]),
                )
            ledger.note(connection, "confirm", row["id"])
        undo.remember(memory, snapshots.Change(f"confirm of {', '.join(row['uid'] for row in rows)}", before))
        return Changed("confirmed", tuple(item(memory, by_key(memory, row["id"])) for row in rows))


def reject(memory: FactMemory, prefixes: Sequence[str]) -> Changed:
    """Forget candidates and sides of disputes for good; a dispute of which one side is left ends."""
    _writable(memory)
    rows = [one(memory, prefix) for prefix in prefixes]
    if not rows:
        raise UsageError("Which facts?", "/memory list --status candidate shows what waits.")
    gone = tuple(item(memory, row) for row in rows)
    with memory.store.write() as connection:
        sides = [
            r["id"]
            for row in rows
            for r in connection.execute(
                "SELECT id FROM fact WHERE slot_key=? AND scope_id=?", (row["slot_key"], row["scope_id"])
            )
        ]
        before, graves = snapshots.image(connection, sides), snapshots.graves(connection)
        for row in rows:
            bury(connection, row["scope_id"], row["subject"], row["predicate"], row["object_norm"])
            forget_rows(connection, [row["id"]])
            ledger.settle_slot(connection, row["scope_id"], row["slot_key"])
        added = tuple(snapshots.graves(connection) - graves)
        undo.remember(
            memory, snapshots.Change(f"reject of {', '.join(fact.id for fact in gone)}", before, graves=added)
        )
    return Changed("rejected", gone)


# ── names
# ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _entity(memory: FactMemory, name: str) -> Any:
    base, disambig = split_title(name)
    rows = memory.store.rows(
        "SELECT DISTINCT e.* FROM alias a JOIN entity e ON e.id=a.entity_id WHERE a.norm=? AND e.merged_into IS NULL",
        (norm(base),),
    )
    rows = [row for row in rows if row["disambig"] == disambig] or rows
    if not rows:
        raise NotFoundError(
            f"Memory knows nothing called {clean_line(name, 40)}.", "/memory list shows the names it knows."
        )
    if len(rows) > 1:
        raise UsageError(f"{clean_line(name, 40)} is ambiguous.", "Add the words in parentheses that tell them apart.")
    return rows[0]


def alias(memory: FactMemory, name: str, other: str) -> Aliased:
    """Let `other` name the same thing as `name`. Refused if it is another thing's own name."""
    _writable(memory)
    row, words = _entity(memory, name), _screened(other)
    taken = memory.store.row(
        "SELECT * FROM entity WHERE norm=? AND merged_into IS NULL AND id<>?", (norm(words), row["id"])
    )
    if taken is not None:
        raise RefusedError(
            f"{clean_line(words, 40)} is the name of something else in memory.",
            f"/memory merge {words} INTO {name} if they are the same.",
        )
    with memory.store.write() as connection:
        connection.execute(
            "INSERT INTO alias(norm, entity_id, surface, source) VALUES(?,?,?,'user') ON CONFLICT(norm, entity_id) DO"
            " UPDATE SET source='user'",
            (norm(words), row["id"], words),
        )
    return Aliased(f"{words} now means {row['name']}.")


def alias_rm(memory: FactMemory, name: str) -> Aliased:
    """Remove a name that is not the thing's own."""
    _writable(memory)
    with memory.store.write() as connection:
        sql = (
            "DELETE FROM alias WHERE norm=? AND NOT EXISTS(SELECT 1 FROM entity e WHERE e.id=alias.entity_id AND"
            " e.norm=alias.norm)"
        )
        if not connection.execute(sql, (norm(name),)).rowcount:
            raise NotFoundError(
                f"{clean_line(name, 40)} is no alias.", "Only further names can be removed, not a thing's own name."
            )
    return Aliased(f"{clean_line(name, 60)} is no alias any more.")


def merge(memory: FactMemory, name: str, into: str) -> Aliased:
    """Two names of one thing: facts of the first move to the second; equal ones become one."""
    _writable(memory)
    source, target = _entity(memory, name), _entity(memory, into)
    if source["id"] == target["id"]:
        raise UsageError("These are one already.", "/memory list --entity NAME shows its facts.")
    moved = 0
    with memory.store.write() as connection:
        rows = connection.execute(
            "SELECT * FROM fact WHERE subject_id=? OR object_id=?", (source["id"], source["id"])
        ).fetchall()
        before = snapshots.image(connection, [row["id"] for row in rows])
        for row in rows:
            moved += _move(connection, row, source["id"], target)
        connection.execute("UPDATE entity SET merged_into=? WHERE id=?", (target["id"], source["id"]))
        undo.remember(memory, snapshots.Change(f"merge of {source['name']} into {target['name']}", before))
    return Aliased(f"{source['name']} merged into {target['name']}; {moved} facts moved.")


def _move(connection: sqlite3.Connection, row: Any, source: int, target: Any) -> int:
    subject = target["id"] if row["subject_id"] == source else row["subject_id"]
    value = target["id"] if row["object_id"] == source else row["object_id"]
    norm_value = target["norm"] if row["object_id"] == source else row["object_norm"]
    key = fact_key(subject, row["predicate"], norm_value)
    twin = connection.execute(
        f"SELECT id FROM fact WHERE scope_id=? AND fact_key=? AND id<>? AND status IN {ledger.OPEN}",
        (row["scope_id"], key, row["id"]),
    ).fetchone()
    if twin is not None:
        connection.execute("UPDATE OR IGNORE evidence SET fact_id=? WHERE fact_id=?", (twin["id"], row["id"]))
        forget_rows(connection, [row["id"]])
        ledger.recount(connection, twin["id"])
        return 1
    connection.execute(
        "UPDATE fact SET subject_id=?, object_id=?, object_norm=?, fact_key=?, slot_key=? WHERE id=?",
        (subject, value, norm_value, key, slot_key(subject, row["predicate"]), row["id"]),
    )
    return 1


def set_mode(memory: FactMemory, mode: Mode) -> ModeSet:
    """/memory on, readonly, off: kept for this project."""
    with memory.store.write() as connection:
        connection.execute(
            "INSERT INTO meta(key, value) VALUES(?,?) ON CONFLICT(key) DO UPDATE SET value=excluded.value",
            (f"mode:{memory.project}", mode),
        )
    return ModeSet(memory.mode, memory.project)
