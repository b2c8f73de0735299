"""A decode step with less of everything: fewer bytes of weights read, fewer calls from Python.

Owns: one-token steps of plain decoder networks (Llama, Qwen2, Qwen3, Mistral and what shares their layout), in fp32 or with weight-only int8.
Does not own: prefill, which stays with transformers and the full weights. Falls back by itself: build() returns None for other layouts.
Why int8 this way: decoding one token reads every weight once, so bytes decide. Weights are rounded to int8 per output channel; activations
stay bfloat16, because rounding *them* to int8 ruins outliers and, with them, the entropies that RIND reads. The residual stream, norms, attention
and the likeliest logits stay fp32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from mindchat.models import attention
from mindchat.models.cache import KV
from mindchat.models.race import Raced, race

LAYOUTS = frozenset({"llama", "qwen2", "qwen3", "mistral"})
ROPES = frozenset({"default", "linear", "llama3", "yarn"})
"""Rotary variants whose angles do not depend on how long the text already is."""
REFINED = 128
"""Logits computed again from the full weights: int8 finds the likely ones, fp32 ranks and weighs them."""
_BLOCK = 1 << 18
WIDEST = 8
"""Most sequences that are stepped in int8: its kernel's work grows with each, while full weights are read once for all."""
Projection = Callable[[Tensor], Tensor]


class Pack:
    """Rounded weights by name: those kept from an earlier load (`held`), and those made now (`made`), for a later one."""

    def __init__(self, held: Mapping[str, Tensor] | None = None) -> None:
        self.held: dict[str, Tensor] = dict(held or {})
        self.made: dict[str, Tensor] = {}

    def get(self, names: Sequence[str], make: Callable[[], Sequence[Tensor]]) -> list[Tensor]:
        """The tensors of these names; made if one of them is missing."""
        known = {**self.held, **self.made}
        if all(name in known for name in names):
            return [known[name] for name in names]
        found = list(make())
        self.made |= dict(zip(names, found, strict=True))
        return found

    def drop(self, prefix: str) -> None:
        """Forget everything whose name begins so."""
        for place in (self.held, self.made):
            for name in [name for name in place if name.startswith(prefix)]:
                del place[name]


def quantize(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Int8 weights and bfloat16 scales per output channel of (N, K); the scale is rounded first, so only the weights carry an error."""
    packed = torch.empty(weight.shape, dtype=torch.int8)
    scales = torch.empty(len(weight), dtype=torch.bfloat16)
    block = max(_BLOCK // weight.shape[1], 1)  # a block's intermediate results stay in the processor's cache
    for at in range(0, len(weight), block):
        rows = weight[at : at + block]
        largest = rows.abs().amax(dim=1).clamp_(min=1e-12)
        scale = (largest / 127).bfloat16()
        scale = torch.where(scale.float() * 127 < largest, torch.nextafter(scale, torch.full_like(scale, torch.inf)), scale)
        scales[at : at + block] = scale
        packed[at : at + block] = (rows / scale.float()[:, None]).round_()
    return packed, scales


def _full(parts: list[nn.Linear], name: str, pack: Pack) -> Projection:
    """Full-precision projections of one input, outputs side by side."""
    if len(parts) == 1:
        return parts[0]
    return lambda x: torch.cat([part(x) for part in parts], dim=-1)


def _int8(parts: list[nn.Linear], name: str, pack: Pack) -> Projection:
    """The same with int8 weights, in one call; more than WIDEST rows are cheaper with the full weights."""

    def made() -> tuple[Tensor, Tensor]:
        packed = [quantize(part.weight.detach()) for part in parts]
        return torch.cat([w for w, _ in packed]), torch.cat([s for _, s in packed])

    weight, scale = pack.get((f"{name}.weight", f"{name}.scale"), made)
    bias = None if parts[0].bias is None else torch.cat([part.bias.detach() for part in parts])
    full = _full(parts, name, pack)

    def project(x: Tensor) -> Tensor:
        if x.shape[0] > WIDEST:
            return full(x)
        y = torch._weight_int8pack_mm(x.bfloat16(), weight, scale)
        return y.float() if bias is None else y + bias

    return project


NARROW = "narrow."
"""Begins the names of bfloat16 weights in a pack."""


class NarrowLinear(nn.Linear):
    """A projection with bfloat16 weights and inputs between fp32 neighbours: half the bytes, and on processors with bfloat16 dot products
    two to three times the speed over many rows."""

    def forward(self, x: Tensor) -> Tensor:
        """(…, K) fp32 to (…, N) fp32."""
        y = functional.linear(x.bfloat16(), self.weight).float()
        return y if self.bias is None else y + self.bias


def narrow(model: Any, pack: Pack | None = None) -> Callable[[], None]:
    """Turn the decoder layers' projections (not the head) into NarrowLinear, in place; what it returns turns them back."""
    wide: list[tuple[nn.Linear, Any]] = []
    pack = pack or Pack()
    for path, module in model.get_decoder().layers.named_modules():
        if type(module) is nn.Linear:
            full = module.weight
            wide.append((module, full))
            (weight,) = pack.get((f"{NARROW}{path}",), lambda full=full: (full.detach().bfloat16(),))  # type: ignore[misc]
            module.weight = nn.Parameter(weight, requires_grad=False)
            module.__class__ = NarrowLinear

    def widen() -> None:
        for module, weight in wide:
            module.__class__ = nn.Linear
            module.weight = weight
        pack.drop(NARROW)

    return widen


def gains_from_bfloat16(rows: int = 128, width: int = 896) -> Raced:
    """Whether a projection of many rows is quicker in bfloat16 on this processor by 1.3 times: without its dot products it is far slower."""
    x, weight = torch.randn(rows, width), torch.randn(4 * width, width)

    def way(kind: torch.dtype) -> Callable[[], object]:
        inputs, weights = x.to(kind), weight.to(kind)
        functional.linear(inputs[:8], weights)
        return lambda: functional.linear(inputs, weights)

    return race(way(torch.float32), way(torch.bfloat16), 1.3)


class _Layer:
    """One decoder layer's weights, ready for a step."""

    def __init__(self, layer: Any, make: Callable[[list[nn.Linear], str], Projection], name: str) -> None:
        block, mlp = layer.self_attn, layer.mlp
        self.first, self.second = layer.input_layernorm.weight, layer.post_attention_layernorm.weight
        self.qkv = make([block.q_proj, block.k_proj, block.v_proj], f"{name}.qkv")
        self.out = make([block.o_proj], f"{name}.out")
        self.gate_up = make([mlp.gate_proj, mlp.up_proj], f"{name}.gate_up")
        self.down = make([mlp.down_proj], f"{name}.down")
        self.norms = (block.q_norm.weight, block.k_norm.weight) if hasattr(block, "q_norm") else None
        self.scale = float(block.scaling)


class FastStep:
    """Steps of one token for each of B sequences."""

    def __init__(self, model: Any, *, int8: bool, pack: Pack | None = None) -> None:
        config, decoder = model.config, model.get_decoder()
        make = partial(_int8 if int8 else _full, pack=pack or Pack())
        self.int8 = int8
        self._embed, self._rotary, self._head = decoder.embed_tokens, decoder.rotary_emb, model.lm_head
        self._norm = decoder.norm.weight
        self._eps = float(config.rms_norm_eps)
        self._queries, self._groups = config.num_attention_heads, config.num_key_value_heads
        self._size = int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)
        self._layers = [_Layer(layer, make, f"layer{i}") for i, layer in enumerate(decoder.layers)]
        self._to_logits = make([model.lm_head], "head")
        self._cos = self._sin = torch.empty(0)
        self._middle = max(len(self._layers) // 2 - 1, 0)

    @torch.inference_mode()
    def __call__(self, ids: Tensor, kv: KV, *, row: bool = False) -> tuple[Tensor, Tensor | None, Tensor]:
        """Feed ids (B, 1): logits (B, V), the last layer's attention row (B, keys shown) if asked, the middle layer's hidden state (B, d)."""
        x = self._embed(ids[:, 0]).clone()  # (B, d)
        cos, sin = self._angles(kv.length)
        measured: Tensor | None = None
        middle = x
        for index, layer in enumerate(self._layers):
            keys = self._attend(layer, kv.layers[index], x, cos, sin, row and index == len(self._layers) - 1)
            measured = keys if keys is not None else measured
            gate_up = layer.gate_up(functional.rms_norm(x, x.shape[-1:], layer.second, self._eps))
            gate, up = gate_up.chunk(2, dim=-1)
            x += layer.down(functional.silu(gate).mul_(up))
            if index == self._middle:
                middle = x.clone()
        x = functional.rms_norm(x, x.shape[-1:], self._norm, self._eps)
        return self._logits(x), measured, middle

    def _attend(self, layer: _Layer, cache: Any, x: Tensor, cos: Tensor, sin: Tensor, row: bool) -> Tensor | None:
        """Add the attention block's output to x in place; the attention row if asked."""
        batch, h, g, size = x.shape[0], self._queries, self._groups, self._size
        qkv = layer.qkv(functional.rms_norm(x, x.shape[-1:], layer.first, self._eps)).view(batch, h + 2 * g, size)
        qk = qkv[:, : h + g]
        if layer.norms is not None:
            qk = torch.cat(
                [
                    functional.rms_norm(qk[:, :h], (size,), layer.norms[0], self._eps),
                    functional.rms_norm(qk[:, h:], (size,), layer.norms[1], self._eps),
                ],
                1,
            )
        qk = torch.addcmul(qk * cos, qk.roll(size // 2, -1), sin)  # (B, H + Hkv, D)
        keys, values = cache.update(qk[:, h:, None], qkv[:, h + g :, None])
        query = qk[:, :h].view(batch, g, h // g, size)  # query heads that share a key head stand together
        found = functional.scaled_dot_product_attention(query, keys, values, scale=layer.scale)
        x += layer.out(found.reshape(batch, h * size))
        return attention.attention_row(qk[:, :h, None], keys, None, layer.scale) if row else None

    def _logits(self, x: Tensor) -> Tensor:
        """Logits (B, V) in fp32; with int8 the likeliest REFINED of each row are computed from the full weights."""
        logits = self._to_logits(x).float()
        if self.int8 and len(x) <= WIDEST:
            likely = logits.topk(min(REFINED, logits.shape[-1]), dim=-1).indices  # (B, R)
            exact = torch.einsum("brd,bd->br", self._head.weight[likely].float(), x)
            logits.scatter_(-1, likely, exact)
        return logits

    def _angles(self, position: int) -> tuple[Tensor, Tensor]:
        """cos and signed sin (D,) at a position, from a table that grows."""
        if position >= len(self._cos):
            positions = torch.arange(-(-(position + 1) // 1024) * 1024)
            cos, sin = self._rotary(torch.zeros(1, 1), positions[None])
            half = self._size // 2
            self._cos, self._sin = cos[0], torch.cat([-sin[0, :, :half], sin[0, :, half:]], dim=-1)
        return self._cos[position], self._sin[position]


def build(model: Any, *, int8: bool, pack: Pack | None = None) -> FastStep | None:
    """A fast step for this network, or None if its layout or place is not one of ours."""
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
    )
    return FastStep(model, int8=int8, pack=pack) if known else None
