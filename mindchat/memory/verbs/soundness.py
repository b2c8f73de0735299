"""Looking after memory.db: is it sound, is it consistent, what does this machine lack.

Owns: /memory doctor and its repairs. Does not own: restoring a damaged file (migrations.py).
"""

from __future__ import annotations

from mindchat.memory.facts import FactMemory
from mindchat.memory.tables.entity_keys import drop_orphan
from mindchat.memory.tables.removal import forget_rows
from mindchat.memory.verbs.results import Diagnosis, Finding, plural
from mindchat.storage.clock import ago
from mindchat.storage.migrations import MEMORY, objects
from mindchat.storage.sqlite_file import network_filesystem, sqlite3, wal_reset_bug

_ORPHANS = """SELECT id FROM entity e WHERE NOT EXISTS(SELECT 1 FROM fact WHERE subject_id=e.id OR object_id=e.id)
              AND NOT EXISTS(SELECT 1 FROM entity WHERE merged_into=e.id) AND merged_into IS NULL"""
_STALE_DAYS = "30d"


def doctor(memory: FactMemory, *, fix: bool = False) -> Diagnosis:
    """Check schema, integrity, foreign keys, full text and orphans; with `fix`, rebuild and remove what is broken or
    long stale.
    """
    store = memory.store
    found: list[Finding] = [Finding("warn", notice) for notice in store.notices]
    broken = [*_integrity(memory), *_index(memory, fix), *_orphans(memory, fix)]
    found += broken or [
        Finding("ok", f"schema {len(MEMORY.files)} (current), integrity, foreign keys, FTS index, triggers")
    ]
    version = ".".join(map(str, sqlite3.sqlite_version_info))
    if wal_reset_bug():
        found.append(
            Finding(
                "warn",
                f"SQLite {version} has the WAL-reset bug: writers are serialised.",
                "pip install 'mindchat[sqlite]'",
            )
        )
    else:
        found.append(Finding("ok", f"SQLite {version}"))
    if store.path is not None and network_filesystem(store.path.parent.resolve()):
        found.append(
            Finding(
                "warn",
                "memory.db is on a network file system: it runs without WAL.",
                "set MINDCHAT_HOME to a local folder",
            )
        )
    found += _stale(memory, fix)
    if memory.calibration is None:
        found.append(
            Finding(
                "info",
                f"no calibration for {memory.model or 'this model'}: the conservative rule applies",
                "mindchat calibrate memory",
            )
        )
    else:
        c = memory.calibration
        found.append(Finding("ok", f"calibrated on {c.examples} claims: ECE {c.ece:.3f}, Brier {c.brier:.3f}"))
    found.append(Finding("info", "span finder: heuristics"))
    return Diagnosis(tuple(found))


def _integrity(memory: FactMemory) -> list[Finding]:
    found = []
    if (answer := memory.store.value("PRAGMA integrity_check(1)")) != "ok":
        found.append(Finding("bad", f"integrity: {answer}", "restore a backup"))
    if memory.store.rows("PRAGMA foreign_key_check"):
        found.append(Finding("bad", "foreign keys: rows without their parent", "restore a backup"))
    missing = objects(MEMORY) - {row[0] for row in memory.store.rows("SELECT name FROM sqlite_master")}
    if missing:
        found.append(Finding("bad", f"schema: {', '.join(sorted(missing))} missing", "restore a backup"))
    return found


def _index(memory: FactMemory, fix: bool) -> list[Finding]:
    try:
        with memory.store.write() as connection:
            try:
                # rank 1: compare with the facts themselves, not only the index with itself
                connection.execute("INSERT INTO fact_fts(fact_fts, rank) VALUES('integrity-check', 1)")
                return []
            except sqlite3.DatabaseError:
                if fix:
                    connection.execute("INSERT INTO fact_fts(fact_fts) VALUES('rebuild')")
                    return [Finding("ok", "FTS index rebuilt")]
    except sqlite3.DatabaseError as error:
        return [Finding("bad", f"FTS index: {error}", "restore a backup")]
    return [Finding("bad", "FTS index does not match the facts", "mindchat memory doctor --fix")]


def _orphans(memory: FactMemory, fix: bool) -> list[Finding]:
    orphans = [row["id"] for row in memory.store.rows(_ORPHANS)]
    naked = [
        row["id"]
        for row in memory.store.rows(
            "SELECT id FROM fact f WHERE NOT EXISTS(SELECT 1 FROM evidence WHERE fact_id=f.id)"
        )
    ]
    if not orphans and not naked:
        return []
    if fix:
        with memory.store.write() as connection:
            forget_rows(connection, naked)
            for entity in orphans:
                drop_orphan(connection, entity)
        return [
            Finding(
                "ok", f"removed {plural(len(orphans), 'orphan name')} and {plural(len(naked), 'fact')} without evidence"
            )
        ]
    return [
        Finding(
            "bad",
            f"{plural(len(orphans), 'orphan name')}, {plural(len(naked), 'fact')} without evidence",
            "mindchat memory doctor --fix",
        )
    ]


def _stale(memory: FactMemory, fix: bool) -> list[Finding]:
    count = memory.store.value("SELECT count(*) FROM fact WHERE status='stale'")
    old = [
        row["id"]
        for row in memory.store.rows(
            "SELECT id FROM fact WHERE status='stale' AND pinned=0 AND closed_at < ?", (ago(_STALE_DAYS),)
        )
    ]
    if fix and old:
        with memory.store.write() as connection:
            forget_rows(connection, old)
        return [Finding("ok", f"removed {plural(len(old), 'fact')} stale for more than 30 days")]
    documents = memory.store.value("SELECT count(DISTINCT document_id) FROM evidence WHERE status='stale'")
    return (
        [Finding("warn", f"{plural(count, 'stale fact')} from {plural(documents, 'changed document')}")]
        if count
        else []
    )
