"""A prompt's prefill as transformers does it by itself: its own cache, fused attention, one pass over what is new.

Owns: the reference that prefill behind a kept prefix is held against. Does not own: MindChat's own prefill (hf),
reports (bench).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache

from mindchat.models.network import attention_rows
from mindchat.models.network.backbone import Backbone


@torch.inference_mode()
def prefill_behind(backbone: Backbone, before: Sequence[int], new: Sequence[int]) -> tuple[float, int]:
    """Seconds of one pass over the ids `new` behind the ids `before`, which are computed first and not timed; and the
    likeliest next id.
    """
    model = backbone.model
    model.set_attn_implementation("sdpa")
    try:
        kv: Any = DynamicCache(config=model.config)

        def run(ids: Sequence[int]) -> Tensor:
            fed = torch.tensor([list(ids)], device=backbone.device)
            logits: Tensor = model(input_ids=fed, use_cache=True, logits_to_keep=1, **{backbone.cache_name: kv}).logits
            return logits[0, -1]

        run(before)
        started = time.perf_counter()
        logits = run(new)
        return time.perf_counter() - started, int(logits.argmax())
    finally:
        model.set_attn_implementation(attention_rows.NAME)
