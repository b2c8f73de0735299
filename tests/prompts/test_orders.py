"""Theorem 1 and its sharper count, against plain enumeration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindchat.prompts.core.orders import copies_needed, descents, orders_covered

permutations = st.integers(1, 7).flatmap(lambda k: st.permutations(range(k)))


def contains(copies: Sequence[Sequence[int]], order: Sequence[int]) -> bool:
    """Whether the order can be read off the concatenated copies from left to right."""
    rest = iter([document for copy in copies for document in copy])
    return all(document in rest for document in order)


def positions(context: Sequence[int], needed: Sequence[int]) -> list[int]:
    return [list(context).index(document) for document in needed]


@given(permutations, st.data())
def test_k_copies_contain_every_order_of_k_documents(context: list[int], data: st.DataObject) -> None:
    needed = data.draw(st.permutations(context))
    assert contains([context] * len(context), needed)


@given(permutations, st.data())
def test_an_order_needs_one_copy_and_one_more_for_each_descent(context: list[int], data: st.DataObject) -> None:
    needed = data.draw(st.permutations(context))
    copies = copies_needed(positions(context, needed))
    assert contains([context] * copies, needed)
    assert not contains([context] * (copies - 1), needed)


@given(permutations, st.lists(st.integers(100, 120), max_size=5), st.data())
def test_noise_changes_nothing(context: list[int], noise: list[int], data: st.DataObject) -> None:
    mixed = data.draw(st.permutations([*context, *noise]))
    needed = data.draw(st.permutations(context))
    copies = copies_needed(positions(mixed, needed))
    assert contains([mixed] * copies, needed)
    assert not contains([mixed] * (copies - 1), needed)


@pytest.mark.parametrize(("order", "copies"), [((3, 1, 2), 2), ((3, 2, 1), 3), ((1, 2, 3), 1), ((), 0), ((4,), 1)])
def test_by_hand(order: tuple[int, ...], copies: int) -> None:
    assert copies_needed(order) == copies
    assert not order or descents(order) == copies - 1


@pytest.mark.parametrize("documents", range(1, 7))
def test_the_share_of_orders_is_what_enumeration_finds(documents: int) -> None:
    context = list(range(documents))
    for copies in range(documents + 1):
        found = sum(contains([context] * copies, order) for order in itertools.permutations(context))
        assert orders_covered(documents, copies) == (found, math.factorial(documents))


@pytest.mark.parametrize(
    ("documents", "two", "three"),
    [(2, (2, 2), (2, 2)), (3, (5, 6), (6, 6)), (4, (12, 24), (23, 24)), (5, (27, 120), (93, 120))],
)
def test_the_figures_of_the_design(documents: int, two: tuple[int, int], three: tuple[int, int]) -> None:
    assert orders_covered(documents, 2) == two
    assert orders_covered(documents, 3) == three


@pytest.mark.parametrize(("documents", "held"), [(2, 2), (3, 4), (4, 8), (5, 16)])
def test_a_reversed_copy_holds_fewer_orders_than_a_plain_one(documents: int, held: int) -> None:
    context = list(range(documents))
    assert sum(contains([context, context[::-1]], order) for order in itertools.permutations(context)) == held
