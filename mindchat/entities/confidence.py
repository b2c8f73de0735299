"""MIND Eq 4: how sure the model was when it wrote a name.

Owns: conf(e) = max over t in the span of γ / (1 + H(t)) + δ · a(t), and the same with mean, min and first. Does not
own: thresholds. a is the raw attention received, in [0, 1] (no sentence normalisation: only then is conf(e) in (0, γ +
δ]). The maximum saturates: the last piece of a known name is nearly certain, whatever the model knew before it; hence
the other aggregates.
"""

from __future__ import annotations

from mindchat.values import Draft, Span

AGGREGATES = ("max", "mean", "min", "first")


def token_confidence(entropy: float, attention: float, gamma: float, delta: float) -> float:
    """γ / (1 + H) + δ · a for one token; H in nats ≥ 0, a in [0, 1]; the result is in (0, γ + δ]."""
    return gamma / (1.0 + entropy) + delta * attention


def entity_confidence(draft: Draft, span: Span, gamma: float, delta: float) -> dict[str, float]:
    """Every aggregate of Eq 4 over the token span; {} if the span is empty or entropies were not measured. Without
    attention a = 0.
    """
    values = []
    for index in range(span.start, span.end):
        token = draft.tokens[index]
        if token.entropy is None:
            return {}
        attention = draft.received[index] if draft.received is not None else 0.0
        values.append(token_confidence(token.entropy, attention, gamma, delta))
    if not values:
        return {}
    return {"max": max(values), "mean": sum(values) / len(values), "min": min(values), "first": values[0]}


def token_span(draft: Draft, start: int, end: int) -> Span | None:
    """The tokens that write characters [start, end) of the draft; None if there are none."""
    touching = [
        i for i, span in enumerate(draft.offsets()) if span.end > start and span.start < end and span.end > span.start
    ]
    return Span(touching[0], touching[-1] + 1) if touching else None
