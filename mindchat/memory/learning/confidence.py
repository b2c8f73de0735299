"""How sure a fact is: Eq 4 with its aggregates, and the calibrated probability that it is true.

Owns: the signals of a claim, the calibration file, the rule without one. Does not own: p_true (verification.py),
fitting (calibrate.py).
Source: MIND Eq 4, conf(e) = max over tokens t of e of gamma / (1 + H(t)) + delta · maxAttn(t), gamma = 1.0, delta =
0.2. The maximum saturates (one sure sub-token of an unsure name gives nearly gamma), hence the minimum beside it.
"""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

import msgspec
from msgspec import Struct

from mindchat.errors import MemoryStoreError
from mindchat.memory.learning.grounding import Grounded
from mindchat.text.foreign_json import decode_json
from mindchat.values import Draft, Span

GAMMA, DELTA = 1.0, 0.2
ACTIVE_P, ACTIVE_CONF = 0.8, 0.5
"""Without calibration: p_true and conf_min from which a fact is served."""
SKIP_P, SKIP_MARGIN = 0.95, 0.4
"""Without calibration: p_true and margin from which it may replace a search."""
MARGIN = 0.2
"""By how much the claim must beat its best distractor."""
FEATURES = ("logit_p_true", "margin", "conf_min", "conf_max", "h_mean", "exact", "subject_near", "cued")


class Signals(Struct, frozen=True):
    """What was measured about one claim; None: the model measures it not."""

    conf_max: float | None = None
    conf_min: float | None = None
    h_mean: float | None = None
    h_max: float | None = None
    attn_max: float | None = None
    p_true: float | None = None
    """Probability of yes against no for the claim, from verification.py."""
    margin: float | None = None
    """p_true minus the best distractor's."""


class Calibration(Struct, frozen=True):
    """A fitted logistic regression: P(true) = 1 / (1 + exp(-(bias + weights · features)))."""

    model: str
    weights: dict[str, float]
    bias: float
    active: float
    """Confidence from which a fact is served."""
    examples: int
    ece: float
    brier: float
    fitted_at: str = ""
    curve: tuple[tuple[float, float, int], ...] = ()
    """(mean confidence, share true, count) of each bin."""


def answer_signals(answer: Draft, place: Span) -> Signals:
    """Eq 4 over the tokens of the object in the answer; all None if the model measured no entropy there."""
    spans = answer.offsets()
    inside = [
        i
        for i, span in enumerate(spans)
        if span.start < place.end and place.start < span.end and answer.tokens[i].text.strip()
    ]
    entropies = [entropy for i in inside if (entropy := answer.tokens[i].entropy) is not None]
    if not entropies or len(entropies) < len(inside):
        return Signals()
    attention = [answer.received[i] for i in inside] if answer.received is not None else [0.0] * len(inside)
    values = [GAMMA / (1 + h) + DELTA * a for h, a in zip(entropies, attention, strict=True)]
    seen = max(attention) if answer.received is not None else None
    return Signals(max(values), min(values), sum(entropies) / len(entropies), max(entropies), seen)


def features(claim: Grounded, signals: Signals) -> dict[str, float]:
    """The inputs of the calibration; a missing signal is its neutral value."""
    p = min(max(0.5 if signals.p_true is None else signals.p_true, 1e-4), 1 - 1e-4)
    return {
        "logit_p_true": math.log(p / (1 - p)),
        "margin": signals.margin or 0.0,
        "conf_min": 0.5 if signals.conf_min is None else signals.conf_min,
        "conf_max": 0.5 if signals.conf_max is None else signals.conf_max,
        "h_mean": 0.0 if signals.h_mean is None else signals.h_mean,
        "exact": float(claim.grounding == 2),
        "subject_near": float(claim.subject_near),
        "cued": float(claim.cued),
    }


class Judged(Struct, frozen=True):
    """The verdict over a claim."""

    confidence: float
    active: bool
    calibrated: bool


def judge(claim: Grounded, signals: Signals, calibration: Calibration | None) -> Judged:
    """Confidence, and whether the fact may be served (otherwise it stays a candidate).

    Without calibration the confidence shown is the weaker of p_true and conf_min, and serving needs exact grounding,
    p_true, conf_min and a word of the relation in the sentence.
    """
    if calibration is not None and signals.p_true is not None:
        z = calibration.bias + sum(
            calibration.weights.get(name, 0.0) * value for name, value in features(claim, signals).items()
        )
        confidence = 1 / (1 + math.exp(-max(-30.0, min(30.0, z))))
        return Judged(confidence, claim.grounding >= 1 and confidence >= calibration.active, True)
    if signals.p_true is None or signals.conf_min is None:
        known = signals.conf_min if signals.p_true is None else signals.p_true
        return Judged(min(0.5, 0.5 if known is None else known), False, False)
    needed = ACTIVE_P if claim.english else 0.9
    active = (
        claim.grounding == 2
        and claim.cued
        and signals.p_true >= needed
        and signals.conf_min >= ACTIVE_CONF
        and (signals.margin or 0.0) >= MARGIN
    )
    return Judged(max(0.0, min(1.0, signals.p_true, signals.conf_min)), active, False)


def may_skip(confidence: float, calibrated: bool, grounding: int, signals: Signals, threshold: float) -> bool:
    """Whether a served fact is sure enough to replace a search."""
    if grounding < 2:
        return False
    if calibrated:
        return confidence >= threshold
    strong = signals.p_true is not None and signals.p_true >= SKIP_P and (signals.margin or 0.0) >= SKIP_MARGIN
    return strong and signals.conf_min is not None and signals.conf_min >= ACTIVE_CONF


def calibration_file(folder: Path, model: str) -> Path:
    """Where a model's calibration stands beside memory.db. Names that differ only in signs a file name cannot have keep
    apart by a hash.
    """
    safe = "".join(c if c.isalnum() or c in ".-" else "_" for c in model)[-80:] or "model"
    apart = "" if safe == model else f"-{hashlib.sha256(model.encode()).hexdigest()[:8]}"
    return folder / "calibration" / f"memory-{safe}{apart}.json"


def load_calibration(folder: Path, model: str) -> Calibration | None:
    """The model's calibration, or None. Raises MemoryStoreError if the file is damaged."""
    file = calibration_file(folder, model)
    return read_calibration(file) if file.exists() else None


def read_calibration(file: Path) -> Calibration:
    """A file that `mindchat calibrate memory` wrote. Raises MemoryStoreError if it is missing or damaged."""
    try:
        return decode_json(file.read_bytes(), type=Calibration)
    except (OSError, msgspec.DecodeError) as error:
        raise MemoryStoreError(
            f"{file} cannot be read: {error}.", "Delete it, or run mindchat calibrate memory again."
        ) from error
