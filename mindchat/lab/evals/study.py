"""The study: result tables of README and MEASUREMENTS, rendered from the kept result folders and from nothing else.

Owns: study.toml (which tables exist), finding their folders, the blocks between markers in documents, the figures. Does
not own: how a table looks (study_tables.py), the numbers (summary.py, detect.py, chain_report.py), whose the folders
are (kept_results.py writes them). A block is `<!-- table: ID -->` … `<!-- /table -->`; what stands between is replaced
as a whole, so a table is never edited by hand.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from mindchat.errors import UsageError
from mindchat.text.nearest_name import unknown

SPEC = "study.toml"
_HINT = (
    "Give the folder that holds study.toml: --results DIR. The kept results are in the source, not in the installed"
    " package."
)
_BLOCK = re.compile(r"(<!-- table: ([a-z0-9-]+) -->\n)(.*?)(<!-- /table -->)", re.DOTALL)


class Beside(Struct, frozen=True, forbid_unknown_fields=True):
    """A paper's column: its table in paper_numbers.toml, and which of its systems stands beside which arm (by policy or
    whole name).
    """

    table: str
    systems: dict[str, str]


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of study.toml."""

    id: str
    title: str
    runs: tuple[str, ...]
    """Folders beside study.toml."""
    kind: Literal["arms", "across", "types", "rind", "chains", "probe"] = "arms"
    """arms: one dataset, a row an arm. across: F1 of each arm on every dataset. types: F1 by question type. rind:
    AUROC. chains: memory. probe: its charts."""
    dataset: str = ""
    """For arms and types; "": the folders hold one only."""
    arms: tuple[str, ...] = ()
    """Rows, in this order; empty: all, cheapest first."""
    columns: tuple[str, ...] = ("n", "em", "f1", "retrievals", "calls", "seconds")
    """Names of study_tables.COLUMNS."""
    default: str = ""
    """The arm from which the column `difference` subtracts each row's."""
    labels: dict[str, str] = {}
    """Arm → what the table calls it."""
    papers: tuple[Beside, ...] = ()
    figure: str = ""
    """Name of an SVG to draw beside study.toml."""
    note: str = ""
    """One sentence under the table."""


class Spec(Struct, frozen=True, forbid_unknown_fields=True):
    """study.toml."""

    table: tuple[Table, ...]


def home() -> Path:
    """The folder of study.toml and the kept results."""
    return Path(str(resources.files("mindchat.lab"))) / "results"


def read(folder: Path) -> tuple[Table, ...]:
    """The tables of a folder's study.toml, in its order. Raises UsageError if there is none or it is wrong."""
    path = folder / SPEC
    try:
        found = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Spec).table
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.", _HINT) from error
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise UsageError(
            f"{path} is wrong: {error}.", "mindchat.lab.evals.study says which fields there are."
        ) from error
    names = [table.id for table in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"{path} has the table {twice[0]} twice.", "Give each an id of its own.")
    return found


def render(table: Table, folder: Path) -> str:
    """One table with its title's bold line, as Markdown without a trailing blank line. Raises UsageError if its folders
    or arms are not there.
    """
    from mindchat.lab.evals.study_tables import KINDS

    folders = [folder / run for run in table.runs]
    body = "\n".join(KINDS[table.kind](table, folders)).rstrip()
    note = f"\n\n{table.note}" if table.note else ""
    return f"**{table.title}**\n\n{body}{note}"


def fill(text: str, blocks: Mapping[str, str]) -> str:
    """A document with every marked block replaced. Raises UsageError for a marker without a table or without an end."""
    opened = re.findall(r"<!-- table: ([^>]*?) -->", text)
    if len(opened) != len(_BLOCK.findall(text)) or len(opened) != text.count("<!-- /table -->"):
        raise UsageError(
            "A table's marker has no end or no proper name.", "Each block is <!-- table: ID --> … <!-- /table -->."
        )
    for name in opened:
        if name not in blocks:
            raise unknown("table", name, blocks)
    return _BLOCK.sub(lambda found: f"{found[1]}{blocks[found[2]]}\n{found[4]}", text)


def blocks(folder: Path) -> dict[str, str]:
    """Every table of the study by id."""
    return {table.id: render(table, folder) for table in read(folder)}


def figures(folder: Path) -> dict[str, str]:
    """Every figure of the study: file name → SVG."""
    from mindchat.lab.evals.study_tables import figure

    return {table.figure: figure(table, [folder / run for run in table.runs]) for table in read(folder) if table.figure}
