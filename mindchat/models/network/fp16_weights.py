"""A projection with weights in half precision (fp16) and everything else in fp32: half the bytes, and next to nothing
lost.

Owns: the kernel's arrangement of weights, whether this machine has the kernel. Does not own: which projections are held
so (weights). Why: int8 keeps eight bits of a row's largest weight, fp16 eleven of every weight. FBGEMM widens the
weights in registers and sums in fp32, over one row or over many, so a step and a prefill compute the same to fp32's own
rounding.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

_KERNEL = "linear_dynamic_fp16"
LARGEST = float(torch.finfo(torch.float16).max)


@cache
def available() -> bool:
    """Whether torch brings the kernel for this processor (FBGEMM: x86 with AVX2 or more), and it keeps its promise."""
    if "fbgemm" not in torch.backends.quantized.supported_engines or not hasattr(torch.ops.quantized, _KERNEL):
        return False
    try:
        found = Half(arrange(torch.tensor([[1.0, -1024.0]])))(torch.tensor([[1 / 1024, 1 + 1 / 4096]]))
    except (RuntimeError, AttributeError):
        return False
    return bool((found + 1024.25 - 1 / 1024).abs() < 1e-3)  # an activation rounded to fp16 would miss by a quarter


def arrange(weight: Tensor) -> Any:
    """The kernel's arrangement of weight (N, K), any floating type, within ±LARGEST. Holds no interpreter lock
    meanwhile.
    """
    if torch.backends.quantized.engine != "fbgemm":
        torch.backends.quantized.engine = "fbgemm"  # which kernel the arrangement is for; nothing else here asks
    return torch.ops.quantized.linear_prepack_fp16(weight.float(), None)


class Half:
    """x (R, K) fp32 to x · Wᵀ (R, N) fp32 over an arranged weight."""

    def __init__(self, arranged: Any) -> None:
        self._arranged = arranged

    def __call__(self, x: Tensor) -> Tensor:
        """One pass over the weights for all rows."""
        y: Tensor = torch.ops.quantized.linear_dynamic_fp16(x, self._arranged)
        return y
