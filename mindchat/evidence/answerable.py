"""How likely it is that the found passages hold an answer, before any model is asked.

Owns: the fitted weights (answerable.json), the judgement and the cut below which a question is refused. Does not own:
the features (features), the fit (evals.answerability), what the user is told (engine).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from mindchat.evidence.asking import Asking
from mindchat.evidence.features import FEATURES, features
from mindchat.values import Answerable, Evidence, Passage, WordCounts

SHIPPED = Path(__file__).with_name("answerable.json")


class Fit(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A logistic model over the features, on what it was fitted, and how well it does there."""

    date: str
    n: int
    """Questions."""
    sets: str
    """Where they are from, in words."""
    auroc: float
    """Five-fold, answerable against not, all sets together."""
    cut: float
    """Below this probability a question counts as not answerable. Set on even rows so that at most a tenth of the
    answerable fall below.
    """
    cut_plain: float
    """The same where passages are not titled by what they speak of, or the question has no name: there less can be
    told.
    """
    bias: float
    weights: dict[str, float]
    """By feature, for values as they are (not standardised)."""

    def probability(self, found: Mapping[str, float]) -> float:
        """0 to 1. A feature of the fit that is not among the found ones counts as 0."""
        total = self.bias + sum(weight * found.get(name, 0.0) for name, weight in self.weights.items())
        return 1.0 / (1.0 + math.exp(-max(-500.0, min(500.0, total))))


@cache
def shipped() -> Fit:
    """The fit that comes with MindChat."""
    return msgspec.json.decode(SHIPPED.read_bytes(), type=Fit)


def judge(
    question: str,
    passages: Sequence[Passage],
    chosen: Sequence[Evidence],
    counts: WordCounts | None,
    ask: Asking,
    fit: Fit | None = None,
) -> Answerable:
    """The probability that the passages answer the question, and what speaks for and against it most."""
    fit = fit or shipped()
    found = features(question, passages, chosen, counts, ask)
    p = fit.probability(found)
    shares = sorted(
        ((fit.weights.get(name, 0.0) * value, name) for name, value in found.items()), key=lambda item: -abs(item[0])
    )
    plain = not found["untitled"] and not found["titles"]
    return Answerable(
        p,
        p >= (fit.cut_plain if plain else fit.cut),
        tuple((name, found[name]) for _, name in shares if name in FEATURES),
    )
