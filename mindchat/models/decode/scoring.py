"""Scoring without generating: options as continuations, and whom a span of a draft attends to.

Owns: the batched pass over options, the attention pieces (DRAGIN's QFS). Does not own: what is done with them
(policies).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from mindchat.models.network.backbone import Backbone
from mindchat.models.network.entropy import log_probabilities
from mindchat.models.network.kv_cache import KV, Line
from mindchat.ports import Cancel

BATCH = 8
"""Options scored at once: each needs its own copy of the shared prefix."""


def score_options(
    backbone: Backbone, kv: KV, logits: Tensor, options: Sequence[Sequence[int]], cancel: Cancel
) -> list[float]:
    """Sum of log-probabilities of each option's ids behind the prefix that kv holds; logits (1, V) follow that prefix."""
    first = log_probabilities(logits)[0]  # (V,)
    totals = [float(first[option[0]]) if option else 0.0 for option in options]
    longer = [i for i, option in enumerate(options) if len(option) > 1]
    for at in range(0, len(longer), BATCH):
        cancel.check()
        group = longer[at : at + BATCH]
        width = max(len(options[i]) for i in group) - 1
        padded = torch.zeros((len(group), width), dtype=torch.long)
        for row, i in enumerate(group):
            padded[row, : len(options[i]) - 1] = torch.tensor(options[i][:-1])
        # Padding stands on the right, where causal attention hides it from the real tokens.
        scores = backbone.forward(padded.to(backbone.device), kv.branch(kv.length, len(group), room=width), width)
        assert scores is not None
        log_probs = log_probabilities(scores)  # (G, width, V)
        for row, i in enumerate(group):
            rest = torch.tensor(options[i][1:], device=log_probs.device)
            totals[i] += float(log_probs[row, : len(rest)].gather(-1, rest[:, None]).sum())
    return totals


def span_attention(backbone: Backbone, line: Line, span: Sequence[int], cancel: Cancel) -> list[float]:
    """Attention paid by the span's tokens, fed one by one behind the line, to each position before the span; mean over
    the span.
    """
    before = len(line.ids)
    total = torch.zeros(before)
    for token in span:
        cancel.check()
        _, row = backbone.step(torch.tensor([[token]], device=backbone.device), line.kv, row=True)
        line.ids.append(token)
        if row is not None:
            total += row[0, :before].cpu()
    weights: list[float] = (total / max(len(span), 1)).tolist()
    return weights
