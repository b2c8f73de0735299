"""Reading facts for a sub-question: slot lookup, then names in full text, then one hop further; and the gate of
skipping a search.

Owns: which facts are served, in which order, and when stored passages stand in for a search. Does not own: writing
(ledger.py). Reads only the views servable and servable_disputed, and always within the visible scopes. Source: MIND
§3.2 (memory before retrieval).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct

from mindchat.memory.learning.confidence import Signals, may_skip
from mindchat.memory.learning.slots import Slot, relation_words
from mindchat.memory.tables.entity_keys import slot_key
from mindchat.storage.document_registry import source_file, to_passage, unpack
from mindchat.storage.sqlite_file import Store
from mindchat.text.folding import STOP, fold, norm, search_query
from mindchat.text.foreign_json import decode_json
from mindchat.values import Fact, Passage

CUES = re.compile(
    r"\b(?:latest|newest|current(?:ly)?|check|verify|double.check|look (?:it )?up|search|source|according"
    r" to|documents?|today|now|recent(?:ly)?"
    r"|how many|list|all)\b"
)
_CAPITALISED = re.compile(r"(?<=\s)[^\W\d_a-z]\w+")
_YEARS = re.compile(r"\b(?:in|on|by|before|after|since|until|during) (?:\w+ )?(\d{4})\b")
_EVIDENCE = """SELECT v.*, d.uri, d.title, d.external_id, d.mtime_ns, d.size, d.trust,
                      c.passage, c.ordinal, c.char_start, c.char_end, c.page, c.heading
               FROM evidence v LEFT JOIN document d ON d.id=v.document_id LEFT JOIN chunk c ON c.id=v.chunk_id
               WHERE v.fact_id=? AND v.status='live' ORDER BY v.grounding DESC, v.p_true DESC, v.id"""
_FACT = "SELECT f.*, e.name AS subject, e.disambig FROM {view} f JOIN entity e ON e.id=f.subject_id"


class Served(Struct, frozen=True):
    """A servable fact with its live evidence rows, best first."""

    row: Any
    evidence: tuple[Any, ...]
    disputed: bool = False

    @property
    def fact(self) -> Fact:
        """As the engine and the screens see it."""
        best = self.evidence[0]
        return Fact(
            self.row["uid"],
            named(self.row["subject"], self.row["disambig"]),
            self.row["predicate"],
            self.row["object_text"],
            self.row["confidence"],
            source_label(best),
            best["passage"],
            best["quote"] or "",
            self.row["status"],
            self.row["kind"],
        )


class Found(Struct, frozen=True):
    """What a lookup yields."""

    served: tuple[Served, ...]
    """Best first."""
    slot: Slot | None
    answers: tuple[Served, ...]
    """Those that fill the slot."""
    why: str
    """Why nothing fills it, or ""."""


def named(name: str, disambig: str) -> str:
    """An entity's name as shown."""
    return f"{name} ({disambig})" if disambig else name


def source_label(evidence: Any) -> str:
    """Short description of a source: "films.txt §12", a corpus line's title, or "you"."""
    if evidence["uri"] is None:
        return "you" if evidence["source_type"] == "manual" else str(evidence["source_type"])
    if evidence["external_id"] is not None and evidence["title"]:
        return str(evidence["title"])
    return f"{Path(source_file(evidence['uri'], evidence['external_id'])).name} §{(evidence['ordinal'] or 0) + 1}"


def fresh(evidence: Any) -> bool:
    """Whether the source file is still the one that was indexed; True for sources that are no file."""
    if evidence["uri"] is None or not evidence["mtime_ns"]:
        return True
    try:
        status = os.stat(source_file(evidence["uri"], evidence["external_id"]))
    except OSError:
        return False
    return (status.st_mtime_ns, status.st_size) == (evidence["mtime_ns"], evidence["size"])


def content_words(text: str) -> set[str]:
    """Words that say what a text is about."""
    return set(norm(text).split()) - STOP - relation_words()


class Reader:
    """Lookups in the visible scopes of one conversation."""

    def __init__(self, store: Store, project: str, session: str, calibrated_at: str = "") -> None:
        self.store, self.calibrated_at = store, calibrated_at
        self.names = (("session", session), ("project", project), ("global", "global"))

    def scopes(self) -> list[int]:
        """Keys of the visible scopes that exist."""
        where = " OR ".join("(kind=? AND name=?)" for _ in self.names)
        return [
            row["id"]
            for row in self.store.rows(
                f"SELECT id FROM scope WHERE {where}", [part for name in self.names for part in name]
            )
        ]

    def _select(
        self, scopes: Sequence[int], where: str, parameters: Sequence[Any], view: str = "servable", tail: str = ""
    ) -> list[Served]:
        """The only query builder: view and scopes are not optional."""
        marks = ",".join("?" * len(scopes))
        rows = self.store.rows(
            f"{_FACT.format(view=view)} WHERE f.scope_id IN ({marks}) AND {where} {tail}", [*scopes, *parameters]
        )
        served = []
        for row in rows:
            if evidence := tuple(item for item in self.store.rows(_EVIDENCE, (row["id"],)) if fresh(item)):
                served.append(Served(row, evidence, view != "servable"))
        return served

    def entities(self, slot: Slot, question: str) -> list[Any]:
        """The entities a subject may mean; one if the question tells homonyms apart."""
        sql = """SELECT DISTINCT e.* FROM alias a JOIN entity x ON x.id=a.entity_id JOIN entity e ON e.id=coalesce(x.merged_into, x.id)
                 WHERE a.norm=?"""
        rows = self.store.rows(sql, (norm(slot.subject),))
        if len(rows) > 1:
            words = set(norm(f"{slot.hint} {question}").split()) - set(norm(slot.subject).split())
            hinted = [row for row in rows if row["disambig"] and set(norm(row["disambig"]).split()) <= words]
            rows = hinted if len(hinted) == 1 else rows
        if len(rows) > 1:  # an entity of another kind cannot be meant
            fitting = [row for row in rows if slot.predicate.domain in ("any", row["etype"]) or row["etype"] == "other"]
            rows = fitting or rows
        return rows

    def find(self, question: str, slot: Slot | None, limit: int) -> Found:
        """Slot facts, then facts whose names stand in the question, then one hop out from the values of both."""
        scopes = self.scopes()
        if not scopes:
            return Found((), slot, (), "memory is empty")
        answers: list[Served] = []
        why = "no known relation in the sub-question" if slot is None else ""
        if slot is not None:
            entities = self.entities(slot, question)
            if len(entities) > 1:
                why = f"{slot.subject} is ambiguous"
            for entity in entities:
                answers += self.in_slot(scopes, entity["id"], slot.predicate.name)
            why = why or ("" if answers else "not in memory")
        named = self._named(scopes, question)
        tiers: dict[int, tuple[int, Served]] = {}
        for tier, found in enumerate((answers, named, self._hop(scopes, [*answers, *named]))):
            for served in found:
                tiers.setdefault(served.row["id"], (tier, served))
        order = sorted(
            tiers.values(),
            key=lambda one: (
                one[0],
                one[1].disputed,
                -one[1].row["confidence"],
                -one[1].row["support"],
                one[1].row["id"],
            ),
        )
        ranked = [served for _, served in order]
        return Found(tuple(ranked[:limit]), slot, tuple(answers), why)

    def in_slot(self, scopes: Sequence[int], subject: int, predicate: str) -> list[Served]:
        """Served facts of one slot, and those about which sources disagree."""
        key = (slot_key(subject, predicate),)
        return self._select(scopes, "f.slot_key=?", key) + self._select(
            scopes, "f.slot_key=?", key, "servable_disputed"
        )

    def _named(self, scopes: Sequence[int], question: str) -> list[Served]:
        """Facts whose subject or object is named in the question."""
        titles = {
            fold(word) for word in _CAPITALISED.findall(question)
        }  # "The Zone" is a name, though a time zone is a relation
        if not (query := search_query(question, relation_words() - titles)):
            return []
        sql = "f.id IN (SELECT rowid FROM fact_fts WHERE fact_fts MATCH ? ORDER BY rank LIMIT 12)"
        words = f" {norm(question)} "
        asked = content_words(question)
        found = self._select(scopes, sql, (query,))
        notes = [
            s
            for s in found
            if s.row["kind"] == "user" and len(asked & content_words(s.row["object_text"])) >= min(2, len(asked))
        ]
        return notes + [
            s
            for s in found
            if any(len(name) > 2 and f" {name} " in words for name in (norm(s.row["subject"]), s.row["object_norm"]))
        ]

    def _hop(self, scopes: Sequence[int], near: Sequence[Served]) -> list[Served]:
        """Facts about the values of these facts: what a question about "the director of X" goes on to need."""
        bridges = list(dict.fromkeys(served.row["object_id"] for served in near if served.row["object_id"] is not None))
        if not bridges:
            return []
        return self._select(
            scopes,
            f"f.subject_id IN ({','.join('?' * len(bridges))})",
            bridges,
            tail="ORDER BY f.confidence DESC LIMIT 6",
        )

    def gate(self, question: str, found: Found, threshold: float) -> tuple[Served | None, str]:
        """The fact that may replace the search, or None with the first condition that fails."""
        slot = found.slot
        if slot is None or not found.answers:
            return None, found.why
        if found.why:
            return None, found.why
        if slot.predicate.cardinality != "one":
            return None, f"{slot.predicate.phrase} may have several values"
        if len(found.answers) > 1 or found.answers[0].disputed:
            return None, "sources disagree"
        served = found.answers[0]
        if CUES.search(fold(question)):
            return None, "the question asks for a look"
        if not _in_time(served.row, slot, question):
            return None, "the fact may be out of date"
        if self.suspended(slot.predicate.name):
            return None, f"two audits of {slot.predicate.phrase} went wrong"
        confirmed = any(item["source_type"] == "manual" for item in served.evidence)
        if not any(self._sure(served.row, item, confirmed, threshold) for item in served.evidence):
            return None, f"{served.row['confidence']:.2f} is not sure enough"
        return served, ""

    @staticmethod
    def _sure(row: Any, evidence: Any, confirmed: bool, threshold: float) -> bool:
        """Only a passage can stand in for a search; what a person confirmed needs no score."""
        if evidence["document_id"] is None or evidence["trust"] < 1:
            return False
        if confirmed:
            return bool(evidence["grounding"] == 2)
        signals = Signals(conf_min=evidence["conf_min"], p_true=evidence["p_true"], margin=evidence["margin"])
        return may_skip(float(row["confidence"]), bool(row["calibrated"]), evidence["grounding"], signals, threshold)

    def suspended(self, predicate: str) -> bool:
        """Whether two audits found this relation's facts wrong since the last calibration."""
        rows = self.store.rows("SELECT detail FROM event WHERE name='audit_bad' AND at > ?", (self.calibrated_at,))
        return sum(bool(decode_json(row["detail"] or "{}").get("predicate") == predicate) for row in rows) >= 2

    def passages(self, served: Served) -> tuple[Passage, ...]:
        """The stored source passages of a fact, best first, at most two."""
        found: dict[str, Passage] = {}
        for item in served.evidence:
            if item["document_id"] is None or item["chunk_id"] is None or item["passage"] in found:
                continue
            packed = self.store.value("SELECT text_z FROM document WHERE id=?", (item["document_id"],))
            found[item["passage"]] = to_passage(item, item, unpack(packed))
        return tuple(found.values())[:2]


def _in_time(row: Any, slot: Slot, question: str) -> bool:
    """Within the relation's time to live, and compatible with a year that the question names."""
    if slot.predicate.mutable and slot.predicate.ttl_days is not None:
        recorded = datetime.fromisoformat(row["recorded_at"])
        if datetime.now(UTC) - recorded > timedelta(days=slot.predicate.ttl_days):
            return False
    if (years := _YEARS.findall(fold(question))) and slot.predicate.mutable:
        first, last = str(row["valid_from"] or ""), str(row["valid_to"] or "9999")
        return bool(first) and all(first[:4] <= str(year) <= last[:4] for year in years)
    return True
