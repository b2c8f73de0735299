"""Which arithmetic a decode step is fastest in on this machine, measured once and remembered.

Owns: the setting model.arithmetic = "auto". Does not own: the arithmetic itself (fast), the other values of the setting
(hf).
"""

from __future__ import annotations

import itertools
import json
import os
import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from mindchat.models.network import fast_step, projections
from mindchat.models.network.kv_cache import KV, windows_of
from mindchat.models.network.speed_race import race
from mindchat.paths import find_paths, private
from mindchat.storage.atomic import write_atomic
from mindchat.text.foreign_json import decode_json

WORTH = 1.3
"""Rounded weights must be this many times as fast as full ones: they have to bring something."""
RIVALS: tuple[projections.Step, ...] = ("fp16", "int8")
"""The first that this machine can compute with stands against fp32: fp16 changes next to nothing, int8 is what is left
without its kernel.
"""


def quickest_step(
    model: Any, sample: Sequence[int], *, memo: Path | None = None, pack: projections.Pack | None = None
) -> tuple[projections.Step, bool]:
    """What this network shall step with here, and whether that is sure. A sure answer is kept in `memo` (default: the
    user's cache folder).
    """
    memo = find_paths().cache / "arithmetic.json" if memo is None else memo
    rival = next(step for step in RIVALS if projections.possible(step))
    known, key = _read(memo), f"{rival} {_key(model.config)}"
    if key in known:
        return (rival if known[key] >= WORTH else "fp32"), True
    full, fewer = (fast_step.build(model, step=step, pack=pack) for step in ("fp32", rival))
    if full is None or fewer is None:  # another layout, or another place: a graphics processor has its own arithmetic
        return "fp32", True
    found = race(_stepping(model, full, sample), _stepping(model, fewer, sample), WORTH)
    if found.sure:
        _write(memo, known | {key: found.ratio})
    return (rival if found.won else "fp32"), found.sure


def _key(config: Any) -> str:
    shape = (
        f"{config.model_type} {config.num_hidden_layers}x{config.hidden_size}x{config.intermediate_size}"
        f" {config.vocab_size}"
    )
    return (
        f"{shape} | torch {torch.__version__} | {platform.machine()} {os.cpu_count()} cores, {torch.get_num_threads()}"
        " threads"
    )


def _stepping(model: Any, step: fast_step.FastStep, sample: Sequence[int]) -> Callable[[], object]:
    """One more step with each call. The first one, which may have to arrange weights, is made here."""
    kv, ids = KV(windows_of(model.config) or ()), itertools.cycle(sample)
    step(torch.tensor([[next(ids)]]), kv)
    return lambda: step(torch.tensor([[next(ids)]]), kv)


def _read(memo: Path) -> dict[str, float]:
    """What was measured before; an unreadable memo is measured anew."""
    try:
        held = decode_json(memo.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(k): float(v) for k, v in held.items() if isinstance(v, (int, float))} if isinstance(held, dict) else {}


def _write(memo: Path, known: dict[str, float]) -> None:
    """Replace the memo in one step; a cache folder that cannot be written only costs a measurement next time."""
    try:
        private(memo.parent)
        write_atomic(memo, json.dumps(known, indent=1))
    except OSError:
        return
