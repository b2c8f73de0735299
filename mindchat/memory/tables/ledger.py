"""The tables of facts: upserts, contradictions, quotas, audit trail.

Owns: what happens to the tables when a claim is accepted. Does not own: whether it is accepted (facts.py), reading for
an answer (recall.py), entities (entity_keys.py), what was forgotten (tombstones.py), taking facts out (removal.py).
Every function takes the caller's connection inside Store.write(); none calls a model.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec
from msgspec import Struct

from mindchat.memory.learning.confidence import Signals
from mindchat.memory.learning.slots import Predicate, predicates
from mindchat.memory.tables.entity_keys import drop_orphan, entity_id, fact_key, slot_key
from mindchat.memory.tables.tombstones import buried
from mindchat.storage.clock import now, short_id
from mindchat.storage.sqlite_file import Store, sqlite3
from mindchat.text.clean import clean_line
from mindchat.text.folding import norm, search_text

Status = Literal["candidate", "active", "disputed"]
OPEN = "('candidate','active','disputed','stale')"
PER_DOCUMENT, PER_PROJECT, PER_GLOBAL = 200, 20_000, 5_000
USER = "you"


class Evidence(Struct, frozen=True):
    """Where a claim comes from. A chunk's evidence names document, chunk and offsets; a person's own word is manual."""

    source_type: Literal["chunk", "manual", "import"]
    extractor: str
    grounding: int
    document_id: int | None = None
    chunk_id: int | None = None
    chunk_sha: str | None = None
    quote: str | None = None
    quote_start: int | None = None
    quote_end: int | None = None
    hop: int | None = None
    subquery: str | None = None
    signals: Signals = Signals()


class Claim(Struct, frozen=True):
    """A fact to be written."""

    subject: str
    predicate: Predicate
    object: str
    object_norm: str
    confidence: float
    status: Status
    evidence: Evidence
    disambig: str = ""
    subject_type: str = ""
    """Overrides the predicate's domain."""
    kind: Literal["document", "user"] = "document"
    calibrated: bool = False
    lang: str = "und"
    valid_from: str | None = None
    valid_to: str | None = None

    @property
    def text(self) -> str:
        """The statement shown to people."""
        return statement(self.subject, self.predicate, self.object)


class Written(Struct, frozen=True):
    """What became of a claim."""

    outcome: Literal["new", "support", "tombstone", "quota"]
    fact: int = 0
    conflicts: tuple[int, ...] = ()
    """Facts that are disputed or superseded because of it."""


def statement(subject: str, predicate: Predicate, value: str) -> str:
    """subject — relation — object, on one line of at most 300 characters."""
    return clean_line(f"{subject} — {predicate.phrase} — {value}", 300)


def seed_predicates(store: Store) -> None:
    """Bring the predicate table to what is packaged."""
    rows = {
        row["name"]: tuple(row)
        for row in store.rows("SELECT name, cardinality, mutable, range_type, inverse, ttl_days FROM predicate")
    }
    wanted = {
        p.name: (p.name, p.cardinality, int(p.mutable), p.range, p.inverse or None, p.ttl_days)
        for p in predicates().values()
    }
    missing = [row for name, row in wanted.items() if rows.get(name) != row]
    if missing and not store.readonly:
        with store.write() as connection:
            connection.executemany(
                "INSERT INTO predicate(name, cardinality, mutable, range_type, inverse, ttl_days) VALUES(?,?,?,?,?,?)"
                " ON CONFLICT(name) DO UPDATE SET cardinality=excluded.cardinality, mutable=excluded.mutable,"
                " range_type=excluded.range_type, inverse=excluded.inverse, ttl_days=excluded.ttl_days",
                missing,
            )


def scope_id(connection: sqlite3.Connection, kind: str, name: str) -> int:
    """The scope's key; made if it is new."""
    connection.execute("INSERT INTO scope(kind, name) VALUES(?,?) ON CONFLICT(kind, name) DO NOTHING", (kind, name))
    return int(connection.execute("SELECT id FROM scope WHERE kind=? AND name=?", (kind, name)).fetchone()[0])


def session_id(connection: sqlite3.Connection, uid: str, scope: int) -> int:
    """The session's key; made if it is new."""
    connection.execute(
        "INSERT INTO session(uid, scope_id, started_at) VALUES(?,?,?) ON CONFLICT(uid) DO NOTHING", (uid, scope, now())
    )
    return int(connection.execute("SELECT id FROM session WHERE uid=?", (uid,)).fetchone()[0])


def note(
    connection: sqlite3.Connection,
    name: str,
    fact: int | None = None,
    *,
    session: int | None = None,
    turn: int | None = None,
    hop: int | None = None,
    **detail: Any,
) -> None:
    """One row of the audit trail."""
    text = json.dumps(detail, ensure_ascii=False) if detail else None
    connection.execute(
        "INSERT INTO event(at, session_id, turn_ordinal, hop, name, fact_id, detail) VALUES(?,?,?,?,?,?,?)",
        (now(), session, turn, hop, name, fact, text),
    )


# ── writing a fact
# ───────────────────────────────────────────────────────────────────────────────────────────────────────


def write(
    connection: sqlite3.Connection,
    scope: int,
    scope_name: str,
    claim: Claim,
    *,
    session: int | None = None,
    turn: int | None = None,
    replace: bool = False,
) -> Written:
    """Store a claim: a new fact, or support for one that is known; contradictions are settled by cardinality and time.

    `replace`: a person decided that the new value replaces the others, pinned or not.
    """
    predicate = claim.predicate
    if buried(connection, scope, claim.subject, predicate.name, claim.object_norm):
        return Written("tombstone")
    subject = entity_id(
        connection,
        claim.subject,
        claim.subject_type or predicate.domain,
        claim.disambig,
        "title" if claim.disambig else "surface",
    )
    named = predicate.range not in ("date", "number", "any") and claim.kind == "document"
    value = entity_id(connection, claim.object, predicate.range) if named else None
    others = rivals(connection, scope, subject, predicate.name)
    same = next((row for row in others if _equal(row, claim, value)), None)
    if same is not None:
        return _support(connection, same, claim, session, turn)
    if _over_quota(connection, claim):
        for entity in (subject, value):
            drop_orphan(connection, entity or subject)
        return Written("quota")
    closed, disputed, status = (others, [], claim.status) if replace else _settle(claim, others)
    fact = _insert(connection, scope, scope_name, claim, subject, value, status)
    attach(connection, fact, claim, session)
    for row in closed:
        connection.execute(
            "UPDATE fact SET status='superseded', prev_status=status, closed_at=?, closed_by=?,"
            " closed_why='superseded', valid_to=coalesce(valid_to, ?) WHERE id=?",
            (now(), fact, claim.valid_from, row["id"]),
        )
        note(connection, "supersede", row["id"], session=session, turn=turn, by=fact)
    for row in disputed:
        connection.execute("UPDATE fact SET status='disputed' WHERE id=? AND status='active'", (row["id"],))
    note(
        connection,
        "store",
        fact,
        session=session,
        turn=turn,
        hop=claim.evidence.hop,
        uid=uid_of(connection, fact),
        status=status,
    )
    if status == "disputed":
        note(connection, "dispute", fact, session=session, turn=turn, hop=claim.evidence.hop)
    return Written("new", fact, tuple(row["id"] for row in (*closed, *disputed)))


def uid_of(connection: sqlite3.Connection, fact: int) -> str:
    """The id shown to people."""
    return str(connection.execute("SELECT uid FROM fact WHERE id=?", (fact,)).fetchone()[0])


def rivals(connection: sqlite3.Connection, scope: int, subject: int, predicate: str) -> list[Any]:
    """Open facts of the same slot."""
    sql = f"SELECT * FROM fact WHERE scope_id=? AND slot_key=? AND status IN {OPEN} ORDER BY id"
    return connection.execute(sql, (scope, slot_key(subject, predicate))).fetchall()


def _equal(row: Any, claim: Claim, value: int | None) -> bool:
    """Same value: equal, alias-equal, or the coarser of two dates, or a shorter form of one person's name."""
    old, new = row["object_norm"], claim.object_norm
    if old == new or (value is not None and row["object_id"] == value):
        return True
    if claim.predicate.range == "date":
        return str(old).startswith(f"{new}-")
    return (
        claim.predicate.range == "person"
        and claim.predicate.cardinality == "one"
        and set(new.split()) < set(old.split())
    )


def _refines(row: Any, claim: Claim) -> bool:
    """Whether the new value only says the old one more precisely."""
    if claim.predicate.range == "date":
        return claim.object_norm.startswith(f"{row['object_norm']}-")
    return claim.predicate.range == "person" and set(row["object_norm"].split()) < set(claim.object_norm.split())


def _support(connection: sqlite3.Connection, row: Any, claim: Claim, session: int | None, turn: int | None) -> Written:
    fact, before = int(row["id"]), int(row["support"])
    # An import says nothing that the exporter's own documents did not say: it never counts as a further source.
    exact = row["object_norm"] == claim.object_norm and claim.evidence.source_type != "import"
    if exact:
        attach(connection, fact, claim, session)
    after = connection.execute("SELECT support, status FROM fact WHERE id=?", (fact,)).fetchone()
    if not row["pinned"] and exact:
        connection.execute(
            "UPDATE fact SET confidence=max(confidence, ?), calibrated=max(calibrated, ?) WHERE id=?",
            (claim.confidence, claim.calibrated, fact),
        )
    promoted = after["status"] == "candidate" and (
        (after["support"] >= 2 > before) or (claim.status == "active" and exact)
    )
    if promoted and not row["pinned"]:
        others = [
            other
            for other in rivals(connection, row["scope_id"], row["subject_id"], row["predicate"])
            if other["id"] != fact
        ]
        _, disputed, status = _settle(claim_with(claim, "active"), others)
        connection.execute("UPDATE fact SET status=? WHERE id=?", (status, fact))
        for other in disputed:
            connection.execute("UPDATE fact SET status='disputed' WHERE id=? AND status='active'", (other["id"],))
    if after["support"] != before:
        note(connection, "merge", fact, session=session, turn=turn, hop=claim.evidence.hop, support=after["support"])
    return Written("support", fact)


def claim_with(claim: Claim, status: Status) -> Claim:
    """The claim with another status."""
    return msgspec.structs.replace(claim, status=status)


def _settle(claim: Claim, rivals: list[Any]) -> tuple[list[Any], list[Any], Status]:
    """(to supersede, to dispute, the new fact's status). Only a slot that holds one value can be contradicted."""
    closed: list[Any] = []
    disputed: list[Any] = []
    status: Status = claim.status
    if claim.predicate.cardinality == "many":
        return closed, disputed, status
    for row in rivals:
        if row["pinned"]:
            status = "disputed" if status == "active" else status  # a pinned fact is never changed by itself
        elif row["status"] == "stale":
            closed.append(row)  # its source no longer says so, and a present source says otherwise
        elif _refines(row, claim) or claim.kind == "user":
            closed.append(row)
        elif claim.status != "active" or row["status"] == "candidate":
            continue
        elif (
            claim.predicate.mutable and claim.valid_from and row["valid_from"] and claim.valid_from > row["valid_from"]
        ):
            closed.append(row)
        else:
            disputed.append(row)
            status = "disputed"
    return closed, disputed, status


def settle_slot(connection: sqlite3.Connection, scope: int, key: str) -> int | None:
    """End a dispute of which only one side is left; the fact that is active again, or None."""
    rows = connection.execute(
        "SELECT id, status FROM fact WHERE scope_id=? AND slot_key=? AND status IN ('active','disputed')", (scope, key)
    ).fetchall()
    if len(rows) != 1 or rows[0]["status"] != "disputed":
        return None
    connection.execute("UPDATE fact SET status='active' WHERE id=?", (rows[0]["id"],))
    return int(rows[0]["id"])


def _insert(
    connection: sqlite3.Connection,
    scope: int,
    scope_name: str,
    claim: Claim,
    subject: int,
    value: int | None,
    status: str,
) -> int:
    text = claim.text
    aliases = [
        row[0]
        for row in connection.execute("SELECT surface FROM alias WHERE entity_id IN (?, ?) LIMIT 8", (subject, value))
    ]
    for attempt in range(100):
        uid = short_id(
            "f",
            scope_name,
            norm(claim.subject),
            claim.disambig,
            claim.predicate.name,
            claim.object_norm,
            attempt=attempt,
        )
        if not connection.execute("SELECT 1 FROM fact WHERE uid=?", (uid,)).fetchone():
            break
    row = {
        "uid": uid,
        "kind": claim.kind,
        "scope_id": scope,
        "subject_id": subject,
        "predicate": claim.predicate.name,
        "object_id": value,
        "object_text": clean_line(claim.object, 280),
        "object_norm": claim.object_norm,
        "statement": text,
        "search": search_text(text, *aliases),
        "lang": claim.lang,
        "fact_key": fact_key(subject, claim.predicate.name, claim.object_norm),
        "slot_key": slot_key(subject, claim.predicate.name),
        "status": status,
        "confidence": claim.confidence,
        "calibrated": int(claim.calibrated),
        "valid_from": claim.valid_from,
        "valid_to": claim.valid_to,
        "recorded_at": now(),
    }
    return _add(connection, "fact", row)


def _add(connection: sqlite3.Connection, table: str, row: dict[str, Any], conflict: str = "") -> int:
    """Insert one row; column names are our own."""
    sql = f"INSERT INTO {table}({', '.join(row)}) VALUES({', '.join('?' * len(row))}) {conflict}"
    return int(connection.execute(sql, tuple(row.values())).lastrowid or 0)


def recount(connection: sqlite3.Connection, fact: int) -> None:
    """Count distinct live sources again, after evidence moved from one fact to another (which no trigger sees)."""
    sql = """SELECT count(DISTINCT CASE source_type WHEN 'chunk' THEN 'd'||document_id WHEN 'turn' THEN 't'||turn_id ELSE source_type||id END)
             FROM evidence WHERE fact_id=? AND status='live'"""
    connection.execute("UPDATE fact SET support=? WHERE id=?", (connection.execute(sql, (fact,)).fetchone()[0], fact))


def attach(connection: sqlite3.Connection, fact: int, claim: Claim, session: int | None) -> None:
    """Add the claim's evidence; the same place, or the same person's word, counts once."""
    source = claim.evidence
    if source.source_type != "chunk":
        known = "SELECT 1 FROM evidence WHERE fact_id=? AND source_type=? AND status='live'"
        if connection.execute(known, (fact, source.source_type)).fetchone():
            return  # saying it twice is not a second source
    row = {
        "fact_id": fact,
        "source_type": source.source_type,
        "document_id": source.document_id,
        "chunk_id": source.chunk_id,
        "chunk_sha": source.chunk_sha,
        "quote": source.quote,
        "quote_start": source.quote_start,
        "quote_end": source.quote_end,
        "session_id": session,
        "hop": source.hop,
        "subquery": source.subquery,
        "extractor": source.extractor,
        "grounding": source.grounding,
        "created_at": now(),
        **msgspec.structs.asdict(source.signals),
    }
    again = "ON CONFLICT(fact_id, chunk_id, quote_start) WHERE source_type='chunk' DO UPDATE SET status='live'"
    _add(connection, "evidence", row, again)


def _over_quota(connection: sqlite3.Connection, claim: Claim) -> bool:
    if claim.evidence.document_id is None:
        return False
    sql = "SELECT count(DISTINCT fact_id) FROM evidence WHERE document_id=?"
    return bool(connection.execute(sql, (claim.evidence.document_id,)).fetchone()[0] >= PER_DOCUMENT)
