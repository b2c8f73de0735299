"""Facts as rows of a list: what verbs and events show, of any status.

Owns: reading facts for people. Does not own: what the engine may read (recall.py), rendering (render.py).
"""

from __future__ import annotations

from typing import Any

from mindchat.memory.tables.recall import named, source_label
from mindchat.storage.sqlite_file import Store
from mindchat.values import Fact

COLUMNS = """SELECT f.*, e.name AS subject, e.disambig, e.etype, p.mutable, s.kind AS scope_kind, s.name AS scope_name
             FROM fact f JOIN entity e ON e.id=f.subject_id JOIN predicate p ON p.name=f.predicate JOIN scope s ON s.id=f.scope_id"""
SOURCES = """SELECT v.*, d.uri, d.title, d.external_id, d.mtime_ns, d.size, c.passage, c.ordinal, c.page, c.heading
             FROM evidence v LEFT JOIN document d ON d.id=v.document_id LEFT JOIN chunk c ON c.id=v.chunk_id WHERE v.fact_id=?
             ORDER BY v.status<>'live', v.grounding DESC, v.id"""


def to_fact(row: Any, evidence: list[Any]) -> Fact:
    """A Fact from a row of COLUMNS and its rows of SOURCES."""
    best = evidence[0] if evidence else None
    return Fact(
        row["uid"],
        named(row["subject"], row["disambig"]),
        row["predicate"],
        row["object_text"],
        row["confidence"],
        source_label(best) if best is not None else "",
        best["passage"] if best is not None else None,
        (best["quote"] or "") if best is not None else "",
        row["status"],
        row["kind"],
    )


def fact_of(store: Store, key: int) -> Fact:
    """One fact by its key."""
    return to_fact(store.row(f"{COLUMNS} WHERE f.id=?", (key,)), store.rows(SOURCES, (key,)))
