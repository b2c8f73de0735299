"""How often answers like this one are right: a logistic model over what the search and the one call give for free.

Owns: the signals, the shipped fits (trust.json, by model), when no number is given. Does not own: the verdict
(engine.verdict), refusals (refusal).
Source: ours; fitted on first readings of questions that were not refused; right means F1 over a half. A fit whose 95 %
interval of AUROC holds .5 tells nothing, so its model has no number; neither has a model that nobody fitted, an answer
whose words were overruled, or one after reasoning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from mindchat.engine.answering import answer_tokens
from mindchat.evidence import asking
from mindchat.evidence.fitting import fits
from mindchat.values import Citation, Draft, Passage, Trust, VerdictWord

if TYPE_CHECKING:
    from mindchat.engine.turn import Turn

SHIPPED = Path(__file__).with_name("trust.json")
_LONG = 6
"""Tokens of an answer that is no longer short."""
_UNKNOWN = 3.0
"""Nats of entropy of an answer without tokens."""


class Fit(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A logistic model over the signals as they are, and how well it does out of fold."""

    date: str
    n: int
    """Questions."""
    sets: str
    auroc: float
    """Five-fold; low and high are its 95 % interval over questions."""
    low: float
    high: float
    ece: float
    bias: float
    weights: dict[str, float]

    def probability(self, found: Mapping[str, float]) -> float:
        """0 to 1."""
        total = self.bias + sum(weight * found.get(name, 0.0) for name, weight in self.weights.items())
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, total))))

    def trust(self, found: Mapping[str, float]) -> Trust | None:
        """The number with what it is worth; None if the fit tells nothing."""
        return Trust(self.probability(found), self.auroc, self.n) if self.low > 0.5 else None


@cache
def shipped() -> dict[str, Fit]:
    """The fits that come with MindChat, by model."""
    return msgspec.json.decode(SHIPPED.read_bytes(), type=dict[str, Fit])


def signals(
    draft: Draft, answerable: float, fitting: bool, citations: Sequence[Citation], word: VerdictWord
) -> dict[str, float] | None:
    """What a fit weighs, by name; None if the model measured no entropy or log-probability."""
    tokens = answer_tokens(draft)
    entropies = [token.entropy for token in tokens if token.entropy is not None]
    logprobs = [token.logprob for token in tokens if token.logprob is not None]
    if not tokens or len(entropies) < len(tokens) or len(logprobs) < len(tokens):
        return None
    return {
        "max_entropy": max(entropies, default=_UNKNOWN),
        "min_logprob": min(logprobs),
        "sum_logprob": max(-20.0, sum(logprobs)),
        "answerable": answerable,
        "fits": float(fitting),
        "cited": float(bool(citations)),
        "sourced": float(word == "sourced"),
        "long": float(len(tokens) > _LONG),
    }


def trust(
    turn: Turn, draft: Draft, short: str, citations: Sequence[Citation], word: VerdictWord, read: Sequence[Passage]
) -> Trust | None:
    """The number of an answer, or None where none can be given."""
    fit = shipped().get(turn.parts.model.id)
    if fit is None or turn.answerable is None or turn.parts.policy.reasons:
        return None
    fitting = fits(short, turn.hop.question, asking(turn.config.engine.language), read)
    found = signals(draft, turn.answerable.p, fitting, citations, word)
    return fit.trust(found) if found is not None else None
