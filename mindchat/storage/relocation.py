"""What becomes of evidence when its document changes: a quote that still stands somewhere keeps its fact, any other
lets go.

Owns: following quotes inside one document after a change, and naming the facts that were withdrawn.
Does not own: the cascade itself; the schema's triggers make facts stale and revive them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from mindchat.storage.clock import now
from mindchat.storage.sqlite_file import sqlite3
from mindchat.text.clean import clean_line
from mindchat.text.folding import find_all, fold, split_title
from mindchat.values import Document, Fact

_FACTS = """SELECT DISTINCT f.id, f.uid, f.predicate, f.object_text, f.confidence, f.kind, e.name AS subject
            FROM fact f JOIN evidence v ON v.fact_id=f.id JOIN entity e ON e.id=f.subject_id
            WHERE v.document_id=? AND f.status IN ('active','disputed','candidate')"""


def dependent_facts(connection: sqlite3.Connection, document: int) -> list[Any]:
    """Open facts that have evidence in this document."""
    return connection.execute(_FACTS, (document,)).fetchall()


def withdrawn(connection: sqlite3.Connection, before: list[Any], why: str) -> list[Fact]:
    """Which of these facts are stale now; each is noted in the audit trail."""
    gone = []
    for row in before:
        if connection.execute("SELECT status FROM fact WHERE id=?", (row["id"],)).fetchone()[0] == "stale":
            detail = json.dumps({"why": why}, ensure_ascii=False)
            connection.execute(
                "INSERT INTO event(at, name, fact_id, detail) VALUES(?, 'stale', ?, ?)", (now(), row["id"], detail)
            )
            gone.append(
                Fact(
                    row["uid"],
                    row["subject"],
                    row["predicate"],
                    row["object_text"],
                    row["confidence"],
                    why,
                    status="stale",
                    kind=row["kind"],
                )
            )
    return gone


def after_change(connection: sqlite3.Connection, document: int, new: Document, before: list[Any]) -> list[Fact]:
    """Follow every quote into the new text; returns those of `before` (dependent_facts() before the change) that lost
    their last source.
    """
    evidence = connection.execute(
        "SELECT v.*, e.name AS subject FROM evidence v JOIN fact f ON f.id=v.fact_id JOIN entity e ON e.id=f.subject_id"
        " WHERE v.document_id=? AND v.status<>'withdrawn'",
        (document,),
    ).fetchall()
    if not evidence:
        return []
    chunks = connection.execute(
        "SELECT id, sha256, char_start, char_end FROM chunk WHERE document_id=? AND status='active' ORDER BY ordinal",
        (document,),
    ).fetchall()
    for row in evidence:
        place = _follow(row, new)
        holder = (
            None
            if place is None
            else next((c for c in chunks if c["char_start"] <= place[0] and place[1] <= c["char_end"]), None)
        )
        if place is None or holder is None:
            connection.execute("UPDATE evidence SET status='stale' WHERE id=? AND status='live'", (row["id"],))
            continue
        # First withdrawn as a duplicate if the fact already has this very place, which the unique index forbids.
        taken = connection.execute(
            "SELECT 1 FROM evidence WHERE fact_id=? AND chunk_id=? AND quote_start=? AND id<>?",
            (row["fact_id"], holder["id"], place[0], row["id"]),
        ).fetchone()
        if taken:
            connection.execute("DELETE FROM evidence WHERE id=?", (row["id"],))
            continue
        values = (holder["id"], holder["sha256"], new.text[place[0] : place[1]], place[0], place[1], row["id"])
        connection.execute(
            "UPDATE evidence SET chunk_id=?, chunk_sha=?, quote=?, quote_start=?, quote_end=?, status='live' WHERE"
            " id=?",
            values,
        )
        if (place[0], holder["id"]) != (row["quote_start"], row["chunk_id"]):
            connection.execute("INSERT INTO event(at, name, fact_id) VALUES(?, 'relocate', ?)", (now(), row["fact_id"]))
    return withdrawn(connection, before, f"{clean_line(Path(new.uri).name, 60)} changed")


def _follow(row: Any, new: Document) -> tuple[int, int] | None:
    """Where the quote stands now: its only place, or the only one whose paragraph (or the title) names the subject."""
    places = [(start, end) for start, end, _ in find_all(new.text, row["quote"] or "")]
    subject = fold(split_title(row["subject"])[0])
    titled = subject in fold(new.title)
    named = [place for place in places if titled or subject in fold(_paragraph(new.text, *place))]
    if len(places) == 1 and named:
        return places[0]
    if (row["quote_start"], row["quote_end"]) in named:
        return row["quote_start"], row["quote_end"]
    return named[0] if len(named) == 1 else None


def _paragraph(text: str, start: int, end: int) -> str:
    after = re.search(r"\n\s*\n", text[end:])
    begin = max((match.end() for match in re.finditer(r"\n\s*\n", text[:start])), default=0)
    return text[begin : end + after.start() if after else len(text)]
