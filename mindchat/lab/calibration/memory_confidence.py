"""Fitting the confidence of a model's facts on questions whose answers are known, and the file that the gate reads.

Owns: logistic regression, the threshold, the reliability curve. Does not own: the claims (memory_claims.py), the
features and the file's form (confidence.py), the command line. Reported numbers are out of fold (five folds over
questions, not claims); the shipped weights are fitted on all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mindchat.errors import UsageError
from mindchat.lab.calibration.memory_claims import Labelled, collect, read_triples
from mindchat.memory.learning.confidence import FEATURES, Calibration, calibration_file
from mindchat.memory.verbs.results import Result
from mindchat.paths import private
from mindchat.ports import Ask
from mindchat.storage.atomic import write_atomic
from mindchat.storage.clock import now

_FOLDS, _RIDGE, _BINS = 5, 10.0, 10
"""The penalty weighs like a few claims: with the tens of claims that a slow machine collects, eight features would be
fitted to single wrong ones.
"""
_LEAST = 30


class Calibrated(Result, frozen=True):
    """The outcome of a calibration."""

    path: str
    calibration: Calibration
    asked: int
    right: float
    """Share of the claims that were true."""
    served: float
    """Share of the claims at or above the threshold (out of fold)."""
    wrong: float
    """Share of wrong ones among those (out of fold)."""
    refused: dict[str, int]
    """Why the other answers would not have been stored."""

    def render(self, command: str = "/memory") -> str:
        """Threshold, errors and the reliability curve."""
        c = self.calibration
        lines = [
            f"{c.model}: {c.examples} claims from {self.asked} questions, {self.right:.0%} true",
            "not stored: "
            + (", ".join(f"{name.replace('_', ' ')} {n}" for name, n in sorted(self.refused.items())) or "none"),
            f"served from confidence {c.active:.2f}: {self.served:.0%} of the claims, {self.wrong:.1%} of those wrong",
            f"expected calibration error {c.ece:.3f} · Brier {c.brier:.3f} (out of fold)",
            "confidence   true   claims",
            *(f"      {sure:.2f}   {true:.2f}   {count:>6}" for sure, true, count in c.curve),
            f"written: {self.path}",
        ]
        return "\n".join(lines)


def fit(claims: Sequence[Labelled], model: str, *, target: float = 0.05) -> tuple[Calibration, float, float]:
    """(calibration, share served, share wrong among served). `target`: accepted share of wrong facts. Raises UsageError
    under 30 claims.
    """
    import numpy as np

    if len(claims) < _LEAST:
        raise UsageError(
            f"Only {len(claims)} usable claims; a calibration needs {_LEAST}.", "Give a larger file or a higher --n."
        )
    x = np.array([[claim.features[name] for name in FEATURES] for claim in claims])
    y = np.array([float(claim.right) for claim in claims])
    questions = sorted({claim.question for claim in claims})
    fold_of = {question: i % _FOLDS for i, question in enumerate(questions)}
    folds = np.array([fold_of[claim.question] for claim in claims])
    out = np.empty(len(y))
    for fold in range(_FOLDS):
        held = folds == fold
        if held.any():
            weights, bias = _regress(x[~held], y[~held])
            out[held] = 1 / (1 + np.exp(-np.clip(x[held] @ weights + bias, -30, 30)))
    weights, bias = _regress(x, y)
    curve, ece = reliability(out.tolist(), y.tolist())
    active = threshold(out.tolist(), y.tolist(), target)
    served = out >= active
    calibration = Calibration(
        model,
        dict(zip(FEATURES, map(float, weights), strict=True)),
        float(bias),
        active,
        len(claims),
        ece,
        float(np.mean((out - y) ** 2)),
        now(),
        tuple(curve),
    )
    return calibration, float(served.mean()), float(1 - y[served].mean()) if served.any() else 0.0


def _regress(x: Any, y: Any) -> tuple[Any, float]:
    """Ridge logistic regression by Newton's method on standardised features; (weights, bias) in the features' own
    units.
    """
    import numpy as np

    mean, scale = x.mean(axis=0), x.std(axis=0)
    scale[scale < 1e-9] = 1.0
    z = np.hstack([(x - mean) / scale, np.ones((len(x), 1))])
    penalty = np.diag([_RIDGE] * x.shape[1] + [1e-3])
    beta = np.zeros(z.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(z @ beta, -30, 30)))
        step = np.linalg.solve(z.T @ (z * (p * (1 - p))[:, None]) + penalty, z.T @ (y - p) - penalty @ beta)
        beta += step
        if np.abs(step).max() < 1e-8:
            break
    weights = beta[:-1] / scale
    return weights, float(beta[-1] - weights @ mean)


def reliability(
    confidences: Sequence[float], truths: Sequence[float], bins: int = _BINS
) -> tuple[list[tuple[float, float, int]], float]:
    """((mean confidence, share true, count) of each bin that is not empty, expected calibration error)."""
    members: dict[int, list[int]] = {}
    for i, confidence in enumerate(confidences):
        members.setdefault(min(bins - 1, int(confidence * bins)), []).append(i)
    curve = []
    for key in sorted(members):
        inside = members[key]
        curve.append(
            (
                sum(confidences[i] for i in inside) / len(inside),
                sum(truths[i] for i in inside) / len(inside),
                len(inside),
            )
        )
    return curve, sum(abs(sure - true) * count for sure, true, count in curve) / max(1, len(confidences))


def threshold(confidences: Sequence[float], truths: Sequence[float], target: float) -> float:
    """The lowest confidence from which at most `target` of the claims are wrong; 0.95 if no such place exists."""
    ranked = sorted(zip(confidences, truths, strict=True), reverse=True)
    best, right = 0.95, 0.0
    for count, (confidence, true) in enumerate(ranked, 1):
        right += true
        tied = count < len(ranked) and ranked[count][0] == confidence  # who serves one serves all of that confidence
        if not tied and count >= 10 and 1 - right / count <= target:
            best = confidence
    return max(best, 0.5)


def calibrate(
    path: Path,
    ask: Ask,
    folder: Path,
    model: str,
    *,
    limit: int = 200,
    seed: int = 0,
    target: float = 0.05,
    resume: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Calibrated:
    """`mindchat calibrate memory`: two model calls a triple; writes calibration/memory-MODEL.json under `folder` (where
    memory.db is).

    What was asked stands beside it as memory-MODEL.claims.jsonl; `resume` takes that up (with a larger limit too),
    otherwise it starts anew.
    """
    triples, file = read_triples(path), calibration_file(folder, model)
    private(file.parent)
    asked = file.with_suffix(".claims.jsonl")
    if not resume:
        asked.unlink(missing_ok=True)
    claims, refused = collect(triples, ask, limit=limit, seed=seed, progress=progress, keep=asked)
    calibration, served, wrong = fit(claims, model, target=target)
    write_atomic(file, msgspec.json.format(msgspec.json.encode(calibration), indent=2))
    right = sum(claim.right for claim in claims) / len(claims)
    return Calibrated(str(file), calibration, min(limit, len(triples)), right, served, wrong, refused)
