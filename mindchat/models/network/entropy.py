"""Signals from logits: log-probability and entropy, in one pass over the vocabulary.

Owns: the tensor arithmetic of MIND Eq 1. Does not own: words and attention received (mindchat.word_signals), when it is
asked for.
Source: MIND §3.2 Eq 1, H = -Σ p log p over the vocabulary, natural log, on raw logits in fp32.
"""

from __future__ import annotations

import torch
from torch import Tensor

_FLOOR = -1e4
"""Stands in for log 0: exp of it is 0 in fp32, and 0 · -1e4 is 0 where 0 · -∞ would be no number."""


def log_probabilities(logits: Tensor) -> Tensor:
    """Natural log-probabilities in fp32 of raw logits (..., V); finite everywhere."""
    return torch.log_softmax(logits.float(), dim=-1).clamp_(min=_FLOOR)


def entropy_of(log_probs: Tensor) -> Tensor:
    """Entropy in nats, ≥ 0, of log-probabilities (..., V) -> (...)."""
    return -(log_probs.exp() * log_probs).sum(dim=-1).clamp_(max=0.0)


def logprob_and_entropy(logits: Tensor, ids: Tensor) -> tuple[list[float], list[float]]:
    """Log-probability of each id and entropy of its distribution; logits (B, V), ids (B,)."""
    log_probs = log_probabilities(logits)
    both = torch.stack([log_probs.gather(-1, ids[:, None])[:, 0], entropy_of(log_probs)])  # (2, B): one transfer
    first, second = both.tolist()
    return first, second
