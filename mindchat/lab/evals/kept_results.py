"""What stays of a run for good: small enough to be committed, enough for every table.

Owns: the compact form of a finished folder, whatever it holds. Does not own: reading it again (records.py,
chain_records.py, probe_tables.py).
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from mindchat.lab.evals import chain_records, probe_tables, records
from mindchat.lab.evals.chain_records import ChainRecord
from mindchat.storage.atomic import write_atomic

MEASUREMENTS = "measurements.jsonl"
"""What a probe's folder holds; of it only the report stays."""


def keep(folder: Path, target: Path) -> None:
    """Write the compact form of an output folder. Raises UsageError if it holds no run."""
    if (folder / MEASUREMENTS).is_file():
        target.mkdir(parents=True, exist_ok=True)
        write_atomic(target / probe_tables.REPORT, records.pretty(probe_tables.read(folder)))
        return
    chains = chain_records.read_chain_records(folder)
    if not chains:
        records.write_compact(folder, target)
        return
    target.mkdir(parents=True, exist_ok=True)
    write_atomic(target / chain_records.RUN, (folder / chain_records.RUN).read_bytes())
    lines = [msgspec.json.encode(compact_chain(record)) + b"\n" for record in chains]
    write_atomic(target / f"{chain_records.RECORDS}.jsonl", b"".join(lines))


def compact_chain(record: ChainRecord) -> ChainRecord:
    """The chain without its texts."""
    empty = msgspec.structs.replace
    turns = []
    for turn in record.turns:
        learned, served = (
            tuple(empty(fact, subject="", object="") for fact in facts) for facts in (turn.learned, turn.served)
        )
        turns.append(
            empty(
                turn,
                question="",
                prediction="",
                gold=(),
                learned=learned,
                served=served,
                counts=records.without_zeros(turn.counts),
            )
        )
    return empty(record, turns=tuple(turns))
