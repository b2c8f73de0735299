from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindchat.values import Attended, Draft, Span, Token
from mindchat.word_signals import log_det_gram, received, word_attention, word_entropy, word_spans, words_of


def draft(*pieces: str, entropies: tuple[float, ...] = (), attention: tuple[float, ...] | None = None) -> Draft:
    tokens = tuple(
        Token(i, 100 + i, piece, None, entropies[i] if entropies else None) for i, piece in enumerate(pieces)
    )
    return Draft("".join(pieces), tokens, attention)


@pytest.mark.parametrize(
    "pieces",
    [
        ("Paris", " is", " big"),  # byte level: the space opens the token
        ("Par", "is", " is", " b", "ig"),
        ("Paris", " ", "is", " ", "big"),  # the space stands alone
        ("Paris ", "is ", "big"),  # the space closes the token
        ("P", "", "aris", " is", " big"),
    ],
)
def test_three_words_under_every_tokenizer_style(pieces: tuple[str, ...]) -> None:
    assert [word.text for word in words_of(draft(*pieces))] == ["Paris", "is", "big"]


def test_a_word_knows_its_tokens_and_punctuation_stands_apart() -> None:
    words = words_of(draft(" Tr", "é", "mo", "ille", ",", " 17", "64", "–", "18", "39", '."'))
    assert [(w.text, w.tokens) for w in words] == [
        ("Trémoille", Span(0, 4)),
        (",", Span(4, 5)),
        ("1764", Span(5, 7)),
        ("–", Span(7, 8)),
        ("1839", Span(8, 10)),
        ('."', Span(10, 11)),
    ]
    assert [w.punctuation for w in words] == [False, True, False, True, False, True]


def test_a_token_across_two_words_counts_to_both_and_an_open_character_to_its_end() -> None:
    words = words_of(draft("a", ").", "b c", "", "", "🙂"))
    assert [(w.text, w.tokens) for w in words] == [
        ("a", Span(0, 1)),
        (").", Span(1, 2)),
        ("b", Span(2, 3)),
        ("c", Span(2, 3)),
        ("🙂", Span(3, 6)),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("O'Brien’s mother-in-law", ["O'Brien’s", "mother-in-law"]),
        ("1,184 U.S. $3.50", ["1,184", "U.S", ".", "$", "3.50"]),
        ("Tre\u0301moille na\u00efve", ["Tre\u0301moille", "na\u00efve"]),
        ("one,two--three", ["one", ",", "two", "--", "three"]),
        ("", []),
    ],
)
def test_word_edges(text: str, words: list[str]) -> None:
    assert [text[span.start : span.end] for span in word_spans(text)] == words


def test_scripts_without_spaces_are_cut_at_tokens() -> None:
    assert [word.text for word in words_of(draft("東京", "は", "大きい", "。"))] == ["東京", "は", "大きい", "。"]


@given(st.lists(st.text(max_size=4), max_size=20))
def test_words_cover_every_written_character_once(pieces: list[str]) -> None:
    made = draft(*pieces)
    words = words_of(made)
    covered = [i for word in words for i in range(word.start, word.end)]
    assert covered == [i for i, char in enumerate(made.text) if not char.isspace()]
    for word in words:
        text = "".join(pieces[word.tokens.start : word.tokens.end])
        assert word.text in text


def test_received_is_the_maximum_over_later_tokens() -> None:
    rows = [Attended(0, ()), Attended(1, (0.5,)), Attended(2, (0.1, 0.3)), Attended(3, (0.6, 0.2, 0.4))]
    assert received(rows, 4) == (0.6, 0.3, 0.4, 0.0)
    assert received(rows, 3) == (0.5, 0.3, 0.0)
    assert received(rows, 2, start=1) == (0.3, 0.0)
    assert received(rows, 3, start=1) == (0.3, 0.4, 0.0)
    assert received([], 2) == (0.0, 0.0)


def test_a_word_takes_mean_entropy_and_maximum_attention() -> None:
    made = draft("Par", "is", " is", entropies=(2.0, 1.0, 0.25), attention=(0.1, 0.4, 0.0))
    paris, verb = words_of(made)
    assert (word_entropy(made, paris), word_attention(made, paris)) == (1.5, 0.4)
    assert (word_entropy(made, verb), word_attention(made, verb)) == (0.25, 0.0)
    bare = draft("Par", "is")
    assert (word_entropy(bare, words_of(bare)[0]), word_attention(bare, words_of(bare)[0])) == (None, None)


def test_log_det_is_lowest_for_identical_samples() -> None:
    same = [np.array([1.0, -1.0, 0.0, 0.0])] * 3
    apart = [np.array([1.0, -1.0, 0, 0, 0, 0]), np.array([0, 0, 1.0, -1.0, 0, 0]), np.array([0, 0, 0, 0, 1.0, -1.0])]
    assert log_det_gram(apart) > log_det_gram(same)
    assert log_det_gram(apart, 1e-3) == pytest.approx(math.log(2.001), abs=1e-9)  # Gram = 2 I
    assert log_det_gram([np.full(5, 7.0)], 0.5) == pytest.approx(math.log(0.5))  # a constant state is centred away
    with pytest.raises(ValueError, match="alpha"):
        log_det_gram(same, 0.0)
