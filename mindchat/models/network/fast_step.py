"""The network's layers with less of everything: fewer bytes of weights read, fewer calls from Python.

Owns: passes of plain decoder networks (Llama, Qwen2, Qwen3, Mistral and what shares their layout) over one token or
many, in fp32 or with weights of fewer bytes. Does not own: the projections (weights). Falls back by itself: build()
returns None for other layouts. Why fewer bytes: decoding one token reads every weight once, so bytes decide. Only
weights are rounded: activations keep fp32 (half), fourteen bits (digits) or bfloat16, because rounding *them* to int8
ruins outliers and, with them, the entropies that RIND reads. The residual stream, norms, attention and the likeliest
logits stay fp32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from mindchat.models.network import attention_rows
from mindchat.models.network.kv_cache import KV
from mindchat.models.network.projections import HEAD, INT8, WIDEST, Pack, Projection, Step, form_of, possible, uniform

LAYOUTS = frozenset({"llama", "qwen2", "qwen3", "mistral"})
ROPES = frozenset({"default", "linear", "llama3", "yarn"})
"""Rotary variants whose angles do not depend on how long the text already is."""
REFINED = 128
"""Logits computed again from the full weights where the head is int8: it finds the likely ones, fp32 ranks and weighs
them.
"""


Masks = dict[tuple[int, int | None], Tensor]
"""Which keys the queries of one pass see, by number of keys and window: layers share them."""


class _Layer:
    """One decoder layer's weights, ready for a step."""

    def __init__(self, layer: Any, make: Callable[..., Projection], name: str) -> None:
        block, mlp = layer.self_attn, layer.mlp
        self.first, self.second = layer.input_layernorm.weight, layer.post_attention_layernorm.weight
        self.qkv = make([block.q_proj, block.k_proj, block.v_proj], f"{name}.qkv", finer=True)
        self.out = make([block.o_proj], f"{name}.out")
        self.gate_up = make([mlp.gate_proj, mlp.up_proj], f"{name}.gate_up")
        self.down = make([mlp.down_proj], f"{name}.down")
        self.norms = (block.q_norm.weight, block.k_norm.weight) if hasattr(block, "q_norm") else None
        self.scale = float(block.scaling)


class FastStep:
    """Passes over B sequences of equal length."""

    def __init__(self, model: Any, *, step: Step, pack: Pack | None = None) -> None:
        config, decoder = model.config, model.get_decoder()
        pack = pack or Pack()
        self.step: Step = step
        self.uniform = uniform(step)
        """Whether many tokens are computed as one is, so that chunk() may stand for the prefill."""

        def make(parts: list[Any], name: str, *, finer: bool = False) -> Projection:
            return form_of(step, name).make(parts, name, pack, finer=finer)

        self._embed, self._rotary, self._head = decoder.embed_tokens, decoder.rotary_emb, model.lm_head
        self._norm = decoder.norm.weight
        self._eps = float(config.rms_norm_eps)
        self._queries, self._groups = config.num_attention_heads, config.num_key_value_heads
        self._size = int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)
        self._layers = [_Layer(layer, make, f"layer{i}") for i, layer in enumerate(decoder.layers)]
        self._to_logits = make([model.lm_head], HEAD)
        self._cos = self._sin = torch.empty(0)
        self._middle = max(len(self._layers) // 2 - 1, 0)

    @torch.inference_mode()
    def __call__(self, ids: Tensor, kv: KV, *, row: bool = False) -> tuple[Tensor, Tensor | None, Tensor]:
        """Feed ids (B, 1): logits (B, V), the last layer's attention row (B, keys shown) if asked, the middle layer's
        hidden state (B, d).
        """
        x, measured, middle = self._layers_over(ids, kv, row)
        return self._logits(self._normed(x)), measured, middle

    @torch.inference_mode()
    def chunk(self, ids: Tensor, kv: KV, logits: int = 0) -> Tensor | None:
        """Feed ids (B, T): logits (B, n, V) of the last n = `logits` positions, None for 0."""
        x, _, _ = self._layers_over(ids, kv, False)
        if not logits:
            return None
        last = x.view(*ids.shape, -1)[:, -logits:]
        return self._logits(self._normed(last.reshape(-1, x.shape[-1]))).view(len(ids), last.shape[1], -1)

    def _normed(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, x.shape[-1:], self._norm, self._eps)

    def _layers_over(self, ids: Tensor, kv: KV, row: bool) -> tuple[Tensor, Tensor | None, Tensor]:
        """What leaves the last layer (B · T, d), the attention row if asked, and what leaves the middle layer."""
        x = self._embed(ids.reshape(-1)).clone()
        start, count = kv.length, ids.shape[1]
        cos, sin = self._angles(start, start + count)
        masks: Masks = {}
        measured: Tensor | None = None
        middle = x
        for index, layer in enumerate(self._layers):
            keys = self._attend(
                layer,
                kv.layers[index],
                x.view(len(ids), count, -1),
                cos,
                sin,
                masks,
                row and index == len(self._layers) - 1,
            )
            measured = keys if keys is not None else measured
            gate_up = layer.gate_up(functional.rms_norm(x, x.shape[-1:], layer.second, self._eps))
            gate, up = gate_up.chunk(2, dim=-1)
            x += layer.down(functional.silu(gate).mul_(up))
            if index == self._middle:
                middle = x.clone()
        return x, measured, middle

    def _attend(
        self, layer: _Layer, cache: Any, x: Tensor, cos: Tensor, sin: Tensor, masks: Masks, row: bool
    ) -> Tensor | None:
        """Add the attention block's output to x (B, T, d) in place; the attention row if asked (T = 1)."""
        (batch, count, width), h, g, size = x.shape, self._queries, self._groups, self._size
        normed = functional.rms_norm(x, (width,), layer.first, self._eps).view(batch * count, width)
        qkv = layer.qkv(normed).view(batch, count, h + 2 * g, size)
        qk = qkv[:, :, : h + g]
        if layer.norms is not None:
            qk = torch.cat(
                [
                    functional.rms_norm(qk[:, :, :h], (size,), layer.norms[0], self._eps),
                    functional.rms_norm(qk[:, :, h:], (size,), layer.norms[1], self._eps),
                ],
                2,
            )
        qk = torch.addcmul(qk * cos, qk.roll(size // 2, -1), sin)  # (B, T, H + Hkv, D)
        keys, values = cache.update(qk[:, :, h:].transpose(1, 2), qkv[:, :, h + g :].transpose(1, 2))
        if count == 1:
            query = qk[:, 0, :h].view(batch, g, h // g, size)  # query heads that share a key head stand together
            found = functional.scaled_dot_product_attention(query, keys, values, scale=layer.scale)
        else:
            query = qk[:, :, :h].transpose(1, 2)
            shape = (keys.shape[2], cache.window)
            if shape not in masks:
                masks[shape] = _mask(count, *shape)
            mask = masks[shape]
            found = functional.scaled_dot_product_attention(
                query, keys, values, attn_mask=mask, scale=layer.scale, enable_gqa=True
            ).transpose(1, 2)
        x += layer.out(found.reshape(batch * count, h * size)).view_as(x)
        return attention_rows.attention_row(query.reshape(batch, h, 1, size), keys, None, layer.scale) if row else None

    def _logits(self, x: Tensor) -> Tensor:
        """Logits (R, V) in fp32; of an int8 head the likeliest REFINED of each row are computed from the full weights."""
        logits = self._to_logits(x).float()
        if form_of(self.step, HEAD) is INT8 and (self.uniform or len(x) <= WIDEST):
            for at in range(0, len(x), WIDEST):
                some, row = x[at : at + WIDEST], logits[at : at + WIDEST]
                likely = row.topk(min(REFINED, row.shape[-1]), dim=-1).indices  # (R, 128)
                row.scatter_(-1, likely, torch.einsum("brd,bd->br", self._head.weight[likely].float(), some))
        return logits

    def _angles(self, start: int, end: int) -> tuple[Tensor, Tensor]:
        """cos and signed sin (T, 1, D) of these positions, from a table that grows."""
        if end > len(self._cos):
            positions = torch.arange(-(-end // 1024) * 1024)
            cos, sin = self._rotary(torch.zeros(1, 1), positions[None])
            half = self._size // 2
            self._cos, self._sin = cos[0], torch.cat([-sin[0, :, :half], sin[0, :, half:]], dim=-1)
        return self._cos[start:end, None], self._sin[start:end, None]


def _mask(queries: int, keys: int, window: int | None) -> Tensor:
    """Which keys each query sees (T, keys), the last query at the last key: none behind it, and none before its window."""
    at = torch.arange(keys - queries, keys)[:, None]
    key = torch.arange(keys)
    seen = key <= at
    return seen if window is None else seen & (key > at - window)


def build(model: Any, *, step: Step, pack: Pack | None = None) -> FastStep | None:
    """A fast step for this network, or None if its layout or place is not one of ours, or there is no kernel."""
    config = model.config
    rope = getattr(config, "rope_parameters", None) or {}
    known = (
        config.model_type in LAYOUTS
        and model.device.type == "cpu"
        and model.dtype == torch.float32
        and config.hidden_act == "silu"
        and rope.get("rope_type", "default") in ROPES
        and float(rope.get("partial_rotary_factor", 1.0)) == 1.0
        and model.lm_head.bias is None
        and possible(step)
    )
    return FastStep(model, step=step, pack=pack) if known else None
