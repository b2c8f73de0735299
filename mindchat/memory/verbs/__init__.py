"""The memory commands, headless: `mindchat memory …` and `/memory …` call the functions of this module and print
`.render()` or JSON.

Owns: the reading commands (status, list, search, show, why, stats, path) and the table of all verbs. Does not own:
argument parsing, printing. Every function takes the FactMemory first and returns a Result; failures are NotFoundError
and RefusedError (exit 1), UsageError (2), MemoryStoreError (3).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mindchat.errors import UsageError
from mindchat.memory.facts import FactMemory
from mindchat.memory.tables.listing import SOURCES
from mindchat.memory.tables.recall import source_label
from mindchat.memory.verbs.editing import add, alias, alias_rm, confirm, edit, merge, pin, reject, set_mode, unpin
from mindchat.memory.verbs.forgetting import forget
from mindchat.memory.verbs.results import Listing, Note, Shown, Source, Stats, Status, Where, Why, WhyHop
from mindchat.memory.verbs.selecting import item, one, some
from mindchat.memory.verbs.soundness import doctor
from mindchat.memory.verbs.transfer import export, import_
from mindchat.memory.verbs.undo import undo
from mindchat.storage.clock import ago
from mindchat.text.foreign_json import decode_json

_RECALLS = ("hit", "miss", "skip", "audit")
_HISTORY = {
    "store": "saved",
    "merge": "+1 source",
    "supersede": "superseded",
    "dispute": "disputed",
    "stale": "stale",
    "relocate": "moved with its text",
    "hit": "shown",
    "skip": "used instead of a search",
    "audit": "audited",
    "audit_ok": "audit agreed",
    "audit_bad": "audit disagreed",
}


def status(memory: FactMemory) -> Status:
    """/memory: counts of this project, and what this session did."""
    counts = {name: some(memory, status=name, limit=0)[1] for name in ("active", "candidate", "disputed", "stale")}
    pinned = sum(row["pinned"] for row in some(memory, status="all")[0])
    sql = "SELECT e.name, count(*) AS n FROM event e JOIN session s ON s.id=e.session_id WHERE s.uid=? GROUP BY e.name"
    done = {row["name"]: row["n"] for row in memory.store.rows(sql, (memory.session,))}
    for noted in memory.pending():
        done[noted.name] = done.get(noted.name, 0) + 1
    return Status(
        memory.mode,
        memory.project,
        _tilde(memory),
        memory.store.bytes(),
        **counts,
        pinned=pinned,
        saved=done.get("store", 0),
        used=done.get("hit", 0) + done.get("skip", 0) + done.get("audit", 0),
        skipped=done.get("skip", 0),
        audited=done.get("audit_ok", 0) + done.get("audit_bad", 0),
        wrong=done.get("audit_bad", 0),
        notices=tuple(memory.store.notices),
    )


def _tilde(memory: FactMemory) -> str:
    path, home = str(memory.path or "RAM"), str(Path.home())
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path


def list_facts(
    memory: FactMemory,
    *,
    n: int = 20,
    scope: str | None = None,
    kind: str | None = None,
    status: str = "active",
    doc: str | None = None,
    entity: str | None = None,
    sort: str = "recent",
    after: str | None = None,
) -> Listing:
    """/memory list. Scope None: everything this conversation sees."""
    if kind not in (None, "document", "user"):
        raise UsageError(f"{kind!r} is no kind.", "document or user")
    if n < 1:
        raise UsageError("-n needs a number from 1.", "/memory list -n 20")
    rows, total = some(
        memory, scope=scope, kind=kind, status=status, doc=doc, entity=entity, sort=sort, limit=n + 1, after=after
    )
    what = ", ".join(part for part in (status, scope or "project+global", kind) if part)
    return _listing(memory, rows, total, n, what, "list")


def search(memory: FactMemory, words: str, *, n: int = 20, status: str = "active") -> Listing:
    """/memory search: facts that hold every word."""
    rows, total = some(memory, words=words, status=status, limit=n + 1)
    return _listing(memory, rows, total, n, f"{status}, {words}", f"search {words}")


def _listing(memory: FactMemory, rows: list[Any], total: int, n: int, what: str, verb: str) -> Listing:
    facts = tuple(item(memory, row) for row in rows[:n])
    return Listing(facts, total, what, facts[-1].id if len(rows) > n and verb == "list" else None, verb)


def show(memory: FactMemory, prefix: str) -> Shown:
    """/memory show: everything about one fact, with evidence, history and former values."""
    row = one(memory, prefix)
    sources = tuple(
        Source(
            source_label(v),
            v["uri"],
            v["passage"],
            v["quote_start"],
            v["quote_end"],
            v["quote"] or "",
            v["status"],
            v["subquery"] or "",
            v["grounding"],
            v["conf_max"],
            v["conf_min"],
            v["p_true"],
            v["margin"],
            v["extractor"],
            v["hop"],
        )
        for v in memory.store.rows(SOURCES, (row["id"],))
    )
    events = memory.store.rows("SELECT at, name FROM event WHERE fact_id=? ORDER BY id", (row["id"],))
    history = _history([(event["at"], _HISTORY.get(event["name"], event["name"])) for event in events])
    by = memory.store.value("SELECT uid FROM fact WHERE id=?", (row["closed_by"],)) if row["closed_by"] else None
    former = [
        old
        for old in some(memory, status="superseded", scope="all")[0]
        if old["slot_key"] == row["slot_key"] and old["scope_id"] == row["scope_id"]
    ]
    return Shown(
        item(memory, row),
        row["etype"],
        bool(row["calibrated"]),
        row["valid_from"],
        row["valid_to"],
        row["last_used_at"],
        row["closed_at"],
        row["closed_why"],
        by,
        sources,
        history,
        tuple(item(memory, old) for old in former if old["id"] != row["id"]),
    )


def _history(events: list[tuple[str, str]]) -> tuple[Note, ...]:
    """The events with runs of one kind counted instead of repeated."""
    found: list[tuple[str, str, int]] = []
    for at, what in events:
        if found and found[-1][1] == what:
            found[-1] = (at, what, found[-1][2] + 1)
        else:
            found.append((at, what, 1))
    return tuple(Note(at, what if n == 1 else f"{what} ×{n}") for at, what, n in found)


def why(memory: FactMemory, prefix: str | None = None) -> Why | Shown:
    """/memory why: what memory did in the session's last answer; with an id, everything about that fact."""
    if prefix is not None:
        return show(memory, prefix)
    sql = (
        "SELECT e.* FROM event e JOIN session s ON s.id=e.session_id WHERE s.uid=? AND e.turn_ordinal IS NOT NULL ORDER"
        " BY e.id"
    )
    events = [
        (e["name"], e["turn_ordinal"], e["hop"], decode_json(e["detail"] or "{}"))
        for e in memory.store.rows(sql, (memory.session,))
    ]
    events += [(noted.name, noted.turn, noted.detail.get("hop"), noted.detail) for noted in memory.pending()]
    turn = max((event[1] for event in events), default=0)
    saved: dict[int, list[str]] = {}
    for name, at, hop, detail in events:
        if at == turn and name == "store" and hop is not None and "uid" in detail:
            saved.setdefault(hop, []).append(detail["uid"])
    hops: list[WhyHop] = []
    for name, at, _, detail in events:
        if at == turn and name in _RECALLS:
            number = len(hops) + 1
            known = (detail.get("uid"), detail.get("confidence"), detail.get("why", ""))
            hops.append(
                WhyHop(
                    number,
                    detail.get("query", ""),
                    name,
                    *known,
                    tuple(saved.get(number, ())),
                    tuple(detail.get("facts", ())),
                )
            )
    return Why(turn, tuple(hops))


def stats(memory: FactMemory, *, since: str = "30d") -> Stats:
    """/memory stats of all projects in memory.db since an age."""
    rows = memory.store.rows("SELECT name, detail FROM event WHERE at >= ?", (ago(since),))
    events = [(row["name"], decode_json(row["detail"] or "{}")) for row in rows]
    count = {name: sum(event == name for event, _ in events) for name in {event for event, _ in events}}
    dropped: dict[str, int] = {}
    for name, detail in events:
        if name == "drop":
            dropped[detail.get("reason", "?")] = dropped.get(detail.get("reason", "?"), 0) + 1
    times = {
        key: _p95([detail[key] for _, detail in events if key in detail])
        for key in ("lookup_ms", "write_ms", "verify_ms")
    }
    hits = sum(count.get(name, 0) for name in ("hit", "skip", "audit"))
    return Stats(
        since,
        hits + count.get("miss", 0),
        hits,
        count.get("skip", 0),
        count.get("audit_ok", 0) + count.get("audit_bad", 0),
        count.get("audit_bad", 0),
        count.get("store", 0),
        dropped,
        count.get("verify", 0),
        times["lookup_ms"],
        times["write_ms"],
        None if times["verify_ms"] is None else times["verify_ms"] / 1000,
    )


def _p95(values: list[float]) -> float | None:
    return sorted(values)[min(len(values) - 1, int(0.95 * len(values)))] if values else None


def path(memory: FactMemory) -> Where:
    """/memory path."""
    return Where(str(memory.path or "RAM"))


VERBS: dict[str, Callable[..., Any]] = {
    "status": status,
    "list": list_facts,
    "search": search,
    "show": show,
    "why": why,
    "add": add,
    "edit": edit,
    "pin": pin,
    "unpin": unpin,
    "confirm": confirm,
    "reject": reject,
    "forget": forget,
    "undo": undo,
    "alias": alias,
    "alias_rm": alias_rm,
    "merge": merge,
    "mode": set_mode,
    "export": export,
    "import": import_,
    "stats": stats,
    "doctor": doctor,
    "path": path,
}
"""Every command's function by name; `mode` serves on, readonly and off."""
