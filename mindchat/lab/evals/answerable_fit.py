"""Fitting answerability, and the table that says how well it tells what documents do not say.

Owns: weights of the cases, the logistic fit, five folds over groups, leave-one-set-out, the cuts, the report, writing
answerable.json.
Does not own: the cases (answerable_cases), the model's form (mindchat.evidence.answerable).
    python -m mindchat.lab.evals.answerable_fit DATA_FOLDER [answerable.json]
Every (set, kind) weighs as the root of its size, and both labels together alike, so that no large set decides.
"""

from __future__ import annotations

import math
import sys
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from mindchat.evidence.answerable import SHIPPED, Fit
from mindchat.evidence.features import FEATURES
from mindchat.lab.evals.answerable_cases import Case, cases
from mindchat.lab.evals.bootstrap import auroc

Floats = NDArray[np.float64]
FOLDS = 5
RIDGE = 4.0
REFUSED = 0.1
"""Most of the answerable that the cuts may refuse, on even rows."""
MAIN = ("2wiki", "hotpotqa", "demo", "single")
"""Sets that the cut for titled passages is set on."""
SETS = (
    "2WikiMultihopQA-open, HotpotQA, SciFact, the demo, single hops and definitions, with and without documents, titles"
    " and capitals"
)


class Row(Struct, frozen=True):
    """One set and kind."""

    set: str
    kind: str
    n: int
    """Odd rows, or all of a hand-written kind."""
    refused: float


class Outcome(Struct, frozen=True):
    """A fit and what it does, out of fold."""

    fit: Fit
    by_set: dict[str, float]
    """AUROC within each set that has both labels."""
    left_out: dict[str, float]
    """AUROC of each set by a fit on all others."""
    rows: tuple[Row, ...]
    ece: float
    """Expected calibration error over ten bins."""

    def render(self) -> str:
        """The table, for people."""
        head = (
            f"n {self.fit.n}  AUROC {self.fit.auroc:.3f}  ECE {self.ece:.3f}  cuts {self.fit.cut:.3f},"
            f" {self.fit.cut_plain:.3f}"
        )
        sets = [
            f"  {name:<18} AUROC {area:.3f}  left out {self.left_out.get(name, math.nan):.3f}"
            for name, area in self.by_set.items()
        ]
        rows = [f"  {row.set:<18} {row.kind:<10} n {row.n:4d}  refused {row.refused:.2f}" for row in self.rows]
        return "\n".join([head, *sets, *rows])


def fit(found: Sequence[Case], date: str) -> Outcome:
    """Fit on all cases that may be fitted; everything reported is out of fold, on odd rows where it depends on the
    cuts.
    """
    x = np.array([[case.features[name] for name in FEATURES] for case in found])
    y = np.array([float(case.answerable) for case in found])
    weight, usable = _weights(found), np.array([case.fitted for case in found])
    fold = np.array([zlib.crc32(case.group.encode()) % FOLDS for case in found])
    p = np.empty(len(y))
    for held in range(FOLDS):
        train = usable & (fold != held)
        p[fold == held] = _sigmoid(x[fold == held], *regress(x[train], y[train], weight[train]))
    plain = (x[:, [*FEATURES].index("untitled")] == 0) & (x[:, [*FEATURES].index("titles")] == 0)
    even = np.array([case.row % 2 == 0 for case in found]) & (y == 1) & usable
    main = np.array([case.set in MAIN for case in found])
    cut, cut_plain = (
        float(np.quantile(p[even & main & ~plain], REFUSED - 0.01)),
        float(np.quantile(p[even & plain], REFUSED)),
    )
    weights, bias = regress(x[usable], y[usable], weight[usable])
    area = auroc(p[usable].tolist(), (y[usable] == 1).tolist()) or math.nan
    shipped = Fit(
        date=date,
        n=int(usable.sum()),
        sets=SETS,
        auroc=round(area, 3),
        cut=round(cut, 3),
        cut_plain=round(cut_plain, 3),
        bias=round(bias, 4),
        weights={name: round(float(value), 4) for name, value in zip(FEATURES, weights, strict=True)},
    )
    refused = p < np.where(plain, cut_plain, cut)
    return Outcome(
        shipped,
        _areas(found, p),
        _left_out(found, x, y, weight, usable),
        _rows(found, refused),
        _ece(p[usable], y[usable]),
    )


def regress(x: Floats, y: Floats, weight: Floats) -> tuple[Floats, float]:
    """Weighted ridge logistic regression by Newton's method on standardised features; (weights, bias) in the features'
    own units.
    """
    mean, scale = x.mean(axis=0), x.std(axis=0)
    scale[scale < 1e-9] = 1.0
    z = np.hstack([(x - mean) / scale, np.ones((len(x), 1))])
    penalty = np.diag([RIDGE] * x.shape[1] + [1e-6])
    beta = np.zeros(z.shape[1])
    for _ in range(60):
        p = 1 / (1 + np.exp(-np.clip(z @ beta, -30, 30)))
        step = np.linalg.solve(
            z.T @ (z * (weight * p * (1 - p))[:, None]) + penalty, z.T @ (weight * (y - p)) - penalty @ beta
        )
        beta += step
        if np.abs(step).max() < 1e-8:
            break
    weights = beta[:-1] / scale
    return weights, float(beta[-1] - weights @ mean)


def _sigmoid(x: Floats, weights: Floats, bias: float) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(x @ weights + bias, -30, 30))))


def _weights(found: Sequence[Case]) -> Floats:
    sizes = Counter((case.set, case.kind) for case in found)
    weight = np.array([1 / math.sqrt(sizes[case.set, case.kind]) for case in found])
    label = np.array([case.answerable for case in found])
    for side in (label, ~label):
        weight[side] *= len(found) / 2 / weight[side].sum()
    return weight


def _areas(found: Sequence[Case], p: Floats) -> dict[str, float]:
    areas = {}
    for name in dict.fromkeys(case.set for case in found):
        among = [n for n, case in enumerate(found) if case.set == name and case.fitted]
        area = auroc([float(p[n]) for n in among], [found[n].answerable for n in among])
        if area is not None:
            areas[name] = area
    return areas


def _left_out(
    found: Sequence[Case], x: Floats, y: Floats, weight: Floats, usable: NDArray[np.bool_]
) -> dict[str, float]:
    """Each set by a fit on all others; its variants (lower, untitled) are left out with it."""
    areas = {}
    family = np.array([case.set.rpartition(" ")[2] for case in found])
    for name in dict.fromkeys(family.tolist()):
        train = usable & (family != name)
        if not train.any():  # there is no other set
            continue
        held = _sigmoid(x, *regress(x[train], y[train], weight[train]))
        areas.update({one: area for one, area in _areas(found, held).items() if one.rpartition(" ")[2] == name})
    return areas


def _rows(found: Sequence[Case], refused: NDArray[np.bool_]) -> tuple[Row, ...]:
    rows = []
    for name, kind in dict.fromkeys((case.set, case.kind) for case in found):
        among = [
            n
            for n, case in enumerate(found)
            if (case.set, case.kind) == (name, kind) and (case.row % 2 == 1 or not case.fitted)
        ]
        rows.append(Row(name, kind, len(among), float(np.mean(refused[among]))))
    return tuple(rows)


def _ece(p: Floats, y: Floats) -> float:
    bins = np.minimum((p * 10).astype(int), 9)
    return float(
        sum(abs(p[bins == b].mean() - y[bins == b].mean()) * np.mean(bins == b) for b in range(10) if (bins == b).any())
    )


def write(outcome: Outcome, path: Path = SHIPPED) -> None:
    """Put the fit where it is read from."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(outcome.fit), indent=2) + b"\n")


if __name__ == "__main__":
    result = fit(list(cases(Path(sys.argv[1]))), time.strftime("%Y-%m-%d"))
    sys.stdout.write(result.render() + "\n")
    if len(sys.argv) > 2:
        write(result, Path(sys.argv[2]))
