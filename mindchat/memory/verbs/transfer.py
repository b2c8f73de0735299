"""Export and import of facts: JSON lines for machines, Markdown for reading.

Owns: the two file formats. Does not own: what a fact is. A database file is never imported; tombstones are never
exported. Everything imported arrives as a candidate of the current project and passes every screen, whoever exported
it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from mindchat.errors import MemoryStoreError, UsageError
from mindchat.memory.facts import FactMemory
from mindchat.memory.learning import redaction
from mindchat.memory.learning.slots import predicates
from mindchat.memory.tables import ledger
from mindchat.memory.tables.ledger import Claim, Evidence
from mindchat.memory.tables.listing import SOURCES
from mindchat.memory.verbs.outcomes import Exported, Imported
from mindchat.memory.verbs.selecting import item, some
from mindchat.storage.atomic import write_atomic
from mindchat.storage.clock import now
from mindchat.text.clean import clean_line
from mindchat.text.folding import split_title
from mindchat.text.foreign_json import decode_json
from mindchat.text.typed_spans import type_ok, value_norm

FORMAT, VERSION = "mindchat-memory", 1
_MAX_LINE, _MAX_FACTS = 20_000, 100_000


class Header(Struct, frozen=True):
    """Line 1 of an export."""

    format: str
    version: int
    project: str = ""
    exported_at: str = ""
    facts: int = 0


class ExportedSource(Struct, frozen=True):
    """One evidence in an export."""

    type: str
    document: str | None = None
    quote: str | None = None
    start: int | None = None
    end: int | None = None


class ExportedFact(Struct, frozen=True):
    """One fact in an export."""

    subject: str
    predicate: str
    object: str
    id: str = ""
    kind: Literal["document", "user"] = "document"
    status: str = "active"
    confidence: float = 0.5
    pinned: bool = False
    scope: str = "project"
    valid_from: str | None = None
    valid_to: str | None = None
    recorded_at: str = ""
    evidence: tuple[ExportedSource, ...] = ()


def export(memory: FactMemory, path: Path, *, scope: str | None = None) -> Exported:
    """Write FILE.jsonl or FILE.md, mode 0600, replacing an older one in one step."""
    if path.suffix not in (".jsonl", ".md"):
        raise UsageError(f"{path.name}: unknown format.", "FILE.jsonl for machines, FILE.md for reading.")
    rows, _ = some(memory, scope=scope, status="all")
    text = _markdown(memory, rows) if path.suffix == ".md" else _jsonl(memory, rows)
    try:
        write_atomic(path, text)
    except OSError as error:
        raise MemoryStoreError(f"{path} cannot be written: {error.strerror}.", "Choose another place.") from error
    return Exported(str(path), len(rows))


def _jsonl(memory: FactMemory, rows: list[Any]) -> str:
    lines = [msgspec.json.encode(Header(FORMAT, VERSION, memory.project, now(), len(rows)))]
    for row in rows:
        shown = item(memory, row)
        sources = tuple(
            ExportedSource(v["source_type"], v["uri"], v["quote"], v["quote_start"], v["quote_end"])
            for v in memory.store.rows(SOURCES, (row["id"],))
        )
        fact = ExportedFact(
            shown.subject,
            shown.predicate,
            shown.object,
            shown.id,
            row["kind"],
            row["status"],
            row["confidence"],
            bool(row["pinned"]),
            shown.scope,
            row["valid_from"],
            row["valid_to"],
            row["recorded_at"],
            sources,
        )
        lines.append(msgspec.json.encode(fact))
    return "\n".join(line.decode() for line in lines) + "\n"


def _markdown(memory: FactMemory, rows: list[Any]) -> str:
    lines = [f"# Memory of {clean_line(memory.project, 80)}", ""]
    for row in rows:
        shown = item(memory, row)
        lines.append(f"- {shown.statement} ({shown.status}, {shown.source}, {shown.id})")
    return "\n".join(lines) + "\n"


def import_(memory: FactMemory, path: Path, *, dry_run: bool = False) -> Imported:
    """Read an export; nothing is written with `dry_run`. Raises UsageError for a file of another kind."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}.", "An export is UTF-8, one JSON object a line.") from error
    try:
        header = decode_json(lines[0] if lines else "", type=Header)
    except msgspec.DecodeError as error:
        raise UsageError(f"{path.name} is no memory export.", "/memory export FILE.jsonl writes one.") from error
    if header.format != FORMAT or header.version > VERSION:
        raise UsageError(
            f"{path.name} has format {clean_line(header.format, 30)} {header.version}.",
            f"This MindChat reads {FORMAT} up to {VERSION}.",
        )
    refused: Counter[str] = Counter()
    claims = [
        claim for line in lines[1 : _MAX_FACTS + 1] if line.strip() and (claim := _claim(line, refused)) is not None
    ]
    return _write(memory, claims, refused, dry_run)


def _claim(line: str, refused: Counter[str]) -> Claim | None:
    try:
        if len(line) > _MAX_LINE:
            raise msgspec.DecodeError("too long")
        fact = decode_json(line, type=ExportedFact)
    except msgspec.DecodeError:
        refused["unreadable"] += 1
        return None
    predicate = predicates().get(fact.predicate)
    subject, value = clean_line(fact.subject, 200), clean_line(fact.object)
    text = f"{subject}\n{value}"
    if predicate is None:
        refused["unknown_relation"] += 1
    elif redaction.secret(text) or redaction.personal(text):
        refused["secret"] += 1
    elif redaction.instruction(text):
        refused["instruction"] += 1
    elif not subject or len(value) > 250 or (not type_ok(value, predicate.range) and predicate.kind != "user"):
        refused["type"] += 1
    else:
        user = fact.kind == "user" or predicate.kind == "user"
        name, disambig = (ledger.USER, "") if user else split_title(subject)
        evidence = Evidence("import", "import", 0)
        confidence = min(max(fact.confidence, 0.0), 1.0)
        return Claim(
            name,
            predicate,
            value,
            value_norm(value, predicate.range),
            confidence,
            "candidate",
            evidence,
            disambig,
            "user" if user else "",
            "user" if user else "document",
        )
    return None


def _write(memory: FactMemory, claims: list[Claim], refused: Counter[str], dry_run: bool) -> Imported:
    candidates = known = 0
    with memory.store.write() as connection:
        scope = ledger.scope_id(connection, "project", memory.project)
        session = ledger.session_id(connection, memory.session, scope)
        connection.execute("SAVEPOINT imported")
        for claim in claims:
            written = ledger.write(connection, scope, memory.project, claim, session=session, turn=memory.turn)
            candidates += written.outcome == "new"
            known += written.outcome == "support"
            refused[written.outcome] += written.outcome in ("tombstone", "quota")
        if dry_run:
            connection.execute("ROLLBACK TO imported")
        connection.execute("RELEASE imported")
    return Imported(candidates, known, {name: n for name, n in refused.items() if n}, dry_run)
