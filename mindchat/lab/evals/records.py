"""The output folder: run.json and the record lines, safe against kill -9 and against several processes.

Owns: Record, the files of the shards and merging them, the run description and its agreement on resume.
Does not own: appending and reading lines (json_lines.py), what is recorded (runner.py) or how it is summed up
(report.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from filelock import FileLock
from msgspec import Struct

from mindchat.errors import UsageError
from mindchat.storage.atomic import write_atomic
from mindchat.storage.json_lines import Lines, appending, read
from mindchat.text.foreign_json import decode_json

RUN = "run.json"
QUESTIONS = "questions"


class Failure(Struct, frozen=True):
    """Why a question has no prediction."""

    code: str
    message: str


class Record(Struct, frozen=True, omit_defaults=True):
    """One question under one arm. Only `timing` may differ between two runs of one seed."""

    arm: str
    dataset: str
    id: str
    type: str = ""
    question: str = ""
    prediction: str = ""
    """The short answer that is scored."""
    answer: str = ""
    gold: tuple[str, ...] = ()
    scores: dict[str, float] = {}
    """em, f1, accuracy and the dataset's variants; empty for a failure, which counts as 0 and is shown."""
    measures: dict[str, float] = {}
    """Retrieval, triggers, entities, citations (behaviour.py), where defined."""
    counts: dict[str, Any] = {}
    timing: dict[str, float] = {}
    confidence: float | None = None
    abstained: bool = False
    stop: str = ""
    warm: int = 0
    """Prompt tokens of the first model call that an earlier turn had left in the model's cache; 0: a fair, cold start.
    """
    hops: tuple[dict[str, Any], ...] = ()
    failure: Failure | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """What one record stands for; a later record of the same key replaces it."""
        return (self.arm, self.dataset, self.id)


class ArmEntry(Struct, frozen=True):
    """An arm as run.json describes it."""

    name: str
    settings: dict[str, Any]


class DatasetEntry(Struct, frozen=True):
    """A question file as run.json describes it: enough to know it again, no path of this machine."""

    name: str
    file: str
    sha256: str
    questions: int
    datasets: tuple[str, ...] = ()


class Run(Struct, frozen=True):
    """What is needed to run it again."""

    seed: int
    n: int | None
    context: str
    datasets: tuple[DatasetEntry, ...]
    arms: tuple[ArmEntry, ...]
    open_corpus: DatasetEntry | None = None
    models: dict[str, Any] = {}
    """Model id → file hash, arithmetic …, as the command line reports them."""
    versions: dict[str, str] = {}
    machine: dict[str, Any] = {}
    notes: tuple[str, ...] = ()
    started: str = ""
    """UTC, of the first start."""


def _shape(run: Run) -> dict[str, Any]:
    """What must not change on resume. More arms and a larger n may be added: the sample of a larger n extends the
    smaller one's.
    """
    return {
        "seed": run.seed,
        "context": run.context,
        "question files": sorted(d.sha256 for d in run.datasets),
        "open corpus": run.open_corpus.sha256 if run.open_corpus else "",
    }


def join_runs(old: Run, new: Run) -> Run:
    """The description after a resume. Raises UsageError naming what differs."""
    for what, value in _shape(old).items():
        if _shape(new)[what] != value:
            raise UsageError(
                f"The folder holds a run with another {what}.", "Resume with the same command, or give a new --out."
            )
    known = {arm.name: arm for arm in old.arms}
    for arm in new.arms:
        if arm.name in known and known[arm.name].settings != arm.settings:
            hint = "Its settings or the shipped defaults changed; give a new --out."
            raise UsageError(f"The folder holds another arm by the name {arm.name!r}.", hint)
    for model, facts in new.models.items():
        if old.models.get(model, facts) != facts:
            raise UsageError(f"The model {model} is not the one that this folder was made with.", "Give a new --out.")
    arms = (*old.arms, *(arm for arm in new.arms if arm.name not in known))
    n = None if old.n is None or new.n is None else max(old.n, new.n)
    return msgspec.structs.replace(
        old, arms=arms, n=n, models={**old.models, **new.models}, notes=tuple(dict.fromkeys([*old.notes, *new.notes]))
    )


def pretty(value: Any) -> bytes:
    """JSON with two spaces, for files that people read."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def read_run(folder: Path) -> Run | None:
    """run.json, or None if the folder has none. Raises UsageError if it is broken."""
    path = folder / RUN
    if not path.is_file():
        return None
    try:
        return decode_json(path.read_bytes(), type=Run)
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is not a run description: {error}.", "Give a new --out.") from error


def read_records(folder: Path) -> list[Record]:
    """All records of all shards, one a key (the last written wins), sorted by dataset, id and arm.

    A line that a kill cut short stands last in its file and is dropped; a broken line anywhere else raises UsageError.
    """
    found: dict[tuple[str, str, str], Record] = {}
    for path in sorted(folder.glob(f"{QUESTIONS}*.jsonl")):
        for record in read(path, Record, "a record", "Remove that line; --resume asks its question again."):
            found[record.key] = record
    return sorted(found.values(), key=lambda record: (record.dataset, record.id, record.arm))


@contextlib.contextmanager
def open_writer(folder: Path, shard: tuple[int, int]) -> Iterator[Lines]:
    """The file of this shard (number, of how many), for records, alone. Raises IndexLockedError if another process
    writes it.
    """
    name = QUESTIONS if shard == (1, 1) else f"{QUESTIONS}-{shard[0]}"
    with appending(folder / f"{name}.jsonl", "Wait for it, or give each process its own --shard i/n.") as lines:
        yield lines


def prepare(folder: Path, run: Run, *, resume: bool, shared: bool) -> Run:
    """Create or continue the folder and write run.json; `shared`: other shards may have started it already.

    Raises UsageError if it holds a run and neither is true, or the run there differs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".run.lock"):
        old = read_run(folder)
        if old is None:
            if any(folder.glob(f"{QUESTIONS}*.jsonl")):
                raise UsageError(f"{folder} holds records but no {RUN}.", "Give a new --out.")
            joined = run
        elif resume or shared:
            joined = join_runs(old, run)
        else:
            raise UsageError(f"{folder} already holds a run.", "Continue it with --resume, or give a new --out.")
        write_atomic(folder / RUN, pretty(joined))
    return joined


DIGITS = 6
"""Decimals of kept scores and measures; tables show one or two."""
PREDICTION = 120
"""Characters of a kept prediction."""


def compact(record: Record) -> Record:
    """The record without texts but the prediction's beginning, without zeros and long fractions: what tables and charts
    need.
    """
    return msgspec.structs.replace(
        record,
        question="",
        answer="",
        gold=(),
        hops=(),
        prediction=record.prediction[:PREDICTION],
        scores={key: round(value, DIGITS) for key, value in record.scores.items()},
        measures={key: round(value, DIGITS) for key, value in record.measures.items()},
        counts=without_zeros(record.counts),
        timing={key: round(record.timing[key], 2) for key in ("first_token", "wall") if key in record.timing},
        confidence=None if record.confidence is None else round(record.confidence, DIGITS),
    )


def without_zeros(counts: Mapping[str, Any]) -> dict[str, Any]:
    """Counts that are not zero; a count that is missing reads as zero."""
    return {key: value for key, value in counts.items() if value}


def write_compact(folder: Path, target: Path, *, strip: Sequence[str] = ()) -> None:
    """run.json and one merged questions.jsonl without texts, for committing; `strip` lists keys of run.json's machine
    to leave out.
    """
    run = read_run(folder)
    if run is None:
        raise UsageError(f"{folder} holds no run.", "Give an output folder of mindchat eval.")
    machine: Mapping[str, Any] = {key: value for key, value in run.machine.items() if key not in strip}
    target.mkdir(parents=True, exist_ok=True)
    write_atomic(target / RUN, pretty(msgspec.structs.replace(run, machine=dict(machine))))
    lines = [msgspec.json.encode(compact(record)) for record in read_records(folder)]
    write_atomic(target / f"{QUESTIONS}.jsonl", b"".join(line + b"\n" for line in lines))
