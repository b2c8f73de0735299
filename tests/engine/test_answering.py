"""Citations, and names that were not read about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindchat.engine.answering import cite, locate, unread
from mindchat.events import Notice
from mindchat.text.language import language

from ..fakes import LANG, METROPOLIS, WORLD, ListRetriever, of, passage, run


@pytest.mark.parametrize(
    ("answer", "text", "quote"),
    [
        ("Vienna", "He was born in Vienna.", "Vienna"),
        ("vienna", "He was born in Vienna.", "Vienna"),
        ("Tremoille", "Louis de la Trémoille died.", "Trémoille"),
        ("Fritz Lang", "by Fritz\n  Lang in 1927", "Fritz\n  Lang"),
        ("STRASSE", "die Straße dort", "Straße"),
        ("D.C.", "Washington, D.C. is", "D.C."),
        ("12", "on 12 May 1912", "12"),
        ("ﬁlm", "a film here", "film"),
    ],
)
def test_where_an_answer_stands(answer: str, text: str, quote: str) -> None:
    span = locate(answer, text)
    assert span is not None
    assert text[span[0] : span[1]] == quote


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("art", "a party"),
        ("12", "in 1912"),
        ("Rome", "in Romeo"),
        ("x", ""),
        ("", "text"),
        ("Paris", "no such place"),
        (" ", "a b"),
    ],
)
def test_what_does_not_stand_there_as_whole_words(answer: str, text: str) -> None:
    if answer.strip():
        assert locate(answer, text) is None


@given(st.text(min_size=1, max_size=12), st.text(max_size=40))
def test_locating_never_fails_and_never_leaves_the_text(answer: str, text: str) -> None:
    span = locate(answer, text)
    assert span is None or 0 <= span[0] <= span[1] <= len(text)


def test_offsets_are_those_of_the_document() -> None:
    (citation,) = cite("Vienna", "Vienna", [METROPOLIS, LANG])
    assert (citation.document, citation.passage, citation.quote, citation.by) == ("p2.txt", "p2", "Vienna", "span")
    document = " " * LANG.start + LANG.text
    assert document[citation.start : citation.end] == "Vienna"


def test_the_models_own_marks_name_passages_by_their_number() -> None:
    found = cite("nobody", "nobody [1] said so [7]", [METROPOLIS, LANG])
    assert [(c.n, c.passage, c.by) for c in found] == [(1, "p2", "model")]


def test_yes_and_no_are_not_looked_for() -> None:
    assert cite("no", "no", [passage("p", "there is no doubt")]) == ()


def test_the_same_place_is_cited_once() -> None:
    both = [passage("a", "Vienna", start=0), passage("a", "Vienna", start=0)]
    assert len(cite("Vienna", "Vienna", both)) == 1


def test_a_sentence_is_cited_by_what_it_adds_to_the_question() -> None:
    sentence = "The film Metropolis was directed by Fritz Lang."
    citations = cite(sentence, sentence, WORLD, ["Fritz Lang"])
    assert [(c.quote, c.passage) for c in citations] == [("Fritz Lang", "p1")]
    assert cite("Fritz Lang", "Fritz Lang", WORLD, ["Vienna"]) == cite("Fritz Lang", "Fritz Lang", WORLD)
    assert cite("A thing nobody wrote", "", WORLD, ["Nobody Here"]) == ()


# ── names that were not read about
# ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("Where was the director of Metropolis born?", []),
        ("Where was the director of Nosferatu born?", ["Nosferatu"]),
        ("Was Fritz Lang older than Friedrich Murnau?", ["Friedrich Murnau"]),
        ("Was Fritz Murnau a director?", []),  # one of its words was read about: no claim is made
        ("According to the text, who directed METROPOLIS?", []),
        ("who was it?", []),
    ],
)
def test_names_that_nothing_read_names(question: str, missing: list[str]) -> None:
    assert unread(question, [METROPOLIS, LANG], language("en")) == missing


def test_names_are_compared_without_case_accents_and_plural() -> None:
    assert (
        unread(
            "Did the Trémoilles live in Thouars?",
            [passage("p", "The House of La Tremoille, lords of thouars.")],
            language("en"),
        )
        == []
    )


def test_an_answer_about_what_was_not_read_says_so() -> None:
    for name, said in (("Metropolis", []), ("Nosferatu", ["Nothing that was read names “Nosferatu”."])):
        events = run(
            f"Who directed the film {name}?",
            ["Fritz Lang"],
            "engine.policy=once",
            retriever=ListRetriever([METROPOLIS]),
        )
        assert [notice.text for notice in of(events, Notice) if "names" in notice.text] == said
