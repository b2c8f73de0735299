"""What a probe is: cases, the cells in which each is measured, and the curves that come of it.

Owns: the vocabulary of this room. Does not own: any single probe, or how one is run and recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from mindchat.ports import Cancel, Model
from mindchat.values import Prompt


class Options(Struct, frozen=True):
    """What can be chosen; a probe ignores what does not concern it."""

    n: int
    """Cases of each group (lists) or questions."""
    seed: int = 0
    repeats: tuple[int, ...] = (0, 1)
    """Repetitions of the context, ascending."""
    role: str = "user"
    lists: tuple[int, ...] = (10, 6, 3, 1)
    """Numbers of lists (probe lists)."""
    documents: int = 5
    """Documents in a context (probe order)."""
    questions: Path | None = None
    """A question file with marked supporting passages; None: the packaged demo."""


class Cell(Struct, frozen=True):
    """One measurement of a case."""

    name: str
    """Unique within the case."""
    repeat: int
    at: float
    """Where it stands on the chart's x axis."""
    lay: Callable[[], Prompt]
    gold: tuple[str, ...]
    facts: Mapping[str, float] = {}
    """What is known of it beforehand and belongs into the record (descents of an order …)."""


class Case(Struct, frozen=True):
    """One list task or question; its cells are in the order in which most of a prompt is shared with the one before."""

    id: str
    group: str
    """For tables: number of lists, type of question."""
    cells: tuple[Cell, ...]
    dataset: str = ""


class Record(Struct, frozen=True, omit_defaults=True):
    """One cell, measured. Only `seconds` may differ between two runs of one seed; cached tokens also depend on where a
    run was interrupted.
    """

    case: str
    cell: str
    group: str
    repeat: int
    at: float
    values: dict[str, float] = {}
    said: str = ""
    gold: tuple[str, ...] = ()
    tokens_new: int = 0
    tokens_cached: int = 0
    seconds: float = 0.0
    failure: str = ""
    """Why it has no values: the prompt is over the window."""

    @property
    def key(self) -> tuple[str, str]:
        """What one record stands for."""
        return (self.case, self.cell)


class Point(Struct, frozen=True):
    """A mean over cases with its 95 % bootstrap interval."""

    x: float
    mean: float
    low: float
    high: float
    n: int


class Series(Struct, frozen=True):
    """One curve."""

    name: str
    points: tuple[Point, ...]


class Panel(Struct, frozen=True):
    """One chart."""

    title: str
    x: str
    y: str
    series: tuple[Series, ...]


class Probe(Protocol):
    """One experiment."""

    name: str
    about: str
    """One sentence for the report: what is varied, what is measured, and where it is from."""
    defaults: Options
    uses: tuple[str, ...]
    """Options that concern it beside n, seed, repeats and role."""
    by_group: bool
    """Whether the report repeats the charts for each group of cases."""

    def cases(self, options: Options) -> Iterator[Case]:
        """All cases; those of a smaller n come first among those of a larger one in every group."""
        ...

    def measure(
        self, case: Case, cell: Cell, prompt: Prompt, model: Model, cancel: Cancel
    ) -> tuple[str, dict[str, float]]:
        """(What the model said, measured values)."""
        ...

    def panels(self, records: Sequence[Record]) -> tuple[Panel, ...]:
        """The charts, of however many records there are."""
        ...


class Run(Struct, frozen=True):
    """What is needed to run it again."""

    probe: str
    model: str
    options: dict[str, Any]
    data: dict[str, Any] = {}
    """Name and hash of the question file."""
    versions: dict[str, str] = {}
    machine: dict[str, Any] = {}
    started: str = ""
