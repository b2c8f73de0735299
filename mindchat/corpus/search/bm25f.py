"""The scoring formula, once, for the index of record, the impact matrix and indexes in memory.

Owns: BM25F over the fields title and text. Does not own: where postings come from.
Source: Robertson, Zaragoza and Taylor 2004 (field weights are summed before saturation); idf = ln(1 + (N - n + 0.5)/(n
+ 0.5)), with n the number of passages that have the term in any field, so that every impact is positive.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

FIELDS = ("title", "text")


class Params(Struct, frozen=True):
    """The three numbers of the formula (config section [index]); how the defaults were chosen is written in
    MEASUREMENTS.md.
    """

    k1: float = 1.6
    """Saturation of repeated terms, ≥ 0."""
    b: float = 0.75
    """Length normalisation, 0..1."""
    title_boost: float = 3.0
    """Weight of a term in the title against one in the text, ≥ 0."""

    def boost(self, field: str) -> float:
        """The weight of a field."""
        return self.title_boost if field == "title" else 1.0


def field_weight(tf: Floats, lengths: Floats, average: float, boost: float, b: float) -> Floats:
    """Length-normalised term frequency of one field: (postings,) in, (postings,) out."""
    return boost * tf / (1.0 - b + b * lengths / (average or 1.0))


def idf(df: int, passages: int) -> float:
    """Inverse document frequency, > 0."""
    return math.log1p((passages - df + 0.5) / (df + 0.5))


def saturate(weight: Floats, k1: float) -> Floats:
    """w(k1 + 1)/(w + k1); the summed field weights of (passages,) in, (passages,) out. A weight of 0 gives 0, whatever
    k1 is.
    """
    import numpy as np

    return np.divide(weight * (k1 + 1.0), weight + k1, out=np.zeros_like(weight), where=weight > 0)
