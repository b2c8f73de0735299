"""Which arithmetic a decode step is fastest in on this machine, measured once and remembered.

Owns: the setting model.arithmetic = "auto". Does not own: the arithmetic itself (fast), the other values of the setting (hf).
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from mindchat.models import fast
from mindchat.models.cache import KV, windows_of
from mindchat.paths import find_paths, private

WORTH = 1.3
"""Int8 must be this many times as fast: it rounds weights, so it has to bring something."""
_STEPS = 5


def prefers_int8(model: Any, sample: Sequence[int], *, memo: Path | None = None, pack: fast.Pack | None = None) -> bool:
    """Whether weight-only int8 is worth it for this network here. The answer is kept in `memo` (default: the user's cache folder)."""
    memo = find_paths().cache / "arithmetic.json" if memo is None else memo
    known, key = _read(memo), _key(model.config)
    if key not in known:
        full, packed = (fast.build(model, int8=int8, pack=pack) for int8 in (False, True))
        if full is None or packed is None:  # another layout, or another place: a graphics processor has its own arithmetic
            return False
        known[key] = _seconds(model, full, sample) / _seconds(model, packed, sample)
        _write(memo, known)
    return known[key] >= WORTH


def _key(config: Any) -> str:
    shape = f"{config.model_type} {config.num_hidden_layers}x{config.hidden_size}x{config.intermediate_size} {config.vocab_size}"
    return f"{shape} | torch {torch.__version__} | {platform.machine()} {os.cpu_count()} cores, {torch.get_num_threads()} threads"


def _seconds(model: Any, step: fast.FastStep, sample: Sequence[int]) -> float:
    """The quickest of a few steps: what the machine can do when nothing else runs."""
    kv = KV(windows_of(model.config) or ())
    quickest = float("inf")
    for i in range(_STEPS):
        started = time.perf_counter()
        step(torch.tensor([[sample[i % len(sample)]]]), kv)
        quickest = min(quickest, time.perf_counter() - started)
    return quickest


def _read(memo: Path) -> dict[str, float]:
    """What was measured before; an unreadable memo is measured anew."""
    try:
        held = json.loads(memo.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(k): float(v) for k, v in held.items() if isinstance(v, (int, float))} if isinstance(held, dict) else {}


def _write(memo: Path, known: dict[str, float]) -> None:
    """Replace the memo in one step; a cache folder that cannot be written only costs a measurement next time."""
    try:
        private(memo.parent)
        part = memo.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(known, indent=1), encoding="utf-8")
        part.replace(memo)
    except OSError:
        return
