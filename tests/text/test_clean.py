"""Nothing that a terminal would obey passes the boundary."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindchat.text.clean import MAX_OPEN, Cleaner, clean, clean_line

PIECES = st.sampled_from(
    [
        "\x1b",
        "[",
        "]",
        "52;c;QUJD",
        "\x07",
        "\x9b",
        "31m",
        "\x9d",
        "\\",
        "a",
        "é",
        "\r",
        "\n",
        "\t",
        "P",
        "(B",
        "?",
        "\u202e",
        "\x00",
        "0",
        "m",
    ]
)
HOSTILE = st.one_of(st.text(), st.lists(PIECES).map("".join))


@pytest.mark.parametrize(
    ("given_", "left"),
    [
        ("plain [b]text[/b] [1] 日本 👨‍👩‍👧", "plain [b]text[/b] [1] 日本 👨‍👩‍👧"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("a\x1b]52;c;QUJD\x07b", "ab"),
        ("a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
        ("a\x9b31mb\x9d0;title\x9cc", "abc"),
        ("a\x1bPq#0\x1b\\b", "ab"),
        ("over\rwritten\r\nnext", "overwritten\nnext"),
        ("\u202eabc\u2066d\u2069", "abcd"),
        ("nul\x00 bell\x07 del\x7f", "nul bell del"),
        ("\x1b(Bcharset", "charset"),
        ("half \x1b]0;title", "half 0;title"),
    ],
)
def test_known_sequences(given_: str, left: str) -> None:
    assert clean(given_) == left


def _harmless(text: str) -> bool:
    return all(char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs") for char in text)


@given(HOSTILE)
def test_what_is_left_is_harmless_and_stays_the_same(text: str) -> None:
    once = clean(text)
    assert _harmless(once)
    assert clean(once) == once


@given(st.text(st.characters(exclude_categories=("Cc", "Cs", "Cf"))))
def test_ordinary_text_is_untouched(text: str) -> None:
    assert clean(text) == text


@given(st.lists(PIECES))
def test_a_stream_is_as_harmless_as_a_whole(pieces: list[str]) -> None:
    cleaner = Cleaner()
    shown = [cleaner.feed(piece) for piece in pieces] + [cleaner.close()]
    assert _harmless("".join(shown))


@pytest.mark.parametrize(
    "text",
    [
        "a\x1b[31mb",
        "a\x1b]52;c;QUJD\x07b",
        "a\x9b1mb",
        "a\x1bPdata\x1b\\b",
        "a\r\nb",
        "a\x1b]8;;u\x1b\\b\x1b]8;;\x1b\\c",
    ],
)
def test_a_sequence_split_anywhere_is_still_removed(text: str) -> None:
    for cut in range(len(text) + 1):
        cleaner = Cleaner()
        assert cleaner.feed(text[:cut]) + cleaner.feed(text[cut:]) + cleaner.close() == clean(text)
    cleaner = Cleaner()
    assert "".join([*(cleaner.feed(char) for char in text), cleaner.close()]) == clean(text)


def test_text_cannot_be_hidden_behind_an_endless_sequence() -> None:
    cleaner = Cleaner()
    shown = "".join(cleaner.feed(piece) for piece in ["\x1b]", *(["x" * 512] * (MAX_OPEN // 512 + 2))])
    assert "x" * 512 in shown


def test_clean_line() -> None:
    assert clean_line("a\n\tb   c\r\nd") == "a b c d"
    assert clean_line("abcdef", 4) == "abc…"
    assert clean_line("abcd", 4) == "abcd"
