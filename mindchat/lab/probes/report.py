"""From measurements to tables and a picture: report.json, report.md, report.svg.

Owns: summing up. Does not own: which curves there are (the probe), drawing (chart.py). Deterministic: the same folder
gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from mindchat.errors import UsageError
from mindchat.lab.evals.probe_tables import REPORT, lines
from mindchat.lab.evals.records import pretty
from mindchat.lab.probes import PROBES
from mindchat.lab.probes.cases import Panel, Probe, Record
from mindchat.lab.probes.chart import draw
from mindchat.lab.probes.records import read_records, read_run
from mindchat.storage.atomic import write_atomic
from mindchat.text.clean import clean_line


def find(name: str) -> Probe:
    """The probe of a name. Raises UsageError."""
    if name not in PROBES:
        raise UsageError(f"There is no probe {clean_line(name, 40)!r}.", f"There are: {', '.join(PROBES)}.")
    module, _, attribute = PROBES[name].partition(":")
    probe: Probe = getattr(import_module(module), attribute)()
    return probe


def build(folder: Path) -> dict[str, Any]:
    """Everything the report says, as plain data. Raises UsageError if the folder holds no probe."""
    run = read_run(folder)
    if run is None:
        raise UsageError(f"{folder} holds no probe.", "Give an output folder of mindchat probe.")
    probe, records = find(run.probe), read_records(folder)
    groups = {
        name: [r for r in records if r.group == name] for name in dict.fromkeys(record.group for record in records)
    }
    return {
        "probe": run.probe,
        "about": probe.about,
        "model": run.model,
        "options": run.options,
        "data": run.data,
        "versions": run.versions,
        "machine": run.machine,
        "cases": len({record.case for record in records}),
        "measurements": len(records),
        "left_out": sum(bool(record.failure) for record in records),
        "panels": msgspec.to_builtins(probe.panels(records)),
        "groups": (
            {name: msgspec.to_builtins(probe.panels(inside)) for name, inside in groups.items()}
            if probe.by_group and len(groups) > 1
            else {}
        ),
        "cost": _costs(records),
    }


def _costs(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Tokens and seconds of a measurement, by repetition."""
    rows = []
    for repeat in sorted({record.repeat for record in records}):
        inside = [record for record in records if record.repeat == repeat and not record.failure]
        count = max(len(inside), 1)
        rows.append(
            {
                "repeat": repeat,
                "n": len(inside),
                "tokens_new": sum(record.tokens_new for record in inside) / count,
                "tokens_cached": sum(record.tokens_cached for record in inside) / count,
                "seconds": sum(record.seconds for record in inside) / count,
            }
        )
    return rows


def markdown(found: Mapping[str, Any]) -> str:
    """Tables for people."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"# Probe {found['probe']}: {clean_line(found['model'])}"
    yield ""
    yield f"{found['about']}"
    yield ""
    chosen = ", ".join(f"{key} {value}" for key, value in found["options"].items())
    yield (
        f"{_cases(found['cases'])}, {found['measurements']} measurements, {found['left_out']} over the window;"
        f" {clean_line(chosen)}."
    )
    if found["data"]:
        yield f"Questions: {clean_line(found['data']['file'])}, SHA-256 {found['data']['sha256'][:16]}."
    yield ""
    yield from lines(found)


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count} cases"


def write(folder: Path) -> dict[str, Any]:
    """report.json, report.md and report.svg into the folder; returns what report.json holds."""
    found = build(folder)
    panels = msgspec.convert(found["panels"], tuple[Panel, ...])
    write_atomic(folder / REPORT, pretty(found))
    write_atomic(folder / "report.md", markdown(found).encode())
    write_atomic(
        folder / "report.svg", draw(f"{found['probe']}: {found['model']}, {_cases(found['cases'])}", panels).encode()
    )
    return found
