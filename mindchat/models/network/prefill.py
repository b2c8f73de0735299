"""What a prefill computes with beside steps of fewer bytes: as they do, with bfloat16 projections, or with the full
weights.

Owns: bfloat16 projections in place, the choice. Does not own: the steps' own forms (weights), checking the outcome
(backbone).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from mindchat.models.network.projections import FORMS, Pack, Step, uniform
from mindchat.models.network.speed_race import race

Prefill = Literal["", "bf16", "step"]
""""step": as the steps do; "bf16" projections; "": the network as it was loaded."""
NARROW = "narrow."
"""Begins the names of bfloat16 weights in a pack."""


class NarrowLinear(nn.Linear):
    """A projection with bfloat16 weights and inputs between fp32 neighbours: half the bytes, and on processors with
    bfloat16 dot products two to three times the speed over many rows."""

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
            whole = module.weight
            wide.append((module, whole))
            (weight,) = pack.get((f"{NARROW}{path}",), lambda whole=whole: (whole.detach().bfloat16(),))  # type: ignore[misc]
            module.weight = nn.Parameter(weight, requires_grad=False)
            module.__class__ = NarrowLinear

    def widen() -> None:
        for module, weight in wide:
            module.__class__ = nn.Linear
            module.weight = weight
        pack.drop(NARROW)

    return widen


def quickest_prefill(step: Step, rows: int = 128, width: int = 896) -> tuple[Prefill, bool]:
    """What computes a projection of many rows best on this processor beside such steps, and whether that is sure.

    bfloat16 must beat fp32 by 1.3: without its dot products it is far slower. And either must beat the steps' own
    arithmetic by 1.3, where there is one for many rows: only with that is what a step computed the same as what a
    prefill computes.
    """
    x, weight = torch.randn(rows, width), torch.randn(4 * width, width)

    def way(kind: torch.dtype) -> Callable[[], object]:
        inputs, weights = x.to(kind), weight.to(kind)
        functional.linear(inputs[:8], weights)
        return lambda: functional.linear(inputs, weights)

    first = race(way(torch.float32), way(torch.bfloat16), 1.3)
    floating, kind = ("bf16", torch.bfloat16) if first.won else ("", torch.float32)
    if not uniform(step):
        return cast(Prefill, floating), first.sure
    whole = nn.Linear(width, 4 * width, bias=False)
    whole.weight = nn.Parameter(weight, requires_grad=False)
    own = FORMS[step][0].make([whole], "race", Pack())
    own(x[:8])
    second = race(lambda: own(x), way(kind), 1.3)
    return cast(Prefill, floating if second.won else "step"), first.sure and second.sure
