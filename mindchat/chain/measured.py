"""How often a reading by patterns is right, as measured.

Owns: confidence of a relation and of a plan. Does not own: the measurement (lab.evals.reading_counts), which wrote
measured.json from development rows that no pattern was written for.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from mindchat.values import Trust

_FILE = Path(__file__).with_name("measured.json")


class Count(Struct, frozen=True):
    """Of some readings."""

    right: int
    read: int

    @property
    def share(self) -> float:
        """Laplace's estimate, so that three of three is not certainty."""
        return (self.right + 1) / (self.read + 2)


class Measured(Struct, frozen=True, kw_only=True):
    """The file."""

    date: str
    sets: str
    relations: dict[str, Count]
    plans: dict[str, Count]
    """By the answer's way: chain, comparison, sameness."""
    auroc: dict[str, float] = {}


@cache
def measured() -> Measured:
    """What was measured."""
    return msgspec.json.decode(_FILE.read_bytes(), type=Measured)


def confidence(relation: str, by_model: bool = False) -> float:
    """0..1; of a relation that the rows do not have, that of all together, less its own doubt; of the model's readings
    half.
    """
    if by_model:
        return 0.5
    known = measured().relations
    if relation in known and known[relation].read >= 5:
        return known[relation].share
    read = sum(count.read for count in known.values())
    return Count(sum(count.right for count in known.values()), read).share - 0.1 if read else 0.5


def trust(how: str) -> Trust | None:
    """How often answers that were followed to their end are right; None where it was not measured."""
    count = measured().plans.get(how)
    return Trust(count.share, measured().auroc.get(how, 0.0), count.read) if count is not None and count.read else None
