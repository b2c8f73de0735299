from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindchat.answers import extract_short, find_stated, says_unknown

STATED = [
    ("He was born there. So the answer is: Washington, D.C.", "Washington, D.C."),
    ("The answer is Washington, D.C.. It is a city.", "Washington, D.C."),
    ("so the final answer is May 4, 1970.", "May 4, 1970"),
    ("Therefore, the answer is No. 1.", "No. 1"),
    ("The answer is yes, because both are American.", "yes"),
    ("The answer is No. They are of different countries.", "No"),
    ("The answer is no.", "no"),
    ("The answer is No Country for Old Men.", "No Country for Old Men"),
    ("The answer is Yes Man.", "Yes Man"),
    ("The answer is not known", "not known"),
    ("So the answer is J.R.R. Tolkien.", "J.R.R. Tolkien"),
    ("So the answer is J. R. R. Tolkien. He wrote it.", "J. R. R. Tolkien"),
    ("The author signed as J.R.R.", "The author signed as J.R.R."),
    ("the answer is Martin Luther King Jr.", "Martin Luther King Jr."),
    ("the answer is Malcolm X.", "Malcolm X"),
    ("The answer is **Paris**.", "Paris"),
    ('The answer is "The Hobbit".', "The Hobbit"),
    ("The answer is “Paris.”", "Paris"),
    ("The answer is A. I was wrong: the answer is B.", "B"),
    ("<think>the answer is Rome</think>The answer is Paris<|eot_id|>", "Paris"),
    ("reasoning</think>\nThe answer is Paris</s>", "Paris"),
    ("The answer is:\n\n  Paris\nQuestion: next?", "Paris"),
    ("The answer is Paris. Question: What next?", "Paris"),
    ("Answer: Paris [1][2].", "Paris"),
    ("**Answer:** Lake Tahoe", "Lake Tahoe"),
    ("My answer would be 1,000.", "1,000"),
    ("The answer is \\boxed{42}.", "42"),
    ("The answer to the question is St. Louis. It lies on a river.", "St. Louis"),
    ("The answer is Yes they are both films.", "Yes"),
    ("The answer is 3.5 km.", "3.5 km"),
    ("The answer is Washington, D.C. It is the capital.", "Washington, D.C."),
    ("The answer is Mrauk U. It was a capital.", "Mrauk U"),
    ("The answer is Sammy Davis Jr. He sang.", "Sammy Davis Jr."),
    ("The answer is Scott Pilgrim vs. The World.", "Scott Pilgrim vs. The World"),
    ("The answer is St. The Martyr.", "St. The Martyr"),
]


@pytest.mark.parametrize(("text", "short"), STATED)
def test_short_form_of_a_reply(text: str, short: str) -> None:
    assert extract_short(text) == short


@pytest.mark.parametrize(
    ("text", "short"),
    [
        (" Paris", "Paris"),
        (" Paris.\nHe lived there.", "Paris"),
        ("", ""),
        ("<think>never closed. the answer is x", ""),
        ("Note: nothing", "nothing"),
    ],
)
def test_without_the_phrase_the_first_line_counts(text: str, short: str) -> None:
    assert find_stated(text) is None
    assert extract_short(text) == short


@pytest.mark.parametrize(
    "short", ["not known", "Unknown.", "I don't know", "cannot be determined from the text", "It is not known.", ""]
)
def test_refusals_are_recognised(short: str) -> None:
    assert says_unknown(short)


@pytest.mark.parametrize(
    "short", ["Notre Dame", "no", "No. 1", "Unknown Pleasures", "the unknown soldier", "Knowles", "not guilty"]
)
def test_answers_are_not_refusals(short: str) -> None:
    assert not says_unknown(short)


@given(st.text())
def test_any_text_gives_one_clean_line(text: str) -> None:
    short = extract_short(text)
    assert "\n" not in short
    assert "\x1b" not in short
    assert short == short.strip()


LETTERS = st.text(alphabet=st.characters(categories=["Lu", "Ll", "Nd"]), min_size=1, max_size=12)


@given(LETTERS.filter(lambda word: word.lower() not in ("yes", "no")))
def test_a_plain_word_survives_every_wrapping(word: str) -> None:
    for frame in (
        "So the answer is {}.",
        "Answer: **{}**",
        'The answer is: "{}".',
        "thus the final answer is {}\nmore",
    ):
        assert extract_short(frame.format(word)) == word
