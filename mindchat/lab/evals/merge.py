"""Several output folders as one set of records, with arms that mean different things kept apart by name.

Owns: which records stand side by side, and the suffixes that tell apart equal names (context, corpus, seed, changed
defaults).
Does not own: the folders' format (records.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mindchat.errors import UsageError
from mindchat.lab.evals.records import Record, Run, read_records, read_run


class Merged(Struct, frozen=True):
    """All runs and their records, by dataset."""

    runs: dict[str, Run]
    """Folder name → description."""
    records: dict[str, tuple[Record, ...]]


def merge(folders: Sequence[Path]) -> Merged:
    """Read and join. A question that two folders answered under the same arm and setting counts once (the later
    folder's).

    Raises UsageError if a folder holds no run or none holds a record.
    """
    runs: dict[str, Run] = {}
    own: dict[str, list[Record]] = {}
    for folder in folders:
        run = read_run(folder)
        if run is None:
            raise UsageError(f"{folder} holds no run.", "Give output folders of mindchat eval.")
        name = folder.name if folder.name not in runs else str(folder)
        runs[name], own[name] = run, read_records(folder)
    labels = _labels(runs, own)
    joined: dict[str, dict[tuple[str, str], Record]] = {}
    for name, records in own.items():
        for record in records:
            label = labels[name, record.dataset, record.arm]
            joined.setdefault(record.dataset, {})[label, record.id] = replace(record, arm=label)
    if not joined:
        raise UsageError("No question has been answered in " + ", ".join(runs) + ".", "Run mindchat eval first.")
    return Merged(runs, {dataset: tuple(found.values()) for dataset, found in sorted(joined.items())})


def _setting(run: Run) -> tuple[tuple[str, str], ...]:
    """What distinguishes two runs of one arm, as (word, value)."""
    corpus = f"{run.open_corpus.name}#{run.open_corpus.sha256[:8]}" if run.open_corpus else "own"
    where = corpus if run.context == "retrieved" else run.context
    return (("context", where), ("seed", str(run.seed)))


def _labels(runs: Mapping[str, Run], own: Mapping[str, Sequence[Record]]) -> dict[tuple[str, str, str], str]:
    """(folder, dataset, arm) → the name under which it is shown; a suffix only where something differs."""
    labels = {}
    for dataset in sorted({record.dataset for records in own.values() for record in records}):
        here = {name: sorted({r.arm for r in records if r.dataset == dataset}) for name, records in own.items()}
        here = {name: arms for name, arms in here.items() if arms}
        settings = {name: _setting(runs[name]) for name in here}
        differing = [n for n in range(2) if len({setting[n] for setting in settings.values()}) > 1]
        for name, arms in here.items():
            suffix = "".join(f" {settings[name][n][0]}={settings[name][n][1]}" for n in differing)
            for arm in arms:
                changed = any(_differ(_settings_of(runs[other], arm), _settings_of(runs[name], arm)) for other in here)
                labels[name, dataset, arm] = arm + suffix + (f" from={name}" if changed else "")
    return labels


def _settings_of(run: Run, arm: str) -> dict[str, Any] | None:
    return next((entry.settings for entry in run.arms if entry.name == arm), None)


def _differ(a: dict[str, Any] | None, b: dict[str, Any] | None) -> bool:
    """Whether two descriptions of an arm disagree on a setting that both know; a setting that one of them is too old to
    know says nothing.
    """
    return a is not None and b is not None and any(a[key] != b[key] for key in a.keys() & b.keys())
