"""Uncertainty of averages over questions: bootstrap intervals, paired differences, McNemar's test, and the area under
the ROC curve.

Owns: these statistics, seeded and deterministic. Does not own: which numbers are compared (report.py).
Source: Efron's percentile bootstrap with the question (or the chain) as unit; McNemar exact (binomial); AUROC as the
Mann-Whitney statistic.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

RESAMPLES = 2000
LEVEL = 0.95
DIGITS = 8
"""Kept decimals: the last bits depend on the machine's order of summation."""


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


@functools.lru_cache(maxsize=2)
def _weights(n: int, seed: int, resamples: int) -> NDArray[np.float64]:
    """How often each of n units is drawn in each resample: (resamples, n), rows sum to n. Kept, because every table
    draws the same ones.
    """
    return np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples).astype(np.float64)


def _ends(means: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return round(float(low), DIGITS), round(float(high), DIGITS)


def interval(values: Sequence[float], *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """Mean over units with interval. Equal seeds and equal n draw the same units, so intervals of arms over the same
    questions are paired.

    n = 0 gives NaN; n = 1 a degenerate interval.
    """
    n = len(values)
    if not n:
        return Interval(math.nan, math.nan, math.nan, 0)
    data = np.asarray(values, dtype=np.float64)
    low, high = _ends(_weights(n, seed, resamples) @ data / n)
    return Interval(round(float(data.mean()), DIGITS), low, high, n)


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
    weights = _weights(len(names), seed, resamples)
    low, high = _ends((weights @ sums) / (weights @ sizes))
    return Interval(round(float(sums.sum() / sizes.sum()), DIGITS), low, high, len(names))


def ratio(
    tops: Mapping[str, float], bottoms: Mapping[str, float], *, seed: int = 0, resamples: int = RESAMPLES
) -> Interval:
    """Sum of tops over sum of bottoms with clusters drawn (for shares such as saved calls over calls); NaN if the
    bottom is 0.
    """
    names = sorted(tops.keys() & bottoms.keys())
    a, b = np.asarray([tops[name] for name in names]), np.asarray([bottoms[name] for name in names])
    if not names or not b.sum():
        return Interval(math.nan, math.nan, math.nan, len(names))
    weights = _weights(len(names), seed, resamples)
    above, below = weights @ a, weights @ b
    low, high = _ends(above[below > 0] / below[below > 0])
    return Interval(round(float(a.sum() / b.sum()), DIGITS), low, high, len(names))


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


def auroc_interval(
    scores: Sequence[float],
    labels: Sequence[bool],
    clusters: Sequence[str],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Interval:
    """AUROC with interval, whole clusters drawn (sentences about one question belong together); n counts scores. NaN if
    a class is missing.
    """
    return auroc_difference(scores, None, labels, clusters, seed=seed, resamples=resamples)


def auroc_difference(
    scores: Sequence[float],
    others: Sequence[float] | None,
    labels: Sequence[bool],
    clusters: Sequence[str],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Interval:
    """AUROC of `scores` minus that of `others` on the same units (None: minus nothing), with the clusters drawn for
    both at once.
    """
    names = sorted(set(clusters))
    at = {name: index for index, name in enumerate(names)}
    wrong = np.asarray(labels, dtype=bool)
    if not wrong.any() or wrong.all():
        return Interval(math.nan, math.nan, math.nan, len(labels))
    wins = _wins(scores, wrong) - (0.0 if others is None else _wins(others, wrong))  # (positives, negatives)
    drawn = _weights(len(names), seed, resamples)[:, [at[name] for name in clusters]]  # (resamples, units)
    above, below = drawn[:, wrong], drawn[:, ~wrong]
    pairs = above.sum(axis=1) * below.sum(axis=1)
    found = np.einsum("rp,pn,rn->r", above, wins, below, optimize=True)
    low, high = _ends(found[pairs > 0] / pairs[pairs > 0])
    return Interval(round(float(wins.mean()), DIGITS), low, high, len(labels))


def _wins(scores: Sequence[float], positive: NDArray[np.bool_]) -> NDArray[np.float64]:
    """For each pair of a positive and a negative unit: 1.0 if the positive scores higher, 0.5 for a tie, else 0.0."""
    values = np.asarray(scores, dtype=np.float64)
    gaps = values[positive][:, None] - values[~positive][None, :]
    return np.asarray((np.sign(gaps) + 1) / 2, dtype=np.float64)
