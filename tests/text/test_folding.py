"""Folding and finding folded words at exact offsets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindchat.text.folding import find_all, fold, norm, search_query, search_text, split_title


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Żuławski", "zulawski"),
        ("STRASSE straße", "strasse strasse"),
        ("Æsop–Œuvre", "aesop-oeuvre"),
        ("“quote” ‘x’", "\"quote\" 'x'"),
        ("a\n\t b\u00a0 c", "a b c"),
        ("ﬁne ２０", "fine 20"),
        ("Z\u0307u\u0142awski", "zulawski"),
        ("が", "が"),
        ("한국", "한국"),
    ],
)
def test_fold(text: str, folded: str) -> None:
    assert fold(text) == folded


def test_names() -> None:
    assert norm("The Presidio") == norm("presidio")
    assert norm("Dr. No") == "dr no"
    assert norm("The The") == "the"
    assert norm("!!!") == ""
    assert split_title("Polish-Russian War (film)") == ("Polish-Russian War", "film")
    assert split_title("(Untitled)") == ("(Untitled)", "")


@given(st.text(max_size=60), st.text(max_size=20), st.text(max_size=60))
def test_what_is_found_folds_to_what_was_sought(before: str, words: str, after: str) -> None:
    text = before + words + after
    for start, end, exact in find_all(text, words):
        assert 0 <= start < end <= len(text)
        assert fold(text[start:end]) == fold(words) or fold(words) in fold(text[start:end])
        assert not exact or text[start:end] == words.strip()


def test_places_are_whole_words_with_exact_ones_first() -> None:
    text = "zulawski and Żuławski; Żuławskiego"
    assert [(text[a:b], exact) for a, b, exact in find_all(text, "Żuławski")] == [
        ("Żuławski", True),
        ("zulawski", False),
    ]
    decomposed = "Z\u0307u\u0142awski x"
    assert [decomposed[a:b] for a, b, _ in find_all(decomposed, "Żuławski")] == ["Z\u0307u\u0142awski"]
    assert find_all("1971", "197") == []


def test_queries_hold_content_words_and_cannot_be_an_expression() -> None:
    assert search_query("Who is the mother of Żuławski?", frozenset({"mother"})) == '"zulawski"'
    assert search_query("who is the") == ""
    assert search_query('a" OR NEAR(x y) *') == '"near"'
    assert '"東京"' in search_query("東京都")
    assert "東京" in search_text("東京都").split()
    assert len(search_text("x" * 2000)) == 800
