"""What a passage is called in the prompt: its title and the headings that it stands under."""

from __future__ import annotations

import pytest

from mindchat.prompts.core.blocks import documents
from mindchat.values import Passage


@pytest.mark.parametrize(
    ("title", "heading", "text", "words"),
    [
        ("Thouars", "", "A town.", "Thouars: A town."),
        ("Thouars", "History › Wars", "Many sieges.", "Thouars › History › Wars: Many sieges."),
        ("", "Wars", "Many sieges.", "Wars: Many sieges."),
        ("", "", "Many sieges.", "Many sieges."),
        ("Thouars", "", "Thouars is a town.", "Thouars is a town."),
    ],
)
def test_a_passage_is_called_by_title_and_headings(title: str, heading: str, text: str, words: str) -> None:
    passage = Passage("p", "d", title, text, 0, len(text), heading=heading)
    assert documents([(0, passage)], 0)[2].text == words
