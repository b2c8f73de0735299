"""The list task: Table 5's wording, one description a copy, more copies extending fewer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mindchat.prompts.core.synthetic import facts, lists_prompt
from mindchat.values import Prompt

LISTS = ((381, 512, 1021), (7123, 34, 6397))
"""CoRe §4.1's own example."""


@pytest.mark.parametrize("repeat", [0, 1, 2])
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_reads_like_table_5(role: str, repeat: int, same_as: Callable[[str, Prompt], None]) -> None:
    same_as(f"table5-{role}-repeat{repeat}", lists_prompt(LISTS, 0, repeat, role))


def test_the_example_of_the_paper_and_no_list_too_many() -> None:
    assert facts(LISTS) == [
        "In the list 0, 381 is positioned immediately before 512.",
        "In the list 1, 7123 is positioned immediately before 34.",
        "In the list 0, 512 is positioned immediately before 1021.",
        "In the list 1, 34 is positioned immediately before 6397.",
    ]


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_every_copy_says_everything_once_and_extends_the_one_before(role: str) -> None:
    for repeat in range(11):
        prompt = lists_prompt(LISTS, 1, repeat, role)
        whole = "\n".join(message.text for message in prompt.messages)
        assert all(whole.count(fact) == repeat + 1 for fact in facts(LISTS))
        assert whole.count("the list that contains 6397?") == repeat + 1
        more = lists_prompt(LISTS, 1, repeat + 1, role).messages
        at = 0 if role == "user" or not repeat else 1
        assert more[at].text.startswith(prompt.messages[at].text)
