"""What a run will ask of whom: the sample, the arms, and the description that is enough to run it again.

Owns: Plan, plan, the facts about files, versions and machine in run.json. Does not own: running (runner.py).
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from msgspec import Struct

from mindchat import __version__
from mindchat.config import Config
from mindchat.corpus.reading.walk import Found, walk
from mindchat.errors import UsageError
from mindchat.lab.evals import datasets
from mindchat.lab.evals.arms import Arm, decisive, expand
from mindchat.lab.evals.examples import Context, Item, corpus_for
from mindchat.lab.evals.records import ArmEntry, DatasetEntry, Run


class Plan(Struct, frozen=True):
    """What will be asked of whom."""

    items: tuple[Item, ...]
    """The sample, in seeded order."""
    arms: tuple[Arm, ...]
    context: Context
    open_corpus: str
    """Path of the corpus file to search; "" : each question's own context."""
    seed: int
    run: Run


def plan(
    paths: Sequence[Path],
    *,
    base: Config,
    axes: Mapping[str, Sequence[str]],
    context: Context = "retrieved",
    open_corpus: Path | None = None,
    n: int | None = None,
    seed: int = 0,
    models: Mapping[str, Any] | None = None,
) -> Plan:
    """Read the question files (n sampled from each), expand the arms, describe the run.

    axes: dotted setting → values, as strings ("engine.policy": ["none", "mind"]). models: facts about each model (file
    hash) for run.json. Raises UsageError or ConfigError for anything that cannot be run as asked.
    """
    if n is not None and n < 1:
        raise UsageError(f"--n is {n}; it must be at least 1.", "Leave it out to ask every question.")
    arms = expand(base, axes, seed=seed)
    if context != "retrieved" and (other := sorted({arm.config.engine.policy for arm in arms} - {"none"})):
        raise UsageError(
            f"--context {context} leaves nothing to search for the policy {', '.join(other)}.",
            "Use --policy none with it.",
        )
    if open_corpus is not None and context != "retrieved":
        raise UsageError(f"--open and --context {context} exclude each other.", "Leave one of them out.")
    if open_corpus is not None and not open_corpus.exists():
        raise UsageError(
            f"{open_corpus} does not exist.", "Give a corpus of {id, title, text} lines, or a folder of documents."
        )
    for path in paths:
        if open_corpus is not None and _would_be_searched(path.resolve(), open_corpus.resolve()):
            raise UsageError(
                f"{path} lies in the corpus {open_corpus}: its answers would be searched.",
                "List it in a .mindchatignore there.",
            )
    items, entries = _read(paths, n, seed)
    run = Run(
        seed=seed,
        n=n,
        context=context,
        datasets=tuple(entries),
        arms=tuple(ArmEntry(arm.name, decisive(arm.config)) for arm in arms),
        open_corpus=_entry(open_corpus, (), 0) if open_corpus else None,
        models=dict(models or {}),
        versions=versions(),
        machine=machine(),
        notes=tuple(_notes(items, context, open_corpus)),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    if context != "none":
        for item in items:
            corpus_for(item, context, str(open_corpus or ""))
    return Plan(tuple(items), arms, context, str(open_corpus or ""), seed, run)


def _read(paths: Sequence[Path], n: int | None, seed: int) -> tuple[list[Item], list[DatasetEntry]]:
    if not paths:
        raise UsageError("No question file is given.", "Give one, for example corpora/demo/questions.jsonl.")
    items: dict[tuple[str, str], Item] = {}
    entries = []
    for path in paths:
        loaded = datasets.load(path)
        for item in datasets.sample(loaded, n, seed):
            key = (item.example.dataset, item.example.id)
            if key in items:
                raise UsageError(
                    f"The question {key[1]} of {key[0]} stands in two of the files.", "Give each question once."
                )
            items[key] = item
        entries.append(_entry(path, tuple(sorted({item.example.dataset for item in loaded})), len(loaded)))
    return list(items.values()), entries


def _entry(path: Path, names: tuple[str, ...], questions: int) -> DatasetEntry:
    """A file's facts; of a folder, the hash is over the names and bytes of all its files."""
    digest = hashlib.sha256()
    for part in sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]:
        if path.is_dir():
            digest.update(part.relative_to(path).as_posix().encode())
        with part.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return DatasetEntry(path.stem, path.name, digest.hexdigest(), questions, names)


def _would_be_searched(path: Path, corpus: Path) -> bool:
    """Whether a question file would be indexed with the corpus that it lies in."""
    if not path.is_relative_to(corpus):
        return False
    return any(isinstance(item, Found) and item.path == path for item in walk(corpus, path.stat().st_size))


def _notes(items: Sequence[Item], context: Context, open_corpus: Path | None) -> Iterator[str]:
    if context == "oracle":
        yield "Context oracle: gold chose the passages; an upper bound, not a result."
    searched = context in ("retrieved", "given") and open_corpus is None
    for dataset in sorted({item.example.dataset for item in items}) if searched else ():
        pids = [
            ({s.pid for s in i.example.context}, {s.pid for s in i.gold.supporting})
            for i in items
            if i.example.dataset == dataset
        ]
        if all(own <= supporting for own, supporting in pids):
            yield (
                f"{dataset}: the questions' own contexts hold supporting passages only (an oracle setting); --open"
                " CORPUS.jsonl is realistic."
            )


def versions() -> dict[str, str]:
    """Versions of what can change an answer."""
    found = {"mindchat": __version__, "python": platform.python_version()}
    for name in ("torch", "transformers", "bm25s", "whoosh-reloaded", "numpy"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """Processor and cores: seconds mean nothing without them."""
    name = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
        name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    return {"processor": name or platform.machine(), "cores": os.cpu_count() or 0, "system": platform.system()}
