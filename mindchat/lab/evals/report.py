"""The report: report.json, report.md and report.svg from one or more output folders.

Owns: their words and layout. Does not own: the numbers (summary.py), the picture (chart.py). Deterministic: equal
records give equal bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from mindchat.lab.evals import chart, paper
from mindchat.lab.evals.bootstrap import Interval
from mindchat.lab.evals.merge import Merged, merge
from mindchat.lab.evals.records import Run, pretty
from mindchat.lab.evals.summary import ArmSummary, DatasetSummary, Difference, Group, shorten, summarise
from mindchat.storage.atomic import write_atomic
from mindchat.text.clean import clean_line

SMALL = 30
"""Fewest questions for which a percentile interval is taken at its word."""


class Report(Struct, frozen=True):
    """The content of report.json."""

    runs: dict[str, Run]
    datasets: tuple[DatasetSummary, ...]
    published: dict[str, tuple[paper.Published, ...]]
    """Numbers of papers by dataset: other models and settings, for orientation."""
    notes: tuple[str, ...]


def build(folders: Sequence[Path], *, against: Sequence[str] = ()) -> Report:
    """Merge and sum up. Raises UsageError for folders without a run or without records."""
    merged = merge(folders)
    datasets = tuple(summarise(dataset, records, against=against) for dataset, records in merged.records.items())
    settings = {"retrieved" if run.context in ("retrieved", "none") else "given" for run in merged.runs.values()}
    theirs = {dataset.dataset: paper.published(dataset.dataset, settings) for dataset in datasets}
    return Report(
        merged.runs, datasets, {name: rows for name, rows in theirs.items() if rows}, _notes(merged, datasets)
    )


def write(folders: Sequence[Path], out: Path, *, against: Sequence[str] = ()) -> Report:
    """Build and write the three files into `out`; returns the report."""
    found = build(folders, against=against)
    out.mkdir(parents=True, exist_ok=True)
    write_atomic(out / "report.json", pretty(found))
    write_atomic(out / "report.md", markdown(found).encode())
    write_atomic(out / "report.svg", chart.draw(found.datasets).encode())
    return found


def _notes(merged: Merged, datasets: Sequence[DatasetSummary]) -> tuple[str, ...]:
    notes = [note for run in merged.runs.values() for note in run.notes]
    for dataset in datasets:
        if any(arm.total.n != dataset.questions for arm in dataset.arms):
            notes.append(
                f"{dataset.dataset}: unfinished; {dataset.shared} of {dataset.questions} questions have a record of"
                " every arm."
            )
        if (fewest := min(arm.total.n for arm in dataset.arms)) < SMALL:
            notes.append(
                f"{dataset.dataset}: {fewest} questions are few; an interval of so small a sample is too narrow, most"
                " of all next to 0 and 100 %."
            )
        if warm := sum(arm.warm for arm in dataset.arms):
            notes.append(
                f"{dataset.dataset}: {warm} turns began on a warm prefix cache; their seconds and new tokens are too"
                " low."
            )
        if failures := sum(arm.total.failures for arm in dataset.arms):
            notes.append(f"{dataset.dataset}: {failures} failed turns count as wrong answers.")
    cores = {(run.machine.get("processor"), run.machine.get("cores")) for run in merged.runs.values()}
    if len(cores) > 1:
        notes.append("Seconds were measured on different machines and are not comparable between runs.")
    return tuple(dict.fromkeys(notes))


# ── words
# ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def number(value: float, digits: int = 1) -> str:
    """A figure, "–" for NaN, never "-0.0"."""
    if math.isnan(value):
        return "–"
    return f"{round(value, digits) + 0.0:.{digits}f}"


def percent(found: Interval) -> str:
    """Mean and interval in percent: 31.2 [24.0, 38.5]."""
    return f"{number(100 * found.mean)} [{number(100 * found.low)}, {number(100 * found.high)}]"


def plain(found: Interval, digits: int = 2) -> str:
    """Mean and interval as they are."""
    return f"{number(found.mean, digits)} [{number(found.low, digits)}, {number(found.high, digits)}]"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A Markdown table; cells are data and lose their pipes."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "|".join(["---", *["---:"] * (len(head) - 1)]) + "|"
    for row in rows:
        yield "| " + " | ".join(clean_line(cell).replace("|", "/") for cell in row) + " |"
    yield ""


def markdown(found: Report) -> str:
    """The whole report."""
    lines = ["# Evaluation report", ""]
    lines += _runs(found)
    lines += [f"* {clean_line(note)}" for note in found.notes] + ([""] if found.notes else [])
    lines += [
        (
            "EM, F1 and accuracy in percent with 95 % bootstrap intervals over questions. Accuracy of span answers: the"
            " gold answer stands in the short"
        ),
        "answer. Calls: model calls of every kind. Cost is the mean per question.",
        "",
    ]
    for dataset in found.datasets:
        lines += _dataset(dataset, found)
    return "\n".join(lines).rstrip() + "\n"


def _runs(found: Report) -> Iterator[str]:
    rows = []
    for name, run in found.runs.items():
        corpus = run.open_corpus.name if run.open_corpus else "own contexts"
        where = f"searched in {corpus}" if run.context == "retrieved" else f"context {run.context}"
        files = ", ".join(f"{entry.name} ({entry.sha256[:8]})" for entry in run.datasets)
        models = ", ".join(sorted({str(arm.settings.get("model.name", "")) for arm in run.arms}))
        machine = f"{run.machine.get('processor', '?')}, {run.machine.get('cores', '?')} cores"
        rows.append([name, files, where, models, "all" if run.n is None else str(run.n), str(run.seed), machine])
    yield from table(["run", "questions", "documents", "models", "n", "seed", "machine"], rows)


def _dataset(dataset: DatasetSummary, found: Report) -> Iterator[str]:
    yield f"## {clean_line(dataset.dataset)}"
    yield ""
    common, short = shorten([arm.arm for arm in dataset.arms])
    yield f"{dataset.questions} questions, {dataset.shared} answered by every arm." + (
        f" All arms: {clean_line(common)}." if common else ""
    )
    yield ""
    yield from _main(dataset, short)
    yield from _by_type(dataset, short)
    yield from _differences(dataset, short)
    yield from _measures(dataset, short)
    yield from _published(found.published.get(dataset.dataset, ()))


def _main(dataset: DatasetSummary, short: Mapping[str, str]) -> Iterator[str]:
    head = [
        "arm",
        "n",
        "failed",
        "abstained",
        "EM",
        "F1",
        "accuracy",
        "retrievals",
        "calls",
        "prompt new / cached",
        "kept / discarded / side",
        "seconds",
    ]
    yield from table([*head, "best mix F1"], [_main_row(arm, short[arm.arm]) for arm in dataset.arms])
    yield (
        "Best mix F1: what a coin between two other arms reaches at this arm's mean calls or fewer; an arm below it is"
        " not worth its calls here."
    )
    yield ""


def _main_row(arm: ArmSummary, name: str) -> list[str]:
    cost = arm.total.cost
    return [
        name,
        str(arm.total.n),
        str(arm.total.failures),
        str(arm.total.abstained),
        percent(arm.total.em),
        percent(arm.total.f1),
        percent(arm.total.accuracy),
        number(cost["retrievals"], 2),
        number(cost["model_calls"], 2),
        _prompted(arm.total),
        (
            f"{number(cost['generated_kept'], 0)} / {number(cost['generated_discarded'], 0)} /"
            f" {number(cost['generated_side'], 0)}"
        ),
        plain(arm.seconds, 1),
        "–" if arm.mixture is None else number(100 * arm.mixture),
    ]


def _by_type(dataset: DatasetSummary, short: Mapping[str, str]) -> Iterator[str]:
    rows = [
        _type_row(kind, short[arm.arm], group)
        for kind in _types(dataset)
        for arm in dataset.arms
        if (group := arm.by_type.get(kind))
    ]
    if rows:
        yield "### By question type"
        yield ""
        yield from table(
            [
                "type",
                "arm",
                "n",
                "failed",
                "EM",
                "F1",
                "accuracy",
                "retrievals",
                "calls",
                "prompt new / cached",
                "seconds",
            ],
            rows,
        )


def _types(dataset: DatasetSummary) -> list[str]:
    return sorted({kind for arm in dataset.arms for kind in arm.by_type})


def _type_row(kind: str, arm: str, group: Group) -> list[str]:
    scores = [percent(group.em), percent(group.f1), percent(group.accuracy)]
    costs = [
        number(group.cost["retrievals"], 2),
        number(group.cost["model_calls"], 2),
        _prompted(group),
        number(group.cost["seconds"], 1),
    ]
    return [kind, arm, str(group.n), str(group.failures), *scores, *costs]


def _prompted(group: Group) -> str:
    return f"{number(group.cost['prompt_tokens_new'], 0)} / {number(group.cost['prompt_tokens_cached'], 0)}"


def _differences(dataset: DatasetSummary, short: Mapping[str, str]) -> Iterator[str]:
    if not dataset.differences:
        return
    yield "### Paired differences"
    yield ""
    yield (
        "Arm minus reference, over the questions that both have. An interval that holds 0 shows no difference. p: exact"
        " McNemar test on EM."
    )
    yield ""
    head = ["arm", "reference", "n", "EM", "F1", "p", "retrievals", "calls", "prompt new / cached", "seconds"]
    yield from table(head, [_difference_row(one, short) for one in dataset.differences])
    rows = [
        [kind, *_difference_row(inside, short)]
        for kind in _types(dataset)
        for d in dataset.differences
        if (inside := d.by_type.get(kind))
    ]
    if rows:
        yield from table(["type", *head], rows)


def _difference_row(one: Difference, short: Mapping[str, str]) -> list[str]:
    return [
        short[one.arm],
        short[one.reference],
        str(one.em.n),
        percent(one.em),
        percent(one.f1),
        number(one.mcnemar.p, 3),
        plain(one.retrievals),
        plain(one.calls),
        f"{plain(one.prompt_tokens_new, 0)} / {plain(one.prompt_tokens_cached, 0)}",
        plain(one.seconds, 1),
    ]


def _measures(dataset: DatasetSummary, short: Mapping[str, str]) -> Iterator[str]:
    names = sorted({name for arm in dataset.arms for name in arm.measures})
    rows = []
    for arm in dataset.arms:
        cells = [
            f"{percent(arm.measures[name])} ({arm.measures[name].n})" if name in arm.measures else "–" for name in names
        ]
        stops = ", ".join(f"{stop} {count}" for stop, count in arm.stops.items())
        failed = ", ".join(f"{code} {count}" for code, count in arm.failure_codes.items())
        sure = "–" if arm.confidence_auroc is None else number(arm.confidence_auroc, 2)
        rows.append([short[arm.arm], *cells, sure, stops or "–", failed or "–"])
    yield "### Retrieval, triggers, sources, stops"
    yield ""
    yield "In percent; in brackets the number of questions for which the measure is defined."
    yield ""
    yield from table(
        ["arm", *(name.replace("_", " ") for name in names), "confidence AUROC", "stops", "failures"], rows
    )


def _published(found: Sequence[paper.Published]) -> Iterator[str]:
    if not found:
        return
    yield "<details><summary>Published numbers</summary>"
    yield ""
    yield "As the papers report them, with their models, corpora and splits: for orientation, not for comparison."
    yield ""
    for one in found:
        yield f"{one.paper}, {one.model}, {one.metric}." + (f" {one.note}" if one.note else "")
        yield ""
        yield from table(
            ["system", *one.columns],
            [[row.system, *("/".join(f"{v:g}" for v in value) for value in row.values)] for row in one.rows],
        )
    yield "</details>"
    yield ""
