"""Remembered facts: ports.Memory on memory.db.

Owns: the conversation's view of memory: recall before a search, learning after an answer, modes, scopes, audits.
Does not own: parsing (slots.py), grounding (grounding.py), asking (verification.py), tables (ledger.py, recall.py),
commands (verbs.py).
Source: MIND §3.2 and Fig 1. A fact is never extracted from free text: subject and relation are the sub-question's, the
object is a span of a passage.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from mindchat.config import MemorySection
from mindchat.errors import MindChatError
from mindchat.events import FactLearned
from mindchat.memory.learning.confidence import answer_signals, judge, load_calibration
from mindchat.memory.learning.direction import reversed_in_text
from mindchat.memory.learning.grounding import Grounded, ground, titled
from mindchat.memory.learning.redaction import instruction, orders, secret
from mindchat.memory.learning.slots import parse
from mindchat.memory.learning.verification import verify
from mindchat.memory.stated_slots import keep_slot
from mindchat.memory.tables import ledger
from mindchat.memory.tables.ledger import Claim, Evidence, Written
from mindchat.memory.tables.listing import fact_of
from mindchat.memory.tables.recall import Reader, Served
from mindchat.memory.tables.removal import evict
from mindchat.memory.tables.snapshots import Change
from mindchat.ports import Ask
from mindchat.storage.clock import now
from mindchat.storage.document_registry import unpack
from mindchat.storage.migrations import MEMORY, open_store
from mindchat.storage.sqlite_file import Store, sqlite3
from mindchat.text.clean import clean_line
from mindchat.text.folding import fold, norm, split_title
from mindchat.values import Fact, Filled, Harvest, Passage, Query, Recalled

Mode = Literal["on", "readonly", "off"]
_STRICTER: dict[Mode, int] = {"on": 0, "readonly": 1, "off": 2}


class Noted(Struct, frozen=True):
    """One line of the audit trail that waits for the turn's end, so that a lookup never waits for the disk."""

    name: str
    fact: int | None
    turn: int
    detail: dict[str, Any]


class FactMemory:
    """ports.Memory in memory.db, for one conversation in one project. Incognito: the file is not even opened."""

    def __init__(
        self,
        path: Path | Store,
        section: MemorySection,
        *,
        project: str,
        session: str,
        incognito: bool = False,
        model: str = "",
    ) -> None:
        self.section, self.project, self.session, self.incognito, self.model = (
            section,
            project,
            session,
            incognito,
            model,
        )
        self.path = path.path if isinstance(path, Store) else path
        self._store: Store | None = (
            None if incognito else (path if isinstance(path, Store) else open_store(path, MEMORY))
        )
        self._pending: list[Noted] = []
        self._audits: dict[str, Served] = {}
        self._mutex = threading.Lock()
        self.changes: list[Change] = []
        """What this process can undo (undo.py), oldest first."""
        self.turn = 1
        """Number of the running turn in this session, from 1."""
        if self._store is not None:
            ledger.seed_predicates(self._store)
            last = self.store.value(
                "SELECT max(turn_ordinal) FROM event e JOIN session s ON s.id=e.session_id WHERE s.uid=?", (session,)
            )
            self.turn = (last or 0) + 1
        self.calibration = (
            load_calibration(self.path.parent, model)
            if self._store is not None and self.path is not None and model
            else None
        )

    @property
    def store(self) -> Store:
        """The open file. Raises MindChatError in an incognito conversation."""
        if self._store is None:
            raise MindChatError("This chat is incognito: memory is not open.", "/incognito off ends it.")
        return self._store

    @property
    def reader(self) -> Reader:
        """Lookups in the scopes that this conversation sees."""
        return Reader(self.store, self.project, self.session, self.calibration.fitted_at if self.calibration else "")

    @property
    def mode(self) -> Mode:
        """The stricter of the configuration and the project's persistent switch; incognito is off."""
        if self._store is None:
            return "off"
        stored = self.store.value("SELECT value FROM meta WHERE key=?", (f"mode:{self.project}",))
        modes: list[Mode] = [self.section.mode, *(mode for mode in _STRICTER if mode == stored)]
        return max(modes, key=_STRICTER.__getitem__)

    # ── recall
    # ───────────────────────────────────────────────────────────────────────────────────────────────────────────

    def recall(self, query: Query) -> Recalled:
        """Facts for this sub-query; and, behind the gate, the stored source passages that stand in for the search."""
        if self.mode == "off" or self.section.max_facts == 0:
            return Recalled(why="incognito" if self._store is None else "memory is off")
        began = time.perf_counter()
        slot = parse(query.text, strict=False)
        found = self.reader.find(query.text, slot, self.section.max_facts)
        facts = tuple(served.fact for served in found.served)
        served, why = self.reader.gate(query.text, found, self.section.skip_confidence)
        lookup = (time.perf_counter() - began) * 1000
        if served is not None and self.section.skip != "on":
            served, why = None, f"memory.skip is {self.section.skip}"
        if served is not None and self._audited(served):
            assert slot is not None
            self._audits[served.row["slot_key"]] = served
            self._remember("audit", served, query, lookup, "an audit", facts)
            return Recalled(facts, why=f"{served.row['uid']} would do; searching all the same, as an audit")
        if served is None:
            self._remember(
                "hit" if facts else "miss", found.answers[0] if found.answers else None, query, lookup, why, facts
            )
            return Recalled(facts, why=why)
        self._remember("skip", served, query, lookup, "", facts)
        return Recalled(
            facts, self.reader.passages(served), f"{served.row['uid']} answers this ({served.row['confidence']:.2f})"
        )

    def _audited(self, served: Served) -> bool:
        """A share of skips is searched all the same. Decided by a hash, so that equal runs are equal."""
        pending = sum(noted.fact == served.row["id"] for noted in self._pending)
        digest = hashlib.sha256(f"{served.row['uid']}:{served.row['use_count'] + pending}".encode()).digest()
        return int.from_bytes(digest[:4], "big") / 2**32 < self.section.audit

    def _remember(
        self, name: str, served: Served | None, query: Query, lookup: float, why: str, facts: Sequence[Fact] = ()
    ) -> None:
        detail: dict[str, Any] = {
            "query": clean_line(query.text, 200),
            "why": why,
            "facts": [fact.id for fact in facts],
        }
        detail["lookup_ms"] = round(lookup, 3)
        if served is not None:
            detail |= {"uid": served.row["uid"], "confidence": round(served.row["confidence"], 4)}
        if secret(query.text):
            detail["query"] = ""
        with self._mutex:
            self._pending.append(Noted(name, None if served is None else served.row["id"], self.turn, detail))

    # ── learning
    # ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def learn(self, harvests: Sequence[Harvest], ask: Ask | None) -> tuple[Sequence[FactLearned], Mapping[str, int]]:
        """Store what the gate lets through, at most one fact a hop; and how often each reason refused. Ends the turn.

        Model calls (one a grounded claim) happen outside any transaction; the passage is checked again before writing.
        """
        if self.mode != "on" or self.store.readonly:
            self._pending.clear()
            self.turn += 1
            return (), {}
        refused: Counter[str] = Counter()
        learned: list[FactLearned] = []
        for harvest in harvests:
            if len(learned) >= self.section.per_turn:
                refused["quota"] += 1
                continue
            result = self._learn_one(harvest, ask)
            if isinstance(result, str):
                refused[result] += 1
                self._drop(harvest, result)
            else:
                learned.append(result)
        self.flush()
        return learned, dict(refused)

    def _drop(self, harvest: Harvest, reason: str) -> None:
        detail = (
            {"reason": reason}
            if secret(harvest.subquery)
            else {"reason": reason, "query": clean_line(harvest.subquery, 200), "hop": harvest.hop}
        )
        self._pending.append(Noted("drop", None, self.turn, detail))

    def _learn_one(self, harvest: Harvest, ask: Ask | None) -> FactLearned | str:
        slot = parse(harvest.subquery)
        if slot is None:
            return "no_slot"
        grounded, reason = ground(slot, harvest.answer, harvest.passages)
        if grounded is None:
            return reason
        if reason := self._unfit(grounded, harvest):
            return reason
        self._close_audit(grounded)
        place = self.place(grounded)
        if place is None:
            return "changed"
        if (known := self._known_from(grounded, place)) is not None:
            return FactLearned(known, False)
        signals = answer_signals(harvest.answer, grounded.answer)
        if ask is not None:
            began = time.perf_counter()
            stated = verify(ask, grounded)
            self._pending.append(
                Noted("verify", None, self.turn, {"verify_ms": round((time.perf_counter() - began) * 1000, 1)})
            )
            signals = msgspec.structs.replace(signals, p_true=stated.p_true, margin=stated.margin)
        verdict = judge(grounded, signals, self.calibration)
        active = self._filtered(grounded, harvest, verdict.active)
        evidence = Evidence(
            "chunk",
            f"slot-v1/{self.model or 'model'}",
            grounded.grounding,
            place["document_id"],
            place["id"],
            place["sha256"],
            grounded.quote,
            self.store_offset(grounded) + grounded.sentence.start,
            self.store_offset(grounded) + grounded.sentence.end,
            harvest.hop,
            clean_line(harvest.subquery, 200),
            signals,
        )
        base, disambig = (
            split_title(grounded.passage.title) if titled(slot.subject, grounded.passage.title) else (slot.subject, "")
        )
        claim = Claim(
            clean_line(base, 200),
            slot.predicate,
            clean_line(grounded.object, 80),
            grounded.object_norm,
            verdict.confidence,
            "active" if active else "candidate",
            evidence,
            disambig,
            calibrated=verdict.calibrated,
            lang="en" if grounded.english else "und",
        )
        return self.store_claim(claim, place["generation"])

    def _known_from(self, grounded: Grounded, place: Any) -> Fact | None:
        """The served fact that was learned from this very sentence: reading it again, as after a skipped search, is no
        further evidence.
        """
        row = self.store.row(
            """SELECT f.id FROM servable f JOIN evidence v ON v.fact_id=f.id AND v.status='live' JOIN scope s ON s.id=f.scope_id
               JOIN entity e ON e.id=f.subject_id
               WHERE v.chunk_id=? AND v.quote_start=? AND f.predicate=? AND f.object_norm=? AND s.kind='project' AND s.name=? AND e.norm=?""",
            (
                place["id"],
                self.store_offset(grounded) + grounded.sentence.start,
                grounded.slot.predicate.name,
                grounded.object_norm,
                self.project,
                norm(
                    split_title(grounded.passage.title)[0]
                    if titled(grounded.slot.subject, grounded.passage.title)
                    else grounded.slot.subject
                ),
            ),
        )
        return None if row is None else fact_of(self.store, row["id"])

    @staticmethod
    def _unfit(grounded: Grounded, harvest: Harvest) -> str:
        text = f"{grounded.slot.subject}\n{grounded.object}"
        if secret(f"{text}\n{grounded.quote}\n{harvest.subquery}"):
            return "secret"
        if instruction(text) or instruction(grounded.quote) or orders(grounded.passage.text):
            return "instruction"
        return "reversed" if reversed_in_text(grounded) else ""

    def _filtered(self, grounded: Grounded, harvest: Harvest, confident: bool) -> bool:
        """memory.filter: none, cot, conf, conf+cot."""
        answer = fold(harvest.answer.text)
        words = [
            fold(grounded.slot.subject),
            fold(grounded.slot.predicate.phrase),
            *map(fold, grounded.slot.predicate.nouns),
        ]
        reasoned = any(word in answer for word in words)
        table = {
            "none": grounded.grounding == 2,
            "cot": reasoned and grounded.grounding == 2,
            "conf": confident,
            "conf+cot": confident and reasoned,
        }
        return table[self.section.filter]

    def place(self, grounded: Grounded) -> Any:
        """The chunk (with its document's generation) whose text is the passage that was read; None if the registry no
        longer has it.
        """
        passage = grounded.passage
        rows = self.store.rows(
            "SELECT c.*, d.generation, d.text_z, d.uri FROM chunk c JOIN document d ON d.id=c.document_id "
            "WHERE c.passage=? AND c.status='active' AND d.status='active'",
            (passage.id,),
        )
        for row in rows:
            if row["uri"] == passage.document and unpack(row["text_z"])[passage.start : passage.end] == passage.text:
                return row
        return None

    def keep(self, slot: Filled, passage: Passage, hop: int) -> FactLearned | str:
        """See ports.KeepsSlots; what was read from a sentence serves the next slot, turn and session."""
        if self.mode != "on" or self.store.readonly:
            return "off"
        return keep_slot(self, slot, passage, hop)

    def store_offset(self, grounded: Grounded) -> int:
        """Where the passage begins in its stored document."""
        return grounded.passage.start

    def store_claim(self, claim: Claim, generation: int | None) -> FactLearned | str:
        """Write one claim in one transaction; the reason if a tombstone, a quota or a changed document refuses it."""
        began = time.perf_counter()
        with self.store.write() as connection:
            document = claim.evidence.document_id
            if document is not None:
                found = connection.execute(
                    "SELECT generation FROM document WHERE id=? AND status='active'", (document,)
                ).fetchone()
                if found is None or found[0] != generation:
                    return "changed"
            scope, session = self._scope(connection)
            written = ledger.write(connection, scope, self.project, claim, session=session, turn=self.turn)
            evict(connection, scope, ledger.PER_PROJECT)
        if written.outcome in ("tombstone", "quota"):
            return written.outcome
        self._pending.append(
            Noted("write", None, self.turn, {"write_ms": round((time.perf_counter() - began) * 1000, 2)})
        )
        fact = self.fact(written)
        if written.outcome == "new":
            self.changes.append(Change(f"saved {fact.id}  {claim.text}", {}, (fact.id,)))
        return FactLearned(fact, written.outcome == "new")

    def fact(self, written: Written) -> Fact:
        """The stored fact as the screens see it."""
        return fact_of(self.store, written.fact)

    def _scope(self, connection: sqlite3.Connection) -> tuple[int, int]:
        scope = ledger.scope_id(connection, "project", self.project)
        return scope, ledger.session_id(connection, self.session, scope)

    def _close_audit(self, grounded: Grounded) -> None:
        """Compare a searched-all-the-same hop with the fact that would have replaced the search."""
        for key, served in list(self._audits.items()):
            same_subject = fold(split_title(served.row["subject"])[0]) == fold(split_title(grounded.slot.subject)[0])
            if served.row["predicate"] == grounded.slot.predicate.name and same_subject:
                old, new = served.row["object_norm"], grounded.object_norm
                agrees = (
                    old == new
                    or set(new.split()) <= set(old.split())
                    or set(old.split()) <= set(new.split())
                    or old.startswith(new)
                )
                detail = {"predicate": served.row["predicate"], "uid": served.row["uid"]}
                self._pending.append(Noted("audit_ok" if agrees else "audit_bad", served.row["id"], self.turn, detail))
                del self._audits[key]

    def flush(self) -> None:
        """Write the waiting audit trail and use counts, and begin the next turn."""
        with self._mutex:
            pending, self._pending = self._pending, []
        self._audits.clear()
        self.turn += 1
        if not pending or self._store is None or self.store.readonly or self.mode != "on":
            return
        with self.store.write() as connection:
            _, session = self._scope(connection)
            for noted in pending:
                exists = (
                    noted.fact is None or connection.execute("SELECT 1 FROM fact WHERE id=?", (noted.fact,)).fetchone()
                )
                if not exists:
                    continue
                detail = dict(noted.detail)
                ledger.note(
                    connection,
                    noted.name,
                    noted.fact,
                    session=session,
                    turn=noted.turn,
                    hop=detail.pop("hop", None),
                    **detail,
                )
                if noted.name in ("hit", "skip", "audit") and noted.fact is not None:
                    connection.execute(
                        "UPDATE fact SET use_count=use_count+1, last_used_at=? WHERE id=?", (now(), noted.fact)
                    )

    def pending(self) -> tuple[Noted, ...]:
        """What the running turn has not written yet."""
        return tuple(self._pending)

    def take_notices(self) -> list[str]:
        """What was repaired or found damaged in memory.db since the last call (ports.TellsRepairs)."""
        return [] if self._store is None else self._store.take_notices()

    def close(self) -> None:
        """Write what waits and close all connections."""
        if self._store is not None:
            if self._pending:
                self.flush()
            self._store.close()
