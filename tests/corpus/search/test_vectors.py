"""Vectors in blocks and in a generation's array: whole or not there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mindchat.corpus.search.vectors import Blocks, Vectors, key_of
from mindchat.values import Passage

KEYS = [bytes([n]) * 16 for n in range(5)]


def unit(n: int, dimension: int = 8, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_vectors_come_back_in_the_order_asked_for(tmp_path: Path) -> None:
    blocks, rows = Blocks(tmp_path, "e@1"), unit(5)
    blocks.put(KEYS[:2], rows[:2])
    blocks.put(KEYS[2:], rows[2:])
    for one in (blocks, Blocks(tmp_path, "e@1")):
        got = one.array([KEYS[4], b"x" * 16, KEYS[0]])
        assert got.held.tolist() == [True, False, True]
        assert np.array_equal(got.rows[[0, 2]], rows[[4, 0]].astype(np.float16))
        assert not got.rows[1].any()
    assert len(Blocks(tmp_path, "another@1").keys) == 0


@pytest.mark.parametrize("cut", [0, 1, -1])
def test_a_damaged_block_is_as_if_it_had_never_been_made(tmp_path: Path, cut: int) -> None:
    Blocks(tmp_path, "e").put(KEYS, unit(5))
    (file,) = tmp_path.rglob("block-*.npy")
    whole = bytearray(file.read_bytes())
    if cut == 1:
        whole[-3] ^= 1
    file.write_bytes(whole[:cut] if cut < 1 else whole)
    again = Blocks(tmp_path, "e")
    assert len(again.keys) == 0
    assert not again.array(KEYS).held.any()


def test_what_is_not_wanted_any_more_is_gone_from_the_disk(tmp_path: Path) -> None:
    blocks, rows = Blocks(tmp_path, "e"), unit(5)
    blocks.put(KEYS[:3], rows[:3])
    blocks.put(KEYS[3:], rows[3:])
    Blocks(tmp_path, "old").put(KEYS, rows)
    blocks.keep_only([KEYS[1]])
    (left,) = tmp_path.rglob("block-*.npy")
    assert KEYS[1] in left.read_bytes()
    assert not any(key in left.read_bytes() for key in (KEYS[0], KEYS[2], KEYS[4]))
    assert Blocks(tmp_path, "e").array([KEYS[1]]).held.all()


def test_likeness_is_the_cosine_of_each_row(tmp_path: Path) -> None:
    rows, question = unit(9000, 16), unit(1, 16, seed=1)[0]
    held = np.ones(9000, np.bool_)
    Vectors(rows.astype(np.float16), held).save(tmp_path / "v")
    stored = Vectors.load(tmp_path / "v")
    assert np.allclose(stored.likeness(question), rows @ question, atol=2e-3)
    assert np.allclose(stored.widened().likeness(question), stored.likeness(question), atol=1e-6)
    assert not stored.likeness(unit(1, 12)[0]).any()


def test_a_key_depends_on_what_is_read_and_on_nothing_else() -> None:
    here = Passage("a", "/one.txt", "Title", "text", 0, 4)
    assert key_of(here) == key_of(Passage("b", "/two.txt", "Title", "text", 9, 13, heading=""))
    assert key_of(here) != key_of(Passage("a", "/one.txt", "Title", "texts", 0, 5))
    assert key_of(here) != key_of(Passage("a", "/one.txt", "Titles", "text", 0, 4))
