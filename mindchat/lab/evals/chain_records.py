"""What a run over chains writes down, and the folder that holds it.

Owns: ChainRecord, chains.json, the files of the shards, what a resumed run must have in common with the old one. Does
not own: asking (chain_run.py), tables (chain_report.py). A chain is the unit that is recorded and resumed: memory lives
in RAM, so a chain that was cut is asked again from its start.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from filelock import FileLock
from msgspec import Struct

from mindchat.errors import UsageError
from mindchat.lab.evals.arms import Arm, decisive
from mindchat.lab.evals.chains import Chain, describe
from mindchat.lab.evals.planning import machine, versions
from mindchat.lab.evals.records import Failure, pretty
from mindchat.storage.atomic import write_atomic
from mindchat.storage.json_lines import Lines, appending, read
from mindchat.text.foreign_json import decode_json

Regime = Literal["turn", "chain", "set"]
"""What memory outlives: nothing but the turn (what MIND could have measured), the chain, or the whole set in the order
of the chains.
"""

RECORDS, RUN = "chains", "chains.json"


class Learned(Struct, frozen=True):
    """A stored or served fact and its judgement against the chain's gold."""

    subject: str
    predicate: str
    object: str
    confidence: float
    judged: Literal["right", "wrong", "unknown"]
    status: str = ""
    """active (it may be served), candidate or disputed."""


class TurnRecord(Struct, frozen=True):
    """One turn under one arm."""

    kind: str
    question: str
    prediction: str
    gold: tuple[str, ...]
    em: float
    f1: float
    needs: int
    repeated: int
    """Needs that an earlier turn had: what a perfect memory could serve."""
    exposed: int
    """Repeated needs whose passage an earlier turn was shown."""
    stored: int
    """Repeated needs that memory had learned right, and may serve, before this turn."""
    hits: int
    """Stored needs that memory served in this turn."""
    skips: int
    wrong_skips: int
    """Skipped searches for which no served fact is a need of this turn."""
    stale: int
    """Served facts or stand-in passages that say what the document no longer says (must be 0)."""
    counts: dict[str, Any]
    seconds: float
    learned: tuple[Learned, ...] = ()
    served: tuple[Learned, ...] = ()
    refused: dict[str, int] = {}
    """Why what the turn found was not stored: reason → how often."""
    forgotten: int = 0
    """Facts that the user forgot right before this turn."""
    forgotten_served: int = 0
    """Served facts that had been forgotten (must be 0)."""
    secrets: int = 0
    """Planted secrets that stand anywhere in memory after this turn (must be 0)."""
    failure: Failure | None = None


class ChainRecord(Struct, frozen=True):
    """One chain under one arm."""

    arm: str
    chain: str
    kind: str
    turns: tuple[TurnRecord, ...]


def prepare(
    out: Path,
    chains: Sequence[Chain],
    arms: Sequence[Arm],
    regime: Regime,
    *,
    notes: Mapping[str, Any],
    resume: bool,
    shared: bool,
) -> None:
    """Create or continue the folder; `shared`: other shards may have started it. `notes`: models, files, calibration;
    they too must be the same.

    Raises UsageError if it holds a run and neither is true, or the run there differs.
    """
    described = {
        "regime": regime,
        "chains": [chain.id for chain in chains],
        "arms": {arm.name: decisive(arm.config) for arm in arms},
        "notes": dict(notes),
        "offer": dict(describe(chains)),
        "versions": versions(),
        "machine": machine(),
    }
    out.mkdir(parents=True, exist_ok=True)
    file = out / RUN
    with FileLock(out / ".run.lock"):
        if not file.is_file():
            write_atomic(file, pretty(described))
            return
        if not (resume or shared):
            raise UsageError(
                f"{out} already holds a run over chains.", "Continue it with --resume, or give a new --out."
            )
        old = decode_json(file.read_bytes())
        for key in ("regime", "chains", "arms", "notes"):
            if old.get(key) != decode_json(msgspec.json.encode(described[key])):
                raise UsageError(
                    f"The folder holds a run over chains with other {key}.",
                    "Resume with the same command, or give a new --out.",
                )


@contextlib.contextmanager
def open_writer(out: Path, shard: tuple[int, int]) -> Iterator[Lines]:
    """The records file of one shard, alone. Raises IndexLockedError if another process fills it."""
    name = RECORDS if shard[1] == 1 else f"{RECORDS}-{shard[0]}"
    with appending(out / f"{name}.jsonl", "Wait for it, or give each process its own --shard i/n.") as lines:
        yield lines


def read_chain_records(out: Path) -> list[ChainRecord]:
    """All chains that were finished, of all shards, sorted by chain and arm. A torn last line is dropped."""
    found: dict[tuple[str, str], ChainRecord] = {}
    for path in sorted(out.glob(f"{RECORDS}*.jsonl")):
        for record in read(path, ChainRecord, "a record", "Remove that line; --resume asks its chain again."):
            found[record.chain, record.arm] = record
    return [found[key] for key in sorted(found)]


def as_lines(records: Sequence[ChainRecord]) -> Iterator[Mapping[str, Any]]:
    """Every stored fact with its judgement, for a person to read."""
    for record in records:
        for turn in record.turns:
            for fact in turn.learned:
                yield {"arm": record.arm, "chain": record.chain, "question": turn.question, **msgspec.to_builtins(fact)}
