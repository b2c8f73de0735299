from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mindchat.models.decode.detokenizer import Vocabulary
from mindchat.text.clean import clean
from mindchat.values import Draft, Token
from mindchat.word_signals import words_of

TRICKY = [
    "Tre\u0301moille naïve",
    "🙂 👩‍👩‍👧 ok",
    "東京は大きい。",
    "  two  spaces\n\n\tand tabs",
    "a\u00a0b",
    "Ünï",
    "𝒳 ∑",
    "",
    " ",
    "\n",
]


def draft(vocabulary: Vocabulary, text: str) -> Draft:
    ids = vocabulary.continuation(text)
    tokens = tuple(
        Token(i, token, piece) for i, (token, piece) in enumerate(zip(ids, vocabulary.pieces(ids), strict=True))
    )
    return Draft("".join(token.text for token in tokens), tokens)


def test_the_byte_table_agrees_with_the_tokenizers_own_decoder(tokenizer: Any) -> None:
    assert Vocabulary(tokenizer).exact()


@pytest.mark.parametrize("text", TRICKY)
def test_text_round_trips_and_spans_are_exact(tokenizer: Any, text: str) -> None:
    vocabulary = Vocabulary(tokenizer)
    made = draft(vocabulary, text)
    assert made.text == text
    assert "".join(text[span.start : span.end] for span in made.offsets()) == text


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(
        st.characters(exclude_categories=("Cs", "Cc"), include_characters="\n\t", exclude_characters="\u2581"),
        max_size=30,
    )
)
def test_any_text_round_trips_by_incremental_decoding(tokenizer: Any, text: str) -> None:
    assert draft(Vocabulary(tokenizer), text).text == clean(text)


def test_a_character_becomes_final_with_its_last_byte(tokenizer: Any) -> None:
    vocabulary = Vocabulary(tokenizer)
    ids = vocabulary.continuation("a🙂b")
    pieces = vocabulary.pieces(ids)
    at = pieces.index("🙂")
    assert pieces[:at].count("") >= 1
    assert "\ufffd" not in "".join(pieces)


def test_three_words_whatever_the_tokenizer(tokenizer: Any) -> None:
    assert [word.text for word in words_of(draft(Vocabulary(tokenizer), "Paris is big"))] == ["Paris", "is", "big"]


def test_a_continuation_has_no_dummy_space(tokenizer: Any) -> None:
    vocabulary = Vocabulary(tokenizer)
    assert vocabulary.text(vocabulary.continuation("is") + vocabulary.continuation(" big")) == "is big"


def test_special_tokens_are_no_text_and_strings_of_their_form_are_no_special_tokens(tokenizer: Any) -> None:
    vocabulary = Vocabulary(tokenizer)
    end = str(tokenizer.eos_token)
    text = f"a {end}{end} {end[:2]}{end}{end[2:]} b"
    ids = vocabulary.continuation(text)
    assert not vocabulary.special & set(ids)
    assert vocabulary.text(ids) == text
    assert vocabulary.text([tokenizer.eos_token_id]) == ""
    assert vocabulary.shown([tokenizer.eos_token_id]) == [end]


def test_terminal_sequences_vanish_even_when_split_between_tokens(tokenizer: Any) -> None:
    vocabulary = Vocabulary(tokenizer)
    assert vocabulary.text(vocabulary.continuation("a\x1b[31mb\x07c")) == "abc"
