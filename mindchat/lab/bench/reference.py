"""What others would do with the same network: the references that bench and tests compare with.

Owns: transformers' generate, the second pass with all attentions (MIND, DRAGIN), the full-precision distributions.
Does not own: reports (bench).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence

import torch
from msgspec import Struct
from torch import Tensor

from mindchat.errors import CapabilityError
from mindchat.models.network import attention_rows, prefill
from mindchat.models.network.backbone import Backbone
from mindchat.models.network.entropy import entropy_of, log_probabilities
from mindchat.models.network.fast_step import FastStep


class Generated(Struct, frozen=True):
    """What transformers' generate made."""

    first: float
    """Seconds to the first new id."""
    seconds: float
    """Seconds to the end."""
    ids: list[int]
    """New ids."""


class _First:
    """A streamer, as generate() calls it: once with the prompt, then with each new id."""

    def __init__(self) -> None:
        self.calls = 0
        self.at = 0.0

    def put(self, value: Tensor) -> None:
        """Note when the first new id came."""
        self.calls += 1
        if self.calls == 2:
            self.at = time.perf_counter()

    def end(self) -> None:
        """Nothing is held back."""


@torch.inference_mode()
def generate(backbone: Backbone, ids: Sequence[int], tokens: int) -> Generated:
    """transformers' greedy generate without any signal, fused attention; exactly `tokens` new ids."""
    model = backbone.model
    model.set_attn_implementation("sdpa")
    try:
        prompt = torch.tensor([list(ids)], device=backbone.device)
        mark, started = _First(), time.perf_counter()
        out = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=tokens,
            min_new_tokens=tokens,
            do_sample=False,
            repetition_penalty=1.0,
            pad_token_id=model.generation_config.pad_token_id or 0,
            streamer=mark,
        )
        return Generated(mark.at - started, time.perf_counter() - started, out[0, len(ids) :].tolist())
    finally:
        model.set_attn_implementation(attention_rows.NAME)


@torch.inference_mode()
def second_pass(backbone: Backbone, ids: Sequence[int], made: int = 0) -> tuple[float, list[int]]:
    """Seconds of one full pass over ids with all attentions and logits, as the methods' own code computes its signals.

    Also the network's own likeliest ids at the places of the last `made` ids, each behind the ids before it.
    """
    started = time.perf_counter()
    model = backbone.model
    model.set_attn_implementation("eager")
    try:
        logits = model(
            input_ids=torch.tensor([list(ids)], device=backbone.device), output_attentions=True, use_cache=False
        ).logits
    finally:
        model.set_attn_implementation(attention_rows.NAME)
    seconds = time.perf_counter() - started
    return seconds, logits[0, len(ids) - made - 1 : -1].argmax(dim=-1).tolist() if made else []


class Compared(Struct, frozen=True):
    """One way to step, beside transformers in full precision, over the same text."""

    tokens: int
    milliseconds: float
    """Median of one step."""
    kl: float
    """Mean KL(full ‖ step), nats."""
    entropy_change: float
    """Mean absolute change of the entropy, nats."""
    same_top: float
    """Share of positions with the same likeliest token."""


@torch.inference_mode()
def compare_prefill(
    backbone: Backbone, ids: Sequence[int], steps: Sequence[FastStep] = (), repeats: int = 3
) -> dict[str, Compared]:
    """One pass over a text in full precision, with bfloat16 projections and as these steps compute, in turn;
    milliseconds: the whole pass.

    Raises CapabilityError where the network has no such form (other precisions, other layouts).
    """
    if backbone.stepped is None or backbone.model.dtype != torch.float32:
        raise CapabilityError(
            "The prefill in bfloat16 stands beside the fast step in fp32 only.",
            "Load the model with model.arithmetic = fp32.",
        )
    text = torch.tensor([list(ids)], device=backbone.device)
    spent: dict[str, list[float]] = {"prefill fp32": [], "prefill bf16": []}
    logits: dict[str, Tensor] = {}
    alike = {f"prefill {step.step}": step.chunk for step in steps if step.uniform}
    spent |= {name: [] for name in alike}
    for _ in range(repeats):
        for name in spent:
            widen = prefill.narrow(backbone.model) if name == "prefill bf16" else None
            try:
                started = time.perf_counter()
                found = alike.get(name, backbone.forward)(text, backbone.fresh(), len(ids))
                spent[name].append(time.perf_counter() - started)
            finally:
                if widen is not None:
                    widen()
            assert found is not None
            logits[name] = log_probabilities(found[0])
    own = logits["prefill fp32"]
    return {name: _compared(len(ids), spent[name], own, mine) for name, mine in logits.items()}


def _compared(tokens: int, spent: Sequence[float], own: Tensor, mine: Tensor) -> Compared:
    """Means over the positions of log-probabilities (T, V)."""
    kl = float((own.exp() * (own - mine)).sum(-1).mean())
    change = float((entropy_of(own) - entropy_of(mine)).abs().mean())
    return Compared(
        tokens, statistics.median(spent) * 1e3, kl, change, float((own.argmax(-1) == mine.argmax(-1)).float().mean())
    )


@torch.inference_mode()
def compare(ways: Mapping[str, Backbone], ids: Sequence[int], context: int = 16) -> dict[str, Compared]:
    """Feed a text token by token behind `context` prefilled ones, each token to every way in turn; "transformers" is
    the reference itself.

    Taking turns at each token lets a busy moment of the machine fall on all ways alike.
    """
    first = next(iter(ways.values()))
    text = torch.tensor([list(ids)], device=first.device)
    caches = {name: first.fresh() for name in ("transformers", *ways)}
    for kv in caches.values():
        first.forward(text[:, :context], kv)
    spent: dict[str, list[float]] = {name: [] for name in caches}
    sums = {name: torch.zeros(3, dtype=torch.float64) for name in caches}
    for at in range(context, len(ids)):
        token = text[:, at : at + 1]
        own: Tensor | None = None
        for name, kv in caches.items():
            started = time.perf_counter()
            logits = first.forward(token, kv, 1) if name == "transformers" else ways[name].step(token, kv)[0]
            spent[name].append(time.perf_counter() - started)
            assert logits is not None
            mine = log_probabilities(logits.reshape(-1))
            own = mine if own is None else own
            change = (entropy_of(own) - entropy_of(mine)).abs()
            sums[name] += (
                torch.stack([(own.exp() * (own - mine)).sum(), change, (own.argmax() == mine.argmax()).float()])
                .double()
                .cpu()
            )
    n = len(ids) - context
    return {name: Compared(n, statistics.median(spent[name]) * 1e3, *(sums[name] / n).tolist()) for name in caches}
