"""How many copies an order needs: Theorem 1 counted out.

Owns: descents, the copies that one order needs, and the share of all orders that some number of copies contains. Pure
arithmetic.
Source: CoRe Theorem 1 (k copies contain every order of k documents). The sharper count is ours: reading a needed order
off repeated copies, a new copy is begun exactly when the next needed document stands earlier than the last one, so an
order needs 1 + its descents. The share is the sum of the Eulerian numbers A(k, d), d < copies, over k!. All of it says
what copies contain, not that a model uses it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise


def descents(positions: Sequence[int]) -> int:
    """How often the next needed document stands earlier: `positions` are their places in a copy, in the order in which
    they are needed.
    """
    return sum(1 for here, there in pairwise(positions) if there < here)


def copies_needed(positions: Sequence[int]) -> int:
    """Copies in total that contain this order as a subsequence; 0 if nothing is needed."""
    return 1 + descents(positions) if positions else 0


def orders_covered(documents: int, copies: int) -> tuple[int, int]:
    """(orders of so many documents that so many copies in total contain, all orders)."""
    row = [1]  # Eulerian numbers of n = 1
    for n in range(2, documents + 1):
        held = [*row, 0]
        row = [(d + 1) * held[d] + ((n - d) * held[d - 1] if d else 0) for d in range(n)]
    return sum(row[: max(copies, 0)]), math.factorial(documents)
