from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from mindchat.models.network.kv_cache import KV, Line, PrefixStore, shared, windows_of

ROOM = 2 * 2 * 128 * 4 * 4  # keys and values, 2 heads, one step of positions, head size 4, fp32


@torch.inference_mode()
def fed(kv: KV, ids: list[int]) -> KV:
    """Feed recognisable states: the id, at every place."""
    for i in ids:
        state = torch.full((1, 2, 1, 4), float(i))
        for layer in range(len(kv.layers)):
            kv.update(state, state + 0.5, layer)
    return kv


@torch.inference_mode()
def update(layer: Any, n: int, value: float = 0.0) -> Any:
    """Feed n positions to one layer; the keys it shows."""
    return layer.update(torch.full((1, 2, n, 4), value), torch.zeros(1, 2, n, 4))[0]


def held(kv: KV) -> list[int]:
    layer = kv.layers[-1]
    return [] if layer.keys is None else [int(v) for v in layer.keys[0, 0, : layer.length, 0]]


def use(store: PrefixStore, ids: list[int]) -> tuple[Line, int]:
    line = store.take(ids)
    cached = len(line.ids)
    assert held(line.kv) == list(ids[:cached])
    fed(line.kv, ids[cached:])
    line.ids += ids[cached:]
    store.give(line)
    return line, cached


def store_of(limit: int = 100 * ROOM, *, enabled: bool = True) -> PrefixStore:
    return PrefixStore(lambda: KV([None]), limit, enabled)


def test_a_continuation_grows_in_place_and_a_fork_copies_the_shared_part() -> None:
    store = store_of()
    first, cached = use(store, [1, 2, 3])
    assert cached == 0
    again, cached = use(store, [1, 2, 3, 4])
    assert again is first
    assert cached == 3
    fork, cached = use(store, [1, 2, 9])
    assert fork is not first
    assert cached == 2
    assert held(first.kv) == [1, 2, 3, 4]
    assert held(fork.kv) == [1, 2, 9]
    assert use(store, [1, 2, 3, 4, 5])[1] == 4
    assert use(store, [7])[1] == 0


def test_a_line_in_use_is_shared_by_copy_only() -> None:
    store = store_of()
    use(store, [1, 2])
    busy = store.take([1, 2, 3])
    other = store.take([1, 2, 4])
    assert other is not busy
    assert other.ids == [1, 2]
    fed(other.kv, [4])
    assert held(busy.kv) == [1, 2]


def test_what_was_not_completed_in_every_layer_is_cut_off() -> None:
    store = PrefixStore(lambda: KV([None, None]), 100 * ROOM)
    line = store.take([1, 2, 3])
    fed(line.kv, [1, 2])
    line.ids += [1, 2]
    update(line.kv.layers[0], 1)  # a forward that was interrupted
    store.give(line)
    again = store.take([1, 2, 3])
    assert [layer.length for layer in again.kv.layers] == [2, 2]


def test_lines_contained_in_another_are_dropped_and_the_oldest_goes_first() -> None:
    store = store_of(limit=3 * ROOM)
    use(store, [1, 2])
    use(store, [1, 2, 3])
    assert store.nbytes == ROOM
    use(store, [4])
    use(store, [5])
    assert use(store, [1, 2, 3, 8])[1] == 3  # used again, so 4 is the oldest now
    use(store, [6])
    assert use(store, [4, 4])[1] == 0
    assert store.nbytes <= 3 * ROOM


def test_the_limit_holds_over_many_turns_and_no_reuse_means_none() -> None:
    store = store_of(limit=5 * ROOM)
    chance = random.Random(3)
    ids: list[int] = []
    for _ in range(200):
        ids = ids[: chance.randint(0, len(ids))] + [chance.randint(1, 50) for _ in range(chance.randint(1, 40))]
        use(store, ids)
        assert store.nbytes <= 5 * ROOM
    off = store_of(enabled=False)
    assert [use(off, [1, 2, 3])[1], use(off, [1, 2, 3, 4])[1]] == [0, 0]
    assert off.nbytes == 0
    none = store_of(limit=0)
    assert [use(none, [1, 2])[1], use(none, [1, 2])[1]] == [0, 0]


def test_a_window_layer_shows_its_window_and_can_be_cropped_to_any_length() -> None:
    kv = fed(KV([4]), list(range(10)))
    layer = kv.layers[0]
    assert layer.get_mask_sizes(1) == (4, 7)
    keys = update(layer, 2, 10.0)
    assert [int(v) for v in keys[0, 0, :, 0]] == [7, 8, 9, 10, 10]
    kv.crop_to(5)
    assert layer.get_mask_sizes(1) == (4, 2)
    assert held(kv) == [0, 1, 2, 3, 4]


def test_a_branch_is_independent_and_batched() -> None:
    kv = fed(KV([None]), [1, 2, 3])
    twin = kv.branch(2, batch=3, room=5)
    assert twin.layers[0].keys.shape[0] == 3
    assert held(twin) == [1, 2]
    fed(kv.branch(2), [9])
    assert held(kv) == [1, 2, 3]


def test_shared_and_windows() -> None:
    assert [shared([1, 2], [1, 2, 3]), shared([], [1]), shared([1, 5], [1, 2])] == [2, 0, 1]


@pytest.mark.parametrize("family", ["mistral"])
def test_windows_are_read_from_the_configuration(tiny: Any, family: str) -> None:
    assert windows_of(tiny(family).backbone.model.config) == (8, 8, 8)
