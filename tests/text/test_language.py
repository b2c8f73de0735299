"""Sentences and words of a language, as entities and the loop see them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindchat.errors import ConfigError
from mindchat.text.language import language

EN = language("en")


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("He was born in St. Louis. She was not.", ["He was born in St. Louis.", " She was not."]),
        ("J. R. R. Tolkien wrote it. Yes.", ["J. R. R. Tolkien wrote it.", " Yes."]),
        ("It costs 3.5 euros. Buy it!", ["It costs 3.5 euros.", " Buy it!"]),
        ("He said “No.” Then he left.", ["He said “No.”", " Then he left."]),
        ("One line\nanother line", ["One line\n", "another line"]),
        ("它是红的。很好！", ["它是红的。", "很好！"]),
        ("no end", ["no end"]),
        ("It is e.g. a film. Yes.", ["It is e.g. a film.", " Yes."]),
        ("Washington, D.C. is a city. It is big.", ["Washington, D.C. is a city.", " It is big."]),
        ("", []),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert EN.sentences(text) == sentences


@given(st.text(alphabet="ab .!?\nA。", max_size=60))
def test_sentences_join_to_the_text(text: str) -> None:
    assert "".join(EN.sentences(text)) == text


@pytest.mark.parametrize("text", ["It was 1", "It was 1.", "He met J.", "He met J. ", "It was Dr. ", "not over"])
def test_an_open_sentence_has_no_end_yet(text: str) -> None:
    assert EN.first_end(text) is None


def test_the_next_word_ends_the_sentence() -> None:
    assert EN.first_end("It was Rome. The") == len("It was Rome.")


@pytest.mark.parametrize(
    ("word", "content"),
    [
        ("the", False),
        ("The", False),
        (" Vienna", True),
        ("1927", True),
        (".", False),
        ("it's", False),
        ("他", True),
        ("", False),
        ("He’s", False),
    ],
)
def test_content_words(word: str, content: bool) -> None:
    assert EN.content(word) is content


def test_kinds_of_questions() -> None:
    assert EN.polar("Is Lang older?")
    assert not EN.polar("Who is older?")
    assert EN.comparison("Who was born first, Lang or Curie?")
    assert not EN.comparison("Where was Lang born?")


def test_the_answer_phrase_is_seen() -> None:
    assert EN.answered("So the answer is Vienna.")
    assert not EN.answered("Vienna answers.")


def test_an_unknown_language_names_those_that_exist() -> None:
    with pytest.raises(ConfigError, match="tlh") as caught:
        language("tlh")
    assert "en" in caught.value.hint
