"""Attention rows out of a transformers network, by its public extension point.

Owns: the registered attention function, the probe in the last layer, the eager reference that rows are checked against.
Does not own: the row itself (attention). Imports transformers' modelling code, which takes seconds: whoever can do
without imports this late. How: fused kernels return no weights. So the stock fused function runs everywhere, and in the
probed layer, for queries of one token, the row softmax(q·Kᵀ·scale) over the keys at hand is computed once more, in
fp32, and averaged over the heads.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from mindchat.models.network import attention_rows
from mindchat.models.network.attention_rows import NAME


class Probe:
    """Where the measured row is put; measures only while `on`."""

    def __init__(self) -> None:
        self.on = False
        self.row: Tensor | None = None
        """(batch, keys shown): attention of the last single query token, mean over heads, fp32."""


_seen: list[nn.Module] = []
_watching = False


def _measured(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **kwargs: Any
) -> tuple[Tensor, None]:
    """Stock fused attention, and the row for the probe if this module carries one."""
    if _watching:
        _seen.append(module)
    probe: Probe | None = module.__dict__.get("mindchat_probe")
    if probe is not None and probe.on and query.shape[2] == 1:
        scale = kwargs.get("scaling")
        probe.row = attention_rows.attention_row(
            query, key, attention_mask, query.shape[-1] ** -0.5 if scale is None else scale
        )
    output, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)
    return output, None


def register() -> str:
    """Make the function known to transformers; returns the name for `attn_implementation`."""
    AttentionInterface.register(NAME, _measured)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    return NAME


@torch.inference_mode()
def attach(model: Any, ids: Tensor) -> Probe | None:
    """Put a probe on the attention module that runs last; None if the model does not call the registered function."""
    global _watching
    _seen.clear()
    _watching = True
    try:
        model(input_ids=ids[:, :2], use_cache=False)
    finally:
        _watching = False
    last = _seen[-1] if _seen else None
    _seen.clear()
    if last is None:
        return None
    probe = Probe()
    last.__dict__["mindchat_probe"] = probe
    return probe


@torch.inference_mode()
def eager(model: Any, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Reference for ids (1, T): eager attention of the last layer, mean over heads (T, T), and the logits (T, V)."""
    model.set_attn_implementation("eager")
    try:
        output = model(input_ids=ids, use_cache=False, output_attentions=True)
    finally:
        model.set_attn_implementation(NAME)
    return output.attentions[-1][0].float().mean(dim=0), output.logits[0]
