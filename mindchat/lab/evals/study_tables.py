"""How each kind of result table looks.

Owns: KINDS (kind → its lines), COLUMNS (name → heading and cell). Does not own: the numbers (summary.py and its kin),
which tables exist (study.py). Numbers of papers stand in columns or rows of their own, marked with † and named with
their model; no difference to them is ever computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mindchat.errors import UsageError
from mindchat.lab.evals import chain_report, chart, detect, paper, probe_tables
from mindchat.lab.evals.chain_records import read_chain_records
from mindchat.lab.evals.merge import merge
from mindchat.lab.evals.records import Record
from mindchat.lab.evals.report import number, percent, plain, table
from mindchat.lab.evals.study import Beside, Table
from mindchat.lab.evals.summary import ArmSummary, DatasetSummary, Difference, difference, shorten, summarise
from mindchat.text.nearest_name import unknown

PAPERS = (
    "† As the papers report it, with their models, corpora, splits and prompts: for orientation, not for comparison."
)


class Row(Struct, frozen=True):
    """One arm of a table of arms."""

    arm: ArmSummary
    name: str
    ahead: Difference | None
    """The default minus this arm; None for the default itself and where no default is named."""


Cell = Callable[[Row], str]


def _cost(name: str, digits: int = 2) -> Cell:
    return lambda row: number(row.arm.total.cost[name], digits)


def _measure(name: str) -> Cell:
    return lambda row: percent(found) if (found := row.arm.measures.get(name)) else "–"


def _ahead(of: Callable[[Difference], str]) -> Cell:
    return lambda row: "–" if row.ahead is None else of(row.ahead)


def _tokens(row: Row) -> str:
    cost = row.arm.total.cost
    return " / ".join(
        number(cost[name], 0) for name in ("prompt_tokens_new", "prompt_tokens_cached", "generated_discarded")
    )


COLUMNS: Mapping[str, tuple[str, Cell]] = {
    "n": ("n", lambda row: str(row.arm.total.n)),
    "failed": ("failed", lambda row: str(row.arm.total.failures)),
    "abstained": ("abstained", lambda row: str(row.arm.total.abstained)),
    "em": ("EM", lambda row: percent(row.arm.total.em)),
    "f1": ("F1", lambda row: percent(row.arm.total.f1)),
    "accuracy": ("accuracy", lambda row: percent(row.arm.total.accuracy)),
    "retrievals": ("searches", _cost("retrievals")),
    "triggers": ("triggers", _cost("triggers")),
    "calls": ("model calls", _cost("model_calls")),
    "tokens": ("prompt tokens new / cached, discarded", _tokens),
    "seconds": ("seconds", lambda row: plain(row.arm.seconds, 1)),
    "mixture": ("best mix F1", lambda row: "–" if row.arm.mixture is None else number(100 * row.arm.mixture)),
    "difference": ("default − it, F1", _ahead(lambda found: percent(found.f1))),
    "difference_em": ("default − it, EM", _ahead(lambda found: percent(found.em))),
    "difference_calls": ("default − it, calls", _ahead(lambda found: plain(found.calls))),
    "p": ("McNemar p", _ahead(lambda found: number(found.mcnemar.p, 3))),
    **{
        name: (name.replace("_", " "), _measure(name))
        for name in ("support_recall", "support_all", "support_precision", "trigger_precision")
    },
    **{
        name: (name.replace("_", " "), _measure(name))
        for name in ("entity_coverage", "citation_precision", "citation_exact")
    },
    **{
        name: (name.replace("_", " "), _measure(name))
        for name in ("sp_em", "sp_f1", "joint_em", "joint_f1", "em_set", "f1_set", "em_dragin")
    },
}
"""Column of a table of arms → heading and cell."""


# ── choosing
# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _records(spec: Table, folders: Sequence[Path]) -> dict[str, tuple[Record, ...]]:
    """By dataset, only the named arms; every named one must be there."""
    found = merge(folders).records
    chosen = {name: found[name] for name in found if not spec.dataset or name == spec.dataset}
    if not chosen:
        raise unknown("dataset", spec.dataset, found)
    known = {record.arm for records in chosen.values() for record in records}
    if missing := [arm for arm in spec.arms if arm not in known]:
        raise unknown("arm", missing[0], known)
    if spec.default and spec.default not in known:
        raise unknown("arm", spec.default, known)
    return {name: tuple(r for r in records if not spec.arms or r.arm in spec.arms) for name, records in chosen.items()}


def _one(spec: Table, folders: Sequence[Path]) -> tuple[DatasetSummary, tuple[Record, ...]]:
    found = _records(spec, folders)
    if len(found) != 1:
        raise UsageError(f"The table {spec.id} has the datasets {', '.join(found)}.", "Name one: dataset = ….")
    ((name, records),) = found.items()
    summary = summarise(name, records)
    if spec.arms:
        order = {arm: n for n, arm in enumerate(spec.arms)}
        summary = replace(summary, arms=tuple(sorted(summary.arms, key=lambda arm: order[arm.arm])))
    return summary, records


def _names(spec: Table, arms: Sequence[str]) -> dict[str, str]:
    _, short = shorten(arms)
    return {arm: spec.labels.get(arm, short[arm]) for arm in arms}


# ── kinds
# ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def arms(spec: Table, folders: Sequence[Path]) -> Iterator[str]:
    """A row for every arm; papers as columns."""
    summary, records = _one(spec, folders)
    names = _names(spec, [arm.arm for arm in summary.arms])
    if bad := [name for name in spec.columns if name not in COLUMNS]:
        raise unknown("column", bad[0], COLUMNS)
    theirs = [_column(beside, summary.dataset) for beside in spec.papers]
    rows = []
    for arm in summary.arms:
        row = Row(arm, names[arm.arm], _against(spec.default, arm.arm, records))
        cells = [COLUMNS[name][1](row) for name in spec.columns]
        rows.append([row.name, *cells, *(_of(values, arm) for _, values in theirs)])
    yield from table(["arm", *(COLUMNS[name][0] for name in spec.columns), *(head for head, _ in theirs)], rows)
    yield from _legend(spec)


def _against(default: str, arm: str, records: Sequence[Record]) -> Difference | None:
    if not default or arm == default:
        return None
    own, others = ([record for record in records if record.arm == name] for name in (default, arm))
    return difference(default, own, arm, others)


def _legend(spec: Table) -> Iterator[str]:
    lines = []
    if "difference" in spec.columns or "difference_em" in spec.columns:
        lines.append(
            f"Default: {spec.labels.get(spec.default, spec.default)}. Differences are paired over questions; an"
            " interval that holds 0 shows none."
        )
    if "mixture" in spec.columns:
        lines.append("Best mix: what a coin between two other arms reaches at this arm's calls or fewer.")
    if spec.papers:
        lines.append(PAPERS)
    if lines:
        yield " ".join(lines)
        yield ""


def _column(beside: Beside, dataset: str) -> tuple[str, dict[str, str]]:
    """Heading and, by arm or policy, the paper's number for this dataset."""
    theirs = _published(beside.table)
    name = dataset.removesuffix("_open")
    if name not in theirs.columns:
        raise unknown("dataset of the paper's table", name, theirs.columns)
    at = theirs.columns.index(name)
    values = {row.system: "/".join(f"{value:g}" for value in row.values[at]) for row in theirs.rows}
    if missing := [system for system in beside.systems.values() if system not in values]:
        raise unknown("system", missing[0], values)
    return f"{theirs.paper}, {theirs.model}, {theirs.metric} †", {
        arm: values[system] for arm, system in beside.systems.items()
    }


def _published(id_: str) -> paper.Table:
    known = {one.id: one for one in paper.tables()}
    if id_ not in known:
        raise unknown("paper's table", id_, known)
    return known[id_]


def _of(values: Mapping[str, str], arm: ArmSummary) -> str:
    return values.get(arm.arm, values.get(arm.policy, ""))


def types(spec: Table, folders: Sequence[Path]) -> Iterator[str]:
    """F1 by question type (n in the heading), with the difference default − arm where a default is named; papers as
    rows.
    """
    summary, records = _one(spec, folders)
    names = _names(spec, [arm.arm for arm in summary.arms])
    kinds = sorted({kind for arm in summary.arms for kind in arm.by_type})
    counts = {kind: max(arm.by_type[kind].n for arm in summary.arms if kind in arm.by_type) for kind in kinds}
    rows = [
        [names[arm.arm], *(percent(arm.by_type[kind].f1) if kind in arm.by_type else "–" for kind in kinds)]
        for arm in summary.arms
    ]
    for arm in summary.arms if spec.default else ():
        if arm.arm != spec.default:
            rows.append(
                [
                    f"{names.get(spec.default, spec.default)} − {names[arm.arm]}",
                    *(_by_kind(spec.default, arm.arm, records, k) for k in kinds),
                ]
            )
    for beside in spec.papers:
        rows += list(_rows(beside, summary.dataset.removesuffix("_open"), kinds))
    yield from table(["F1", *(f"{kind} ({counts[kind]})" for kind in kinds)], rows)
    yield from _legend(spec)


def _by_kind(default: str, arm: str, records: Sequence[Record], kind: str) -> str:
    found = _against(default, arm, [record for record in records if record.type == kind])
    return "–" if found is None or math.isnan(found.f1.mean) else percent(found.f1)


def _rows(beside: Beside, dataset: str, kinds: Sequence[str]) -> Iterator[list[str]]:
    theirs = _published(beside.table)
    at = {kind: theirs.columns.index(f"{dataset}/{kind}") for kind in kinds if f"{dataset}/{kind}" in theirs.columns}
    for row in theirs.rows:
        if not beside.systems or row.system in beside.systems.values():
            cells = ["/".join(f"{value:g}" for value in row.values[at[kind]]) if kind in at else "–" for kind in kinds]
            yield [f"† {theirs.paper}, {theirs.model}: {row.system}", *cells]


def across(spec: Table, folders: Sequence[Path]) -> Iterator[str]:
    """F1 of every arm on every dataset."""
    found = {name: summarise(name, records) for name, records in _records(spec, folders).items()}
    every = list(spec.arms) or sorted({arm.arm for summary in found.values() for arm in summary.arms})
    names = _names(spec, every)
    by_arm = {(name, arm.arm): arm for name, summary in found.items() for arm in summary.arms}
    cells = {key: percent(arm.total.f1) for key, arm in by_arm.items()}
    rows = [[names[arm], *(cells.get((name, arm), "–") for name in found)] for arm in every]
    yield from table(["F1", *(f"{name} ({summary.questions})" for name, summary in found.items())], rows)
    yield from _legend(spec)


def rind(spec: Table, folders: Sequence[Path]) -> Iterator[str]:
    """AUROC of every signal."""
    del spec
    yield from detect.lines(detect.build(folders))


def chains(spec: Table, folders: Sequence[Path]) -> Iterator[str]:
    """Memory on and off over chains."""
    del spec
    records = [record for folder in folders for record in read_chain_records(folder)]
    if not records:
        raise UsageError(
            "No chain has been recorded in " + ", ".join(folder.name for folder in folders) + ".",
            "Keep a finished run.",
        )
    body = chain_report.markdown(chain_report.build(records)).splitlines()
    yield from (f"**{line.lstrip('# ')}**" if line.startswith("#") else line for line in body)


def probe(spec: Table, folders: Sequence[Path]) -> Iterator[str]:
    """The charts of a probe and what a measurement costs."""
    del spec
    for folder in folders:
        yield from probe_tables.lines(probe_tables.read(folder), "**")


KINDS: Mapping[str, Callable[[Table, Sequence[Path]], Iterator[str]]] = {
    "arms": arms,
    "across": across,
    "types": types,
    "rind": rind,
    "chains": chains,
    "probe": probe,
}


def figure(spec: Table, folders: Sequence[Path]) -> str:
    """The SVG of the table's arms: F1 against model calls and seconds, with intervals."""
    found = _records(spec, folders)
    return chart.draw([summarise(name, records) for name, records in found.items()])
