"""The last layer's attention row of a single query token, at the price of one dot product.

Owns: the row out of a query and the cached keys, when a measured row is right. Does not own: measuring inside a
transformers network (probe), what the rows mean (mindchat.word_signals.received). Source: MIND Eq 2 reads the last
layer, mean over heads; the row is exact, in fp32.
"""

from __future__ import annotations

import torch
from torch import Tensor

NAME = "mindchat_sdpa"
"""The attention implementation that carries the probe, as transformers knows it."""
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-4}
"""Largest difference to eager attention that the self-check accepts; other precisions: 2e-2."""


def attention_row(query: Tensor, key: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """Mean over heads of softmax(q·Kᵀ·scale): query (B, H, 1, D), key (B, Hkv, K, D) -> (B, K), fp32.

    Query heads are grouped by the key head they share; `mask` is boolean (True: seen) or additive, broadcastable to (B,
    H, 1, K).
    """
    batch, heads, _, size = query.shape
    groups, keys = key.shape[1], key.shape[2]
    grouped = query.reshape(batch, groups, heads // groups, size)
    scores = (grouped.float() @ key.float().transpose(2, 3)) * scale  # (B, Hkv, H/Hkv, K)
    scores = scores.reshape(batch, heads, 1, keys)
    if mask is not None:
        mask = mask[..., :keys]
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(dim=-1).mean(dim=1)[:, 0]


def agrees(measured: list[Tensor], reference: Tensor, dtype: torch.dtype) -> bool:
    """Whether the measured rows (each (K,), for the last tokens) equal the reference's last rows within tolerance."""
    limit = TOLERANCE.get(dtype, 2e-2)
    first = reference.shape[0] - len(measured)
    return all(
        len(row) == first + i + 1 and float((row - reference[first + i, : first + i + 1]).abs().max()) <= limit
        for i, row in enumerate(measured)
    )
