"""Uncertainty of averages over questions: bootstrap intervals, paired differences, McNemar's test, and the area under the ROC curve.

Owns: these statistics, seeded and deterministic. Does not own: which numbers are compared (report.py).
Source: Efron's percentile bootstrap with the question (or the chain) as unit; McNemar exact (binomial); AUROC as the Mann-Whitney statistic.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

RESAMPLES = 2000
LEVEL = 0.95
_BATCH = 250


class Interval(Struct, frozen=True):
    """A mean with its 95 % percentile bootstrap interval."""

    mean: float
    low: float
    high: float
    n: int


class McNemar(Struct, frozen=True):
    """Discordant pairs and the exact two-sided p."""

    only_a: int
    """Right in the first, wrong in the second."""
    only_b: int
    p: float


def interval(values: Sequence[float], *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """Mean over units with interval. Equal seeds and equal n draw the same units, so intervals of arms over the same questions are paired.

    n = 0 gives NaN; n = 1 a degenerate interval.
    """
    n = len(values)
    if not n:
        return Interval(math.nan, math.nan, math.nan, 0)
    data = np.asarray(values, dtype=np.float64)
    draws = np.random.default_rng(seed)
    sizes = [min(_BATCH, resamples - done) for done in range(0, resamples, _BATCH)]
    means = np.concatenate([data[draws.integers(0, n, size=(size, n))].mean(axis=1) for size in sizes])  # (resamples,)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(data.mean()), float(low), float(high), n)


def paired(a: Mapping[str, float], b: Mapping[str, float], *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """Mean of a - b over the ids that both have, with interval; ids are drawn, so both sides of a pair stay together."""
    shared = sorted(a.keys() & b.keys())
    return interval([a[key] - b[key] for key in shared], seed=seed, resamples=resamples)


def clustered(values: Mapping[str, Sequence[float]], *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """Mean over all values with whole clusters (chains) drawn; n counts clusters."""
    names = sorted(name for name, inside in values.items() if inside)
    if not names:
        return Interval(math.nan, math.nan, math.nan, 0)
    sums = np.asarray([sum(values[name]) for name in names], dtype=np.float64)
    sizes = np.asarray([len(values[name]) for name in names], dtype=np.float64)
    picked = np.random.default_rng(seed).integers(0, len(names), size=(resamples, len(names)))
    means = sums[picked].sum(axis=1) / sizes[picked].sum(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(sums.sum() / sizes.sum()), float(low), float(high), len(names))


def ratio(tops: Mapping[str, float], bottoms: Mapping[str, float], *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """Sum of tops over sum of bottoms with clusters drawn (for shares such as saved calls over calls); NaN if the bottom is 0."""
    names = sorted(tops.keys() & bottoms.keys())
    a, b = np.asarray([tops[name] for name in names]), np.asarray([bottoms[name] for name in names])
    if not names or not b.sum():
        return Interval(math.nan, math.nan, math.nan, len(names))
    picked = np.random.default_rng(seed).integers(0, len(names), size=(resamples, len(names)))
    below = b[picked].sum(axis=1)
    shares = a[picked].sum(axis=1)[below > 0] / below[below > 0]
    low, high = np.quantile(shares, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(a.sum() / b.sum()), float(low), float(high), len(names))


def mcnemar(a: Mapping[str, bool], b: Mapping[str, bool]) -> McNemar:
    """Exact McNemar test over the ids that both have."""
    shared = a.keys() & b.keys()
    only_a = sum(1 for key in shared if a[key] and not b[key])
    only_b = sum(1 for key in shared if b[key] and not a[key])
    n, k = only_a + only_b, min(only_a, only_b)
    p = min(1.0, 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2**n) if n else 1.0
    return McNemar(only_a, only_b, p)


def auroc(scores: Sequence[float], labels: Sequence[bool]) -> float | None:
    """Probability that a positive scores above a negative, ties as one half; None if one class is missing."""
    positives, negatives = sum(labels), len(labels) - sum(labels)
    if not positives or not negatives:
        return None
    values = np.asarray(scores, dtype=np.float64)
    _, inverse, sizes = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(sizes)
    ranks = (ends - (sizes - 1) / 2)[inverse]  # mean rank of each value, from 1
    total = float(ranks[np.asarray(labels, dtype=bool)].sum())
    return (total - positives * (positives + 1) / 2) / (positives * negatives)
