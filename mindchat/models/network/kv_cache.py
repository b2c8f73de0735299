"""Keys and values that were computed once: growing buffers, and a store that finds the longest shared prefix.

Owns: the KV cache's memory, branching, cropping, eviction, exact accounting of reuse. Does not own: what is fed (hf),
templates. Every layer keeps all positions, sliding-window layers too: those only *show* their window, so any cache can
be cropped to any length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer

STEP = 128
"""Buffers grow to multiples of this many positions."""


class Growing(DynamicLayer):  # type: ignore[misc]  # transformers is untyped here
    """One layer's keys and values in buffers with room to grow, so that a token costs no copy of all earlier ones.

    keys, values: (batch, kv heads, capacity, head size), of which the first `length` positions are real.
    """

    def __init__(self, window: int | None = None) -> None:
        super().__init__()
        self.window = window
        self.is_sliding = window is not None
        self.length = 0

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor | None = None) -> None:
        """Allocate nothing yet; remember the device."""
        self.dtype, self.device = key_states.dtype, key_states.device
        self.is_initialized = True

    def reserve(self, like_keys: Tensor, like_values: Tensor, needed: int) -> None:
        """Make room for `needed` positions."""
        held = 0 if self.keys is None else self.keys.shape[2]
        if needed <= held:
            return
        capacity = -(-max(needed, held + held // 4) // STEP) * STEP
        for name, like in (("keys", like_keys), ("values", like_values)):
            old = getattr(self, name)
            new = like.new_empty((like.shape[0], like.shape[1], capacity, like.shape[3]))
            if old is not None:
                new[:, :, : self.length] = old[:, :, : self.length]
            setattr(self, name, new)

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Append (batch, kv heads, q, head size); returns the positions that the queries may see."""
        if not self.is_initialized:
            self.lazy_initialization(key_states)
        q = key_states.shape[2]
        end = self.length + q
        self.reserve(key_states, value_states, end)
        self.keys[:, :, self.length : end] = key_states
        self.values[:, :, self.length : end] = value_states
        start = self._offset()
        self.length = end
        return self.keys[:, :, start:end], self.values[:, :, start:end]

    def _offset(self) -> int:
        """First position that the next query still sees."""
        return 0 if self.window is None else max(self.length - self.window + 1, 0)

    def get_mask_sizes(self, query_length: Any) -> tuple[int, int]:
        """(number of keys shown, position of the first) for a query of this length, or of these positions (older
        transformers).
        """
        q = int(query_length) if isinstance(query_length, int) else int(query_length.shape[0])
        start = self._offset()
        return self.length + q - start, start

    def get_seq_length(self, *_: Any) -> int:
        """Positions held."""
        return self.length


class KV(Cache):  # type: ignore[misc]  # transformers is untyped here
    """The keys and values of all layers for `batch` sequences of equal length."""

    def __init__(self, windows: Sequence[int | None]) -> None:
        super().__init__(layers=[Growing(window) for window in windows])
        self.windows = tuple(windows)

    @property
    def length(self) -> int:
        """Positions held."""
        return int(self.layers[-1].length)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(
            t.numel() * t.element_size() for layer in self.layers for t in (layer.keys, layer.values) if t is not None
        )

    def crop(self, tokens_to_remove: int) -> None:
        """Forget the last |tokens_to_remove| positions (transformers' convention)."""
        self.crop_to(self.length - abs(tokens_to_remove))

    def crop_to(self, length: int) -> None:
        """Forget everything from position `length` on, in every layer."""
        for layer in self.layers:
            layer.length = min(layer.length, length)

    @torch.inference_mode()
    def branch(self, length: int, batch: int = 1, room: int = 0) -> KV:
        """An independent copy of the first `length` positions for `batch` equal sequences, with room for `room` more."""
        twin = KV(self.windows)
        for mine, its in zip(self.layers, twin.layers, strict=True):
            if mine.keys is None:
                continue
            its.lazy_initialization(mine.keys)
            its.reserve(
                mine.keys[:1].expand(batch, -1, -1, -1), mine.values[:1].expand(batch, -1, -1, -1), length + room
            )
            its.keys[:, :, :length] = mine.keys[:1, :, :length]
            its.values[:, :, :length] = mine.values[:1, :, :length]
            its.length = length
        return twin


def windows_of(config: Any) -> tuple[int | None, ...] | None:
    """The sliding window of each layer (None: full attention); None as a whole if a layer keeps its past in another
    way.
    """
    kinds = {"DynamicLayer": False, "DynamicSlidingWindowLayer": True}
    layers = DynamicCache(config=config).layers
    if not layers or any(type(layer).__name__ not in kinds for layer in layers):
        return None
    return tuple(int(layer.sliding_window) if kinds[type(layer).__name__] else None for layer in layers)


class Line:
    """A sequence of token ids and its keys and values; `ids` names exactly the positions that are complete in every
    layer.
    """

    def __init__(self, ids: Sequence[int], kv: KV) -> None:
        self.ids = list(ids)
        self.kv = kv
        self.busy = True
        self.used = 0


def shared(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the common prefix."""
    limit = min(len(a), len(b))
    for i in range(limit):
        if a[i] != b[i]:
            return i
    return limit


class PrefixStore:
    """Live caches within a memory limit, least recently used out first. Not for use by two threads at once."""

    def __init__(self, fresh: Callable[[], KV], limit: int, enabled: bool = True) -> None:
        self._fresh, self.limit, self.enabled = fresh, limit, enabled
        self._lines: list[Line] = []
        self._clock = 0

    @property
    def nbytes(self) -> int:
        """Bytes held by lines at rest."""
        return sum(line.kv.nbytes for line in self._lines if not line.busy)

    def take(self, ids: Sequence[int]) -> Line:
        """A line that already holds the longest known prefix of `ids` and is the caller's until give().

        A line that is a whole prefix is handed over and grows in place; of one that goes on differently, or is in use,
        the shared part is copied and the rest stays for others.
        """
        best, most = None, 0
        for line in self._lines:
            length = shared(line.ids, ids)
            if length > most or (length == most and best is not None and not line.busy and length == len(line.ids)):
                best, most = line, length
        if best is None:
            taken = Line((), self._fresh())
        elif most == len(best.ids) and not best.busy:
            taken = best
            self._lines.remove(best)
        else:
            best.used = self._tick()
            taken = Line(ids[:most], best.kv.branch(most))
        taken.busy = True
        if self.enabled:
            self._lines.append(taken)
        return taken

    def give(self, line: Line) -> None:
        """Return a line; what was fed but not completed in every layer is cut off, lines that it contains are dropped."""
        line.kv.crop_to(len(line.ids))
        line.busy, line.used = False, self._tick()
        self._lines = [
            other
            for other in self._lines
            if other is line or other.busy or shared(other.ids, line.ids) < len(other.ids)
        ]
        for oldest in sorted((each for each in self._lines if not each.busy), key=lambda each: each.used):
            if self.nbytes <= self.limit:
                break
            self._lines.remove(oldest)

    def clear(self) -> None:
        """Drop everything that is at rest."""
        self._lines = [line for line in self._lines if line.busy]

    def _tick(self) -> int:
        self._clock += 1
        return self._clock
