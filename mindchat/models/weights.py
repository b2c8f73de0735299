"""The projections of a network in other number formats, made once and kept.

Owns: rounding weights to int8, projections with full and with rounded weights, bfloat16 projections for prefill, the pack that keeps what was made.
Does not own: whole-number arithmetic (digits), the network around the projections (fast), the pack's file (packed).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from mindchat.models import digits
from mindchat.models.race import race

WIDEST = 8
"""Most rows that torch's own int8 kernel is given: its work grows with each, while full weights are read once for all."""
NARROW = "narrow."
"""Begins the names of bfloat16 weights in a pack."""
_BLOCK = 1 << 18
_PACKERS = 2
Projection = Callable[[Tensor], Tensor]
"""Rows (R, K) fp32 to rows (R, N) fp32."""


class Pack:
    """Rounded weights by name: those kept from an earlier load (`held`), and those made now (`made`), for a later one."""

    def __init__(self, held: Mapping[str, Tensor] | None = None) -> None:
        self.held: dict[str, Tensor] = dict(held or {})
        self.made: dict[str, Tensor] = {}
        self._ready: dict[str, Future[Any]] = {}

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

    def arranged(self, name: str, weight: Tensor, scale: Tensor) -> Any:
        """The kernel's own arrangement of a rounded weight; arranged once, however many steps are built from it."""
        if name not in self._ready:
            self._ready[name] = Future()
            self._ready[name].set_result(digits.arrange(weight, scale))
        return self._ready[name].result()

    def begin(self) -> None:
        """Arrange what is held on threads of its own (the work holds no interpreter lock), while the network is being loaded."""
        pool = ThreadPoolExecutor(_PACKERS, "arrange")
        for name, weight in self.held.items():
            stem, _, kind = name.rpartition(".")
            if kind == "weight" and f"{stem}.scale" in self.held:
                self._ready[stem] = pool.submit(digits.arrange, weight, self.held[f"{stem}.scale"])
        pool.shutdown(wait=False)


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


def full(parts: list[nn.Linear], name: str, pack: Pack, *, finer: bool = False) -> Projection:
    """Full-precision projections of one input, outputs side by side."""
    if len(parts) == 1:
        return parts[0]
    return lambda x: torch.cat([part(x) for part in parts], dim=-1)


def rounded(parts: list[nn.Linear], name: str, pack: Pack, *, finer: bool = False) -> Projection:
    """The same with int8 weights, in one call.

    `finer`: what rounding the last part leaves is rounded again and stands below it, which makes that part as good as exact.
    """
    weights = [part.weight.detach() for part in parts]
    twice = len(weights[-1]) if finer else 0

    def made() -> tuple[Tensor, Tensor]:
        found = [quantize(weight) for weight in weights]
        if finer:
            whole, scale = found[-1]
            found.append(quantize(weights[-1] - whole.float() * scale.float()[:, None]))
        return torch.cat([w for w, _ in found]), torch.cat([s for _, s in found])

    weight, scale = pack.get((f"{name}.weight", f"{name}.scale"), made)
    bias = None if parts[0].bias is None else torch.cat([part.bias.detach() for part in parts])
    if digits.available():
        return _finished(digits.Digits(pack.arranged(name, weight, scale)), twice, bias)
    coarse, exact = _finished(lambda x: torch._weight_int8pack_mm(x.bfloat16(), weight, scale).float(), twice, bias), full(parts, name, pack)
    return lambda x: (exact if len(x) > WIDEST else coarse)(x)


def _finished(project: Projection, twice: int, bias: Tensor | None) -> Projection:
    """With what stands below the last `twice` outputs added to them, and the bias."""

    def finish(x: Tensor) -> Tensor:
        y = project(x)
        if twice:
            rest = y[:, -twice:]
            y = y[:, :-twice]
            y[:, -twice:] += rest
        return y if bias is None else y.add_(bias)

    return finish


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


Prefill = str
"""What a prefill computes with beside int8 steps: "int8" as the steps do, "bf16" projections, or "" the full weights."""


def quickest_prefill(rows: int = 128, width: int = 896) -> tuple[Prefill, bool]:
    """What computes a projection of many rows best on this processor, and whether that is sure.

    bfloat16 must beat fp32 by 1.3: without its dot products it is far slower. And either must beat the steps' own arithmetic by 1.3, where there is
    one for many rows: only with that is what a step computed the same as what a prefill computes.
    """
    x, weight = torch.randn(rows, width), torch.randn(4 * width, width)

    def way(kind: torch.dtype) -> Callable[[], object]:
        inputs, weights = x.to(kind), weight.to(kind)
        functional.linear(inputs[:8], weights)
        return lambda: functional.linear(inputs, weights)

    first = race(way(torch.float32), way(torch.bfloat16), 1.3)
    floating, kind = ("bf16", torch.bfloat16) if first.won else ("", torch.float32)
    if not digits.available():
        return floating, first.sure
    whole = digits.Digits(digits.arrange(*quantize(weight)))
    second = race(lambda: whole(x), way(kind), 1.3)
    return (floating if second.won else "int8"), first.sure and second.sure
