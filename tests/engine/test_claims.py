"""The marks of a full answer: each stays, comes or goes by what its passage holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindchat.engine.claims import check, likest
from mindchat.text.language import language

from ..fakes import CURIE, LANG, METROPOLIS, passage

EN = language("en")
READ = (METROPOLIS, LANG, CURIE)


@pytest.mark.parametrize(
    ("said", "shown", "cited", "unsupported"),
    [
        (
            "Fritz Lang was born in Vienna [1].",
            "Fritz Lang was born in Vienna [1].",
            ["p2"],
            0,
        ),  # the model counts from 0, people from 1
        ("Fritz Lang was born in Vienna.", "Fritz Lang was born in Vienna [1].", ["p2"], 0),  # no mark: it gets one
        (
            "Fritz Lang was born in Vienna [0].",
            "Fritz Lang was born in Vienna [1].",
            ["p2"],
            0,
        ),  # the wrong one: the right one
        ("Fritz Lang was born in Vienna [9].", "Fritz Lang was born in Vienna [1].", ["p2"], 0),  # names no passage
        (
            "Fritz Lang was born in Berlin [1].",
            "Fritz Lang was born in Berlin.",
            [],
            1,
        ),  # the name does not stand there
        ("Fritz Lang was born in 1891 [1].", "Fritz Lang was born in 1891.", [], 1),  # nor the number
        (
            "Fritz Lang was born in Vienna. [1]",
            "Fritz Lang was born in Vienna [1].",
            ["p2"],
            0,
        ),  # a mark behind the full stop
        ("[1] Fritz Lang was born in Vienna.", "Fritz Lang was born in Vienna [1].", ["p2"], 0),
        ("According to Document [1], Fritz Lang was born in Vienna.", "Fritz Lang was born in Vienna [1].", ["p2"], 0),
        ("Metropolis was directed by Fritz Lang [0][1].", "Metropolis was directed by Fritz Lang [1].", ["p1"], 0),
        (
            "The director of Metropolis, Fritz Lang, was born in Vienna in 1890.",
            "The director of Metropolis, Fritz Lang, was born in Vienna in 1890 [1] [2].",
            ["p1", "p2"],
            0,
        ),
        (
            "He was born on 5 December 1890 in Warsaw.",
            "He was born on 5 December 1890 in Warsaw.",
            [],
            1,
        ),  # two passages blended
        ("He was born on 5 December 1890 in Warsaw [1][2].", "He was born on 5 December 1890 in Warsaw.", [], 1),
        (
            "Fritz Lang liked tulips and bicycles very much.",
            "Fritz Lang liked tulips and bicycles very much.",
            [],
            1,
        ),  # the name alone is not enough
        ("That is all.", "That is all.", [], 0),
        (
            "Metropolis was directed by Fritz Lang. He was born in Vienna on 5 December 1890.",
            "Metropolis was directed by Fritz Lang [1]. He was born in Vienna on 5 December 1890 [2].",
            ["p1", "p2"],
            0,
        ),
        ("- Marie Curie was born in Warsaw\n- Fritz Lang was born in Vienna", None, ["p3", "p2"], 0),
        ("1. Marie Curie was born in Warsaw.\n2. Fritz Lang was born in Vienna.", None, ["p3", "p2"], 0),
        ("```\nprint('Fritz Lang', x[1])\n```", "```\nprint('Fritz Lang', x[1])\n```", [], 0),  # code stays as it is
        ("", "", [], 0),
    ],
)
def test_marks_are_what_the_passages_bear(said: str, shown: str | None, cited: list[str], unsupported: int) -> None:
    found = check(said, READ, EN)
    if shown is not None:
        assert found.text == shown
    assert [citation.passage for citation in found.citations] == cited
    assert len(found.unsupported) == unsupported
    assert [citation.n for citation in found.citations] == list(range(1, len(cited) + 1))


def test_lists_keep_their_shape() -> None:
    found = check("1. Marie Curie was born in Warsaw.\n2. Fritz Lang was born in Vienna.", READ, EN)
    assert found.text == "1. Marie Curie was born in Warsaw [1].\n2. Fritz Lang was born in Vienna [2]."


def test_a_quote_is_the_likest_sentence_at_its_place_in_the_document() -> None:
    text = "Fritz Lang made films. He was born in Vienna on 5 December 1890. He died in Beverly Hills."
    far = passage("p9", text, "Fritz Lang", 40)
    (citation,) = check("Fritz Lang was born in Vienna in 1890.", [far], EN).citations
    document = " " * 40 + text
    assert citation.quote == document[citation.start : citation.end] == "He was born in Vienna on 5 December 1890."
    assert citation.by == "span"
    assert check("Fritz Lang was born in Vienna [0].", [far], EN).citations[0].by == "model"


@given(st.text(max_size=60), st.lists(st.text(max_size=40), max_size=3))
def test_checking_never_fails_and_every_mark_has_its_citation(said: str, texts: list[str]) -> None:
    read = [passage(f"p{n}", text) for n, text in enumerate(texts)]
    found = check(said, read, EN)
    for citation in found.citations:
        (source,) = [p for p in read if p.id == citation.passage]
        assert source.text[citation.start : citation.end] == citation.quote
    assert 0 <= len(found.unsupported) <= found.sentences


@given(st.text(max_size=30), st.text(max_size=60))
def test_the_likest_sentence_lies_in_the_text(sentence: str, text: str) -> None:
    start, end = likest(sentence, text, EN)
    assert 0 <= start <= end <= len(text)
