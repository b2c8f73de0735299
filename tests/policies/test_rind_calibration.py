"""Fitting thresholds to a rate, and keeping the fit."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindchat.config import RindSection
from mindchat.errors import ConfigError
from mindchat.policies.rind_calibration import apply, file_for, fit, load, rate, save
from mindchat.values import WordScore

OPTIONS = RindSection()


def word(entropy: float, attention: float) -> WordScore:
    return WordScore("w", 0, 1, entropy, attention, attention, True, entropy * attention)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(20, 60), st.floats(0, 1))
def test_the_rate_is_met_from_below(seed: int, n: int, target: float) -> None:
    draw = random.Random(seed)
    recorded = [[word(draw.uniform(0, 8), draw.uniform(0, 4)) for _ in range(draw.randint(1, 9))] for _ in range(n)]
    found = fit(recorded, target, model="m", attention="sentence", options=OPTIONS)
    assert found.rate_fixed <= target + 1e-9  # shares are counted in whole sentences
    long = [words for words in recorded if len(words) >= OPTIONS.min_words]
    assert rate(long, apply(OPTIONS, found)) <= target + 1e-9


def test_distinct_sentences_meet_the_rate_exactly() -> None:
    recorded = [[word(0.1, 1.0)] * 4 + [word(1 + n / 10, 1.0)] for n in range(40)]
    for target in (0.0, 0.25, 0.5, 0.9):
        found = fit(recorded, target, model="m", attention="sentence", options=OPTIONS)
        assert (found.rate, found.rate_fixed) == (target, target)
        assert found.alpha == found.beta


def test_too_little_and_impossible_are_refused() -> None:
    with pytest.raises(ConfigError, match="Only 3 sentences"):
        fit([[word(1, 1)]] * 3, 0.3, model="m", attention="raw", options=OPTIONS)
    with pytest.raises(ConfigError, match=r"1\.5"):
        fit([[word(1, 1)]] * 30, 1.5, model="m", attention="raw", options=OPTIONS)


def test_a_fit_is_kept_for_its_model_and_its_attention(tmp_path: Path) -> None:
    found = fit(
        [[word(n, 1.0)] * 5 for n in range(30)], 0.3, model="hub/owner:x", attention="sentence", options=OPTIONS
    )
    path = save(tmp_path / "calibration", found)
    assert path == file_for(tmp_path / "calibration", "hub/owner:x", "sentence")
    assert load(tmp_path / "calibration", "hub/owner:x", "sentence") == found
    assert load(tmp_path / "calibration", "hub/owner:x", "none") is None
    assert load(tmp_path / "calibration", "another", "sentence") is None
    other = fit([[word(n, 2.0)] * 5 for n in range(30)], 0.1, model="hub/owner:x", attention="none", options=OPTIONS)
    save(tmp_path / "calibration", other)
    assert load(tmp_path / "calibration", "hub/owner:x", "none") == other
    assert load(tmp_path / "calibration", "hub/owner:x", "sentence") == found


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    file_for(tmp_path, "m", "sentence").write_text('{"model": 3}')
    with pytest.raises(ConfigError, match=r"m-sentence\.json"):
        load(tmp_path, "m", "sentence")


def test_what_the_user_set_wins() -> None:
    found = fit([[word(n, 1.0)] * 5 for n in range(30)], 0.3, model="m", attention="sentence", options=OPTIONS)
    applied = apply(RindSection(alpha=0.3), found)
    assert (applied.alpha, applied.beta, applied.fixed) == (0.3, found.beta, found.fixed)
