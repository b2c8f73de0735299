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

WITH_MODEL = "chain with the model"
FEW = 5
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


@cache
def measured() -> Measured:
    """What was measured."""
    return msgspec.json.decode(_FILE.read_bytes(), type=Measured)


def confidence(relation: str, by_model: bool = False) -> float:
    """0..1. A relation with fewer than FEW measured readings counts as the worst of those with more; what a model read
    counts as the answers with such a slot did.
    """
    if by_model:
        return measured().plans[WITH_MODEL].share
    counted = {name: count.share for name, count in measured().relations.items() if count.read >= FEW}
    return counted.get(relation, min(counted.values()))


def trust(how: str) -> Trust | None:
    """How often answers that were followed to their end are right; None where it was not measured."""
    count = measured().plans.get(how)
    return Trust(count.share, None, count.read) if count is not None and count.read else None
