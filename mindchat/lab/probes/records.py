"""The folder of a probe: run.json and one line a measurement, safe against kill -9.

Owns: its files, what must agree on resume. Does not own: appending and reading lines (evals.lines), what is measured.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from mindchat.errors import UsageError
from mindchat.lab.evals.records import pretty
from mindchat.lab.probes.cases import Record, Run
from mindchat.storage.atomic import write_atomic
from mindchat.storage.json_lines import Lines, appending, read
from mindchat.text.foreign_json import decode_json

RUN, RECORDS = "run.json", "measurements.jsonl"
MAY_GROW = ("n", "repeats", "lists")
"""Options that a resumed run may have more of: each measurement is named by them, so that what is there stays valid."""


def read_run(folder: Path) -> Run | None:
    """run.json, or None if there is none. Raises UsageError if it is broken."""
    path = folder / RUN
    if not path.is_file():
        return None
    try:
        return decode_json(path.read_bytes(), type=Run)
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is not a probe's description: {error}.", "Give a new --out.") from error


def read_records(folder: Path) -> list[Record]:
    """All measurements, one a key, in the order in which they were made. Raises UsageError for a broken line that is
    not the last.
    """
    found = read(folder / RECORDS, Record, "a measurement", "Remove that line; --resume makes it again.")
    return list({record.key: record for record in found}.values())


def prepare(folder: Path, run: Run, *, resume: bool) -> None:
    """Create or continue the folder. Raises UsageError if it holds a run and `resume` is not set, or another run."""
    folder.mkdir(parents=True, exist_ok=True)
    old = read_run(folder)
    if old is None and (folder / RECORDS).exists():
        raise UsageError(f"{folder} holds measurements but no {RUN}.", "Give a new --out.")
    if old is not None:
        if not resume:
            raise UsageError(f"{folder} already holds a run.", "Continue it with --resume, or give a new --out.")
        _agree(old, run)
        run = msgspec.structs.replace(run, started=old.started, options=_grown(old.options, run.options))
    write_atomic(folder / RUN, pretty(run))


def _grown(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The new options, and what the folder holds beyond them: what is measured stays and is reported, also when less is
    asked for.
    """
    joined = dict(new)
    for key in (key for key in MAY_GROW if key in old and key in new):
        both = (old[key], new[key])
        joined[key] = max(both) if isinstance(new[key], int) else sorted({*old[key], *new[key]}, reverse=key == "lists")
    return joined


def _agree(old: Run, new: Run) -> None:
    def fixed(run: Run) -> dict[str, object]:
        options = {key: value for key, value in run.options.items() if key not in MAY_GROW}
        return {"probe": run.probe, "model": run.model, "question file": run.data.get("sha256", ""), **options}

    for what, value in fixed(old).items():
        if fixed(new).get(what) != value:
            raise UsageError(
                f"The folder holds a run with another {what}: {value}.",
                "Resume with the same command, or give a new --out.",
            )


@contextlib.contextmanager
def open_writer(folder: Path) -> Iterator[Lines]:
    """The measurements' file, opened for appending by this process alone. Raises IndexLockedError if another one has
    it.
    """
    with appending(folder / RECORDS, "Wait for it, or give another --out.") as lines:
        yield lines
