"""The tables of a probe's report: one for each chart, one for the cost of a measurement.

Owns: how report.json of a probe is put into Markdown, reading a kept one. Does not own: what is in it
(mindchat.lab.probes).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from mindchat.errors import UsageError
from mindchat.lab.evals.report import number, table
from mindchat.text.clean import clean_line
from mindchat.text.foreign_json import decode_json

REPORT = "report.json"


def read(folder: Path) -> dict[str, Any]:
    """A probe's report. Raises UsageError if there is none."""
    try:
        found = decode_json((folder / REPORT).read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"No probe is kept in {folder.name}.", "Keep a finished one: mindchat eval keep.") from error
    if "panels" not in found:
        raise UsageError(f"{folder.name} holds no probe's report.", "Keep a finished one: mindchat eval keep.")
    return found


def lines(found: Mapping[str, Any], heading: str = "## ") -> Iterator[str]:
    """Every chart as a table, then the costs; `heading` begins a title."""
    close = "**" if heading == "**" else ""
    for title, panels in [("", found["panels"]), *found["groups"].items()]:
        for panel in (panel for panel in panels if panel["series"]):
            yield f"{heading}{clean_line(panel['title'])}{f' · {clean_line(title)}' if title else ''}{close}"
            yield ""
            yield from _chart(panel)
    yield f"{heading}Cost of a measurement{close}"
    yield ""
    costs = [
        [
            str(row["repeat"]),
            str(row["n"]),
            number(row["tokens_new"], 0),
            number(row["tokens_cached"], 0),
            number(row["seconds"], 2),
        ]
        for row in found["cost"]
    ]
    yield from table(["repetitions", "n", "new tokens", "cached tokens", "seconds"], costs)


def _chart(panel: Mapping[str, Any]) -> Iterator[str]:
    xs = sorted({point["x"] for series in panel["series"] for point in series["points"]})
    yield f"{clean_line(panel['y'])} [95 % interval] by {clean_line(panel['x'])}"
    yield ""
    rows = []
    for series in panel["series"]:
        points = {point["x"]: point for point in series["points"]}
        cells = [_share(points[x]) if x in points else "" for x in xs]
        rows.append([series["name"], *cells, str(max((point["n"] for point in series["points"]), default=0))])
    yield from table(["", *(f"{x:g}" for x in xs), "n"], rows)


def _share(point: Mapping[str, float]) -> str:
    return f"{number(100 * point['mean'])} [{number(100 * point['low'])}, {number(100 * point['high'])}]"
