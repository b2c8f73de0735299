from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindchat.lab.evals.bootstrap import (
    auroc,
    auroc_difference,
    auroc_interval,
    clustered,
    interval,
    mcnemar,
    paired,
    ratio,
)


def test_interval_holds_the_mean_and_is_deterministic() -> None:
    values = [0.0, 1.0] * 50
    found = interval(values)
    assert found == interval(values)
    assert found.low < 0.5 < found.high
    assert found.mean == 0.5
    assert found.low == pytest.approx(0.5 - 1.96 * 0.05, abs=0.02)


def test_degenerate_samples() -> None:
    assert math.isnan(interval([]).mean)
    one = interval([0.3])
    assert (one.mean, one.low, one.high, one.n) == (0.3, 0.3, 0.3, 1)


def test_pairing_removes_what_both_arms_share() -> None:
    rng = np.random.default_rng(3)
    hard = {f"q{n}": float(rng.random()) for n in range(200)}
    better = {key: value + 0.05 for key, value in hard.items()}
    found = paired(better, hard)
    assert found.mean == pytest.approx(0.05)
    assert found.high - found.low < 1e-9
    assert interval(list(hard.values())).high - interval(list(hard.values())).low > 0.05


def test_only_shared_ids_are_compared() -> None:
    assert paired({"a": 1.0, "b": 0.0}, {"b": 1.0, "c": 5.0}).n == 1


def test_coverage_of_the_interval_is_near_its_level() -> None:
    rng = np.random.default_rng(0)
    hits = 0
    for trial in range(100):
        found = interval(list(rng.normal(0.4, 1.0, size=60)), seed=trial, resamples=400)
        hits += found.low <= 0.4 <= found.high
    assert 85 <= hits <= 100


def test_clusters_widen_the_interval() -> None:
    same = {f"c{n}": [float(n % 2)] * 10 for n in range(20)}
    flat = [value for values in same.values() for value in values]
    wide, narrow = clustered(same), interval(flat)
    assert wide.mean == narrow.mean == 0.5
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)
    assert math.isnan(clustered({}).mean)


def test_ratio_is_of_sums() -> None:
    assert ratio({"a": 1.0, "b": 3.0}, {"a": 2.0, "b": 8.0}).mean == 0.4
    assert math.isnan(ratio({"a": 1.0}, {"a": 0.0}).mean)


def test_mcnemar_exact() -> None:
    a = {str(n): n < 8 for n in range(10)}
    b = {str(n): n >= 8 for n in range(10)}
    found = mcnemar(a, b)
    assert (found.only_a, found.only_b) == (8, 2)
    assert found.p == pytest.approx(2 * (1 + 10 + 45) / 1024)
    assert mcnemar(a, a).p == 1.0


def test_auroc_by_hand() -> None:
    assert auroc([0.9, 0.8, 0.3, 0.1], [True, False, True, False]) == 0.75
    assert auroc([0.5, 0.5], [True, False]) == 0.5
    assert auroc([0.5], [True]) is None


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=30))
def test_auroc_counts_pairs(rows: list[tuple[int, bool]]) -> None:
    positives = [score for score, label in rows if label]
    negatives = [score for score, label in rows if not label]
    found = auroc([score for score, _ in rows], [label for _, label in rows])
    if not positives or not negatives:
        assert found is None
    else:
        wins = sum((p > n) + 0.5 * (p == n) for p in positives for n in negatives)
        assert found == pytest.approx(wins / (len(positives) * len(negatives)))


def test_the_area_has_an_interval_over_clusters() -> None:
    scores = [0.9, 0.8, 0.4, 0.35, 0.3, 0.1]
    labels = [True, True, True, False, False, False]
    alone = auroc_interval(scores, labels, list("abcdef"))
    assert (alone.mean, alone.low, alone.high, alone.n) == (1.0, 1.0, 1.0, 6)
    rng = np.random.default_rng(3)
    labels = [bool(n % 2) for n in range(200)]
    noisy = [float(label) + rng.normal() for label in labels]
    found = auroc_interval(noisy, labels, [str(n) for n in range(200)])
    assert found.mean == pytest.approx(auroc(noisy, labels))
    assert found.low < found.mean < found.high
    assert 0.05 < found.high - found.low < 0.2
    twins = auroc_interval(noisy * 2, labels * 2, [str(n) for n in range(200)] * 2)
    assert twins.mean == pytest.approx(found.mean)
    assert twins.high - twins.low == pytest.approx(found.high - found.low, rel=1e-6)


def test_the_difference_of_two_areas_is_paired() -> None:
    rng = np.random.default_rng(4)
    labels = [bool(n % 2) for n in range(100)]
    signal = [float(label) + rng.normal() for label in labels]
    same = auroc_difference(signal, [value * 2 for value in signal], labels, [str(n) for n in range(100)])
    assert (same.mean, same.low, same.high) == (0.0, 0.0, 0.0)
    chance = auroc_difference(signal, [1.0] * 100, labels, [str(n) for n in range(100)])
    assert chance.low > 0
    assert math.isnan(auroc_interval([1.0, 2.0], [True, True], ["a", "b"]).mean)
