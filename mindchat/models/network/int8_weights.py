"""A projection in whole numbers: int8 weights, and activations in two signed digits of seven bits.

Owns: the digits, the kernel's arrangement of weights, whether this machine can do it. Does not own: how weights are
rounded (weights). Why: an activation rounded to eight bits ruins outliers and, with them, the entropies that RIND
reads; in two digits it keeps fourteen bits of the row's largest value. The sums are int32 and exact, so a row's result
does not depend on what is computed beside it or in which order: what a step computed and what a prefill computes agree.
And both digits read the weights once. Seven bits, because processors without dot products of bytes add pairs of
products in 16 bits: 2 · 128 · 127 still fits.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import torch
from torch import Tensor

BASE = 128
TOP = 63 * BASE + 63
"""Largest number of two digits; digits lie between -64 and 64."""
_ZERO = 64
"""What the kernel takes for zero: it multiplies unsigned by signed bytes."""
_KERNEL = "linear_with_input_q_dq_qweight_dq_output_fp32"


@cache
def available() -> bool:
    """Whether torch brings the kernel for this processor (FBGEMM: x86 with AVX2 or more), and keeps its promise."""
    if "fbgemm" not in torch.backends.quantized.supported_engines or not hasattr(torch.ops.quantized, _KERNEL):
        return False
    try:
        with (
            warnings.catch_warnings()
        ):  # torch says once that these tensors will go; the requirement names versions that have them
            warnings.simplefilter("ignore")
            found = Digits(arrange(torch.tensor([[127, -127]], dtype=torch.int8), torch.ones(1)))(
                torch.tensor([[2.0, -2.0]])
            )
    except (RuntimeError, AttributeError):
        return False
    return bool((found - 508.0).abs() < 1e-3)


def arrange(weight: Tensor, scale: Tensor) -> Any:
    """The kernel's arrangement of weight (N, K) int8 within ±127, scale (N,). Holds no interpreter lock meanwhile."""
    if torch.backends.quantized.engine != "fbgemm":
        torch.backends.quantized.engine = "fbgemm"  # which kernel the arrangement is for; nothing else here asks
    named = torch._make_per_channel_quantized_tensor(
        weight, scale.double(), torch.zeros(len(weight), dtype=torch.long), 0
    )
    return torch.ops.quantized.linear_prepack(named, None)


class Digits:
    """x (R, K) fp32 to x · Wᵀ (R, N) fp32 over an arranged weight."""

    def __init__(self, arranged: Any) -> None:
        self._arranged = arranged

    def __call__(self, x: Tensor) -> Tensor:
        """One pass over the weights for all rows and both digits."""
        rows = len(x)
        step = x.abs().amax(dim=-1, keepdim=True).clamp_(min=1e-30).div_(TOP)  # (R, 1)
        number = torch.div(x, step).round_()
        both = x.new_empty((2 * rows, x.shape[1]))
        high = torch.mul(number, 1 / BASE, out=both[:rows]).round_()
        torch.sub(number, high, alpha=BASE, out=both[rows:])
        sums: Tensor = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            both, 1.0, _ZERO, self._arranged
        )
        return torch.add(sums[rows:], sums[:rows], alpha=BASE).mul_(step)
