"""Measuring every cell of every case, with news, and going on after a kill.

Owns: run and its events, the window check, the time left. Does not own: which cells there are (the probe), files
(records.py), tables (report.py).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from mindchat.errors import UsageError
from mindchat.lab.probes.asking import ANSWER_TOKENS
from mindchat.lab.probes.cases import Case, Cell, Options, Probe, Record, Run
from mindchat.lab.probes.records import open_writer, prepare, read_records
from mindchat.ports import NEVER, Cancel, Model


class Planned(Struct, frozen=True, tag_field="type", tag="Planned"):
    """The run begins; `done` of `total` measurements are there already."""

    total: int
    done: int
    cases: int


class Measured(Struct, frozen=True, tag_field="type", tag="Measured"):
    """A measurement is on disk."""

    case: str
    cell: str
    done: int
    total: int
    failure: str
    seconds: float
    eta_seconds: float
    """Estimate for the rest from the mean of what this process has done."""


class Finished(Struct, frozen=True, tag_field="type", tag="Finished"):
    """All measurements are there."""

    total: int
    failures: int


ProbeEvent = Planned | Measured | Finished


def run(
    probe: Probe, options: Options, model: Model, about: Run, *, out: Path, resume: bool = False, cancel: Cancel = NEVER
) -> Iterator[ProbeEvent]:
    """Fill the folder. Raises UsageError for a folder that holds another run, Interrupted when cancelled; what is
    measured stays.
    """
    cases = list(probe.cases(options))
    if not cases:
        raise UsageError(
            "There is nothing to measure.",
            "Give a question file whose supporting passages are marked, or a larger --n.",
        )
    prepare(out, about, resume=resume)
    with open_writer(out) as lines:
        have = {record.key for record in read_records(out)}
        left = [(case, cell) for case in cases for cell in case.cells if (case.id, cell.name) not in have]
        total = sum(len(case.cells) for case in cases)
        yield Planned(total, total - len(left), len(cases))
        failures, spent = 0, 0.0
        for made, (case, cell) in enumerate(left, 1):
            cancel.check()
            record = measure(probe, case, cell, model, cancel)
            lines.append(record)
            spent += record.seconds
            failures += bool(record.failure)
            done = total - len(left) + made
            yield Measured(
                case.id, cell.name, done, total, record.failure, record.seconds, spent / made * (len(left) - made)
            )
        yield Finished(total, failures)


def measure(probe: Probe, case: Case, cell: Cell, model: Model, cancel: Cancel = NEVER) -> Record:
    """One cell; a prompt that is over the window has no values and a reason, never a cut."""
    started = time.perf_counter()
    prompt = cell.lay()
    said, values, failure = "", dict[str, float](), ""
    model.usage()
    if (tokens := model.count(prompt)) + ANSWER_TOKENS > model.window:
        failure = f"the prompt has {tokens} tokens, the window {model.window}"
    else:
        said, values = probe.measure(case, cell, prompt, model, cancel)
    new, cached, _ = model.usage()
    return Record(
        case=case.id,
        cell=cell.name,
        group=case.group,
        repeat=cell.repeat,
        at=cell.at,
        values={**cell.facts, **values} if not failure else {},
        said=said,
        gold=cell.gold,
        tokens_new=new,
        tokens_cached=cached,
        seconds=round(time.perf_counter() - started, 4),
        failure=failure,
    )
