"""Numbers that papers report, shown beside ours and marked as theirs.

Owns: reading paper_numbers.toml. Does not own: any comparison; models, corpora and splits differ, so no difference is
ever computed against them.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Collection
from importlib import resources
from typing import Literal

import msgspec
from msgspec import Struct


class Row(Struct, frozen=True):
    """One system; a value is [EM, F1] or one number."""

    system: str
    values: tuple[tuple[float, ...], ...]


class Table(Struct, frozen=True):
    """One published table."""

    id: str
    paper: str
    model: str
    metric: str
    setting: Literal["given", "retrieved"]
    """Whether the documents were given or searched."""
    columns: tuple[str, ...]
    """Dataset, or dataset/type."""
    rows: tuple[Row, ...]
    note: str = ""


class _File(Struct, frozen=True):
    table: tuple[Table, ...]


@functools.cache
def tables() -> tuple[Table, ...]:
    """All published tables, in file order."""
    body = resources.files("mindchat.lab.evals").joinpath("paper_numbers.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(body), _File).table


class Published(Struct, frozen=True):
    """One published table cut down to one dataset."""

    paper: str
    model: str
    metric: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str


def published(dataset: str, settings: Collection[str] = ("given", "retrieved")) -> tuple[Published, ...]:
    """What papers report for a dataset (an "_open" variant is the same dataset) in the given settings."""
    name, found = dataset.removesuffix("_open"), []
    for table in (one for one in tables() if one.setting in settings):
        kept = [n for n, column in enumerate(table.columns) if column.partition("/")[0] == name]
        if kept:
            columns = tuple(table.columns[n].partition("/")[2] or "all" for n in kept)
            rows = tuple(Row(row.system, tuple(row.values[n] for n in kept)) for row in table.rows)
            found.append(Published(table.paper, table.model, table.metric, columns, rows, table.note))
    return tuple(found)
