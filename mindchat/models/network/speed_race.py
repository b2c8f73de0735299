"""Which of two ways is quicker, on a machine that may be busy.

Owns: taking turns, when the outcome can be relied on. Does not own: what is compared, what is made of it. The ways run
in turn, so that a busy moment falls on both. The quickest runs say what the machine can do, the medians what it did
just now; where the two disagree about the winner, more rounds are run, and if they still do, the outcome holds for now
but is not to be kept.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from msgspec import Struct

ROUNDS, MOST = 5, 15
"""Rounds at first, and at most."""
HOPELESS = 5.0
"""The race ends after two rounds if even the rival's quickest run takes this many times as long as the base's slowest.
"""


class Raced(Struct, frozen=True):
    """The outcome."""

    ratio: float
    """Seconds of the base over seconds of the rival, by their quickest runs."""
    won: bool
    """Whether the rival is quicker by what was asked."""
    sure: bool
    """Whether medians and quickest runs name the same winner."""


def race(base: Callable[[], object], rival: Callable[[], object], worth: float) -> Raced:
    """Run both in turn; the rival wins if it is `worth` times as fast."""
    spent: tuple[list[float], list[float]] = ([], [])
    while True:
        for times, way in zip(spent, (base, rival), strict=True):
            started = time.perf_counter()
            way()
            times.append(time.perf_counter() - started)
        rounds = len(spent[0])
        quickest, middle = (pick(spent[0]) / max(pick(spent[1]), 1e-9) for pick in (min, statistics.median))
        if rounds > 1 and min(spent[1]) > HOPELESS * max(spent[0]):
            return Raced(quickest, won=False, sure=True)
        sure = (quickest >= worth) == (middle >= worth)
        if rounds >= MOST or (sure and rounds >= ROUNDS):
            return Raced(quickest, won=quickest >= worth, sure=sure)
