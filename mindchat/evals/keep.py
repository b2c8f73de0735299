"""What stays of a run for good: small enough to be committed, enough for every table.

Owns: the compact form of a finished folder, whatever it holds. Does not own: reading it again (records.py, chain_run.py).
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from mindchat.evals import chain_run, records
from mindchat.evals.chain_run import ChainRecord


def keep(folder: Path, target: Path) -> None:
    """Write the compact form of an output folder. Raises UsageError if it holds no run."""
    chains = chain_run.read_chain_records(folder)
    if not chains:
        records.write_compact(folder, target)
        return
    target.mkdir(parents=True, exist_ok=True)
    records.write_atomically(target / chain_run.RUN, (folder / chain_run.RUN).read_bytes())
    lines = [msgspec.json.encode(compact_chain(record)) + b"\n" for record in chains]
    records.write_atomically(target / chain_run.RECORDS, b"".join(lines))


def compact_chain(record: ChainRecord) -> ChainRecord:
    """The chain without its texts."""
    empty = msgspec.structs.replace
    turns = []
    for turn in record.turns:
        learned = tuple(empty(fact, subject="", object="") for fact in turn.learned)
        turns.append(empty(turn, question="", prediction="", gold=(), learned=learned, counts=records.without_zeros(turn.counts)))
    return empty(record, turns=tuple(turns))
