"""What others would do with the same network: the references that bench and tests compare with.

Owns: transformers' generate, the second pass with all attentions (MIND, DRAGIN), the full-precision distributions.
Does not own: reports (bench).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch
from msgspec import Struct

from mindchat.models import attention
from mindchat.models.backbone import Backbone
from mindchat.models.signals import entropy_of, log_probabilities


@torch.inference_mode()
def generate(backbone: Backbone, ids: Sequence[int], tokens: int) -> tuple[float, list[int]]:
    """Seconds, and ids, of transformers' greedy generate without any signal, fused attention; exactly `tokens` new ones."""
    model = backbone.model
    model.set_attn_implementation("sdpa")
    try:
        prompt = torch.tensor([list(ids)], device=backbone.device)
        started = time.perf_counter()
        out = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=tokens,
            min_new_tokens=tokens,
            do_sample=False,
            repetition_penalty=1.0,
            pad_token_id=model.generation_config.pad_token_id or 0,
        )
        return time.perf_counter() - started, out[0, len(ids) :].tolist()
    finally:
        model.set_attn_implementation(attention.NAME)


@torch.inference_mode()
def second_pass(backbone: Backbone, ids: Sequence[int]) -> float:
    """Seconds of one full pass over ids with all attentions and logits, as the methods' own code computes its signals."""
    started = time.perf_counter()
    model = backbone.model
    model.set_attn_implementation("eager")
    try:
        model(input_ids=torch.tensor([list(ids)], device=backbone.device), output_attentions=True, use_cache=False)
    finally:
        model.set_attn_implementation(attention.NAME)
    return time.perf_counter() - started


class Distance(Struct, frozen=True):
    """How far a step's distributions are from the full-precision ones over a text."""

    tokens: int
    kl: float
    """Mean KL(full ‖ step), nats."""
    entropy_change: float
    """Mean absolute change of the entropy, nats."""
    same_top: float
    """Share of positions with the same likeliest token."""


@torch.inference_mode()
def distance(backbone: Backbone, ids: Sequence[int], context: int = 16) -> Distance:
    """Feed a text token by token behind `context` prefilled ones, and compare with transformers in full precision."""
    kv = backbone.fresh()
    text = torch.tensor([list(ids)], device=backbone.device)
    backbone.forward(text[:, :context], kv)
    kl = change = same = 0.0
    own_kv = backbone.fresh()
    backbone.forward(text[:, :context], own_kv)
    n = len(ids) - context
    for at in range(context, len(ids)):
        token = text[:, at : at + 1]
        mine = log_probabilities(backbone.step(token, kv)[0][0])
        full = backbone.forward(token, own_kv, 1)
        assert full is not None
        own = log_probabilities(full[0, 0])
        kl += float((own.exp() * (own - mine)).sum())
        change += abs(float(entropy_of(own) - entropy_of(mine)))
        same += float(own.argmax() == mine.argmax())
    return Distance(n, kl / n, change / n, same / n)
