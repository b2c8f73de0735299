"""Objects located in passages; hedges, fiction, wrong types and wrong events refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindchat.memory.learning.grounding import ground
from mindchat.memory.learning.slots import parse
from mindchat.text.folding import norm
from mindchat.text.language import language
from mindchat.text.typed_spans import iso_date, names, type_ok, value_norm
from mindchat.values import Draft, Passage

from ..conftest import ACTRESS, FILM, PERSON


def passage(text: str, title: str = "Title") -> Passage:
    return Passage("p", "/d", title, text, 0, len(text), rank=1)


def claim(question: str, answer: str, *passages: Passage):  # type: ignore[no-untyped-def]
    slot = parse(question)
    assert slot is not None
    return ground(slot, Draft(answer), passages)


def test_the_object_is_a_slice_of_the_passage() -> None:
    found, _ = claim("Who directed Polish-Russian War?", "It was directed by Xawery Zulawski.", passage(FILM))
    assert found is not None
    assert found.object == FILM[found.place.start : found.place.end] == "Xawery Żuławski"
    assert found.grounding == 1, "found after folding only"
    assert found.quote == "Polish-Russian War is a 2009 Polish film directed by Xawery Żuławski."
    assert found.subject_near
    assert found.cued


def test_the_subject_may_be_the_title() -> None:
    found, _ = claim(
        "Where was Małgorzata Braunek born?", "She was born in Szamotuły.", passage(ACTRESS, "Małgorzata Braunek")
    )
    assert found is not None
    assert not found.subject_near
    assert (
        claim(
            "Where was Małgorzata Braunek born?",
            "She was born in Szamotuły.",
            passage(ACTRESS.replace("Małgorzata Braunek", "She"), "Other"),
        )[1]
        == "no_subject"
    )


@pytest.mark.parametrize(
    ("question", "answer", "text", "reason"),
    [
        (
            "Who is the father of Ann Lee?",
            "The father of Ann Lee is Bob Lee.",
            "Ann Lee may be the daughter of Bob Lee.",
            "hedged",
        ),
        (
            "Who is the father of Ann Lee?",
            "The father of Ann Lee is Bob Lee.",
            "Ann Lee is not the daughter of Bob Lee.",
            "hedged",
        ),
        (
            "Who is the father of Ann Lee?",
            "The father of Ann Lee is Bob Lee.",
            "Ann Lee plays the daughter of Bob Lee in the film.",
            "hedged",
        ),
        (
            "Who is the father of Ann Lee?",
            "The father of Ann Lee is Bob Lee.",
            "Is Ann Lee the daughter of Bob Lee?",
            "hedged",
        ),
        (
            "Who is the father of Ann Lee?",
            "The father of Ann Lee is reportedly Bob Lee.",
            "Ann Lee is the daughter of Bob Lee.",
            "hedged",
        ),
        (
            "Who is the father of Ann Lee?",
            "The father of Ann Lee is Carl Lee.",
            "Ann Lee is the daughter of Bob Lee.",
            "ungrounded",
        ),
        ("Who is the father of Ann Lee?", "Ann Lee.", "Ann Lee is the daughter of Bob Lee.", "no_object"),
        ("When was Ann Lee born?", "In Paris.", "Ann Lee was born in Paris.", "no_object"),
        ("When was Ann Lee born?", "In 1990.", "Ann Lee (1900 – 1990) was a singer.", "other_relation"),
        (
            "When did Ann Lee die?",
            "On 3 May 1900.",
            "Ann Lee was born on 3 May 1900 and died in 1990.",
            "other_relation",
        ),
        (
            "Who directed Red Moon?",
            "It was directed by Soviet.",
            "Red Moon is a Soviet film directed by Ann Lee.",
            "type",
        ),
    ],
)
def test_refusals(question: str, answer: str, text: str, reason: str) -> None:
    assert claim(question, answer, passage(text)) == (None, reason)


def test_hedges_in_titles_and_the_month_of_may_are_no_hedges() -> None:
    text = '"Don\'t Tell Me" is a song by Ann Lee released on 3 May 1990.'
    found, reason = claim("Who performed Don't Tell Me?", "It was performed by Ann Lee.", passage(text))
    assert found is not None, reason


def test_life_spans() -> None:
    text = "Ann Lee (3 May 1900 – 4 June 1990) was a singer."
    born, _ = claim("When was Ann Lee born?", "Ann Lee was born on 3 May 1900.", passage(text))
    died, _ = claim("When did Ann Lee die?", "Ann Lee died on 4 June 1990.", passage(text))
    assert born is not None
    assert died is not None
    assert (born.object_norm, died.object_norm) == ("1900-05-03", "1990-06-04")


def test_a_person_grows_to_the_full_name_and_a_place_does_not() -> None:
    found, _ = claim("Who directed Polish-Russian War?", "It was directed by Żuławski.", passage(FILM))
    assert found is not None
    assert found.object == "Xawery Żuławski"
    text = "Ann Lee was born near Paris Hilton Hotel."
    assert claim("Where was Ann Lee born?", "Ann Lee was born in Paris.", passage(text)) == (None, "ungrounded")


def test_a_person_is_no_sentence() -> None:
    assert not type_ok("Answer the question based on the given documents", "person")
    for name in ("Otto von Bismarck", "Alexander the Great", "Beatrix de la Cour", "村上春樹", "Ann Lee, Jr."):
        assert type_ok(name, "person"), name


@pytest.mark.parametrize("mark", ["'", "’"])
def test_the_ending_of_a_possessive_is_not_part_of_a_person(mark: str) -> None:
    found, _ = claim("Who is the father of Ann Lee?", "Bob Lee", passage(f"Bob Lee{mark}s daughter Ann Lee sings."))
    assert found is not None
    assert (found.object, found.object_norm) == ("Bob Lee", "bob lee")


def test_distractors_are_other_values_of_the_same_type() -> None:
    found, _ = claim(
        "Who is the mother of Xawery Żuławski?", "His mother is Małgorzata Braunek.", passage(PERSON, "Xawery Żuławski")
    )
    assert found is not None
    assert found.object == "Małgorzata Braunek"
    assert "Andrzej Żuławski" in found.distractors
    assert len(found.distractors) <= 2


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80), st.sampled_from(["Bob Lee", "Żuławski", "東京"]), st.text(max_size=80))
def test_quotes_are_slices_whatever_stands_around(before: str, name: str, after: str) -> None:
    text = f"{before} Ann Lee is the daughter of {name}. {after}"
    found, _ = claim("Who is the father of Ann Lee?", f"Her father is {name}.", passage(text))
    if found is not None:
        assert text[found.place.start : found.place.end] == found.object
        assert found.sentence.start <= found.place.start < found.place.end <= found.sentence.end
        assert len(found.quote) <= 400


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("22 December 1971", "1971-12-22"),
        ("December 22, 1971", "1971-12-22"),
        ("May 1900", "1900-05"),
        ("1971", "1971"),
        ("1971-12-22", "1971-12-22"),
        ("soon", None),
    ],
)
def test_dates(text: str, iso: str | None) -> None:
    assert iso_date(text) == iso


def test_types_and_spans() -> None:
    assert type_ok("Ann Lee", "person")
    for bad in ("American", "actor", "ann lee", "Route 66", "x" * 81, "the"):
        assert not type_ok(bad, "person"), bad
    assert not type_ok("yesterday", "any")
    assert not type_ok("last year", "any")
    assert not type_ok("December 1971", "place")
    assert type_ok("12,000", "number")
    assert value_norm("12,000", "number") == "12000"
    text = "The son of Moctezuma II and Ann Lee met Jean de La Trémoille in St. Louis. He left."
    found = [text[s.start : s.end] for s in names(text)]
    assert {"Moctezuma II", "Ann Lee", "Jean de La Trémoille", "St. Louis"} <= set(found)
    assert [text[s.start : s.end] for s in language("en").sentence_spans(text)] == [text[:-9], "He left."]
    assert norm("He") not in map(norm, found)


@pytest.mark.parametrize(
    ("question", "answer", "text", "stored", "normal"),
    [
        ("What is the nationality of Ann Lee?", "France", "Ann Lee is a French director.", "French", "france"),
        (
            "What is the nationality of Ann Lee?",
            "Ann Lee is American.",
            "Ann Lee was born in the United States.",
            "United States",
            "united states",
        ),
        (
            "Where was Ann Lee born?",
            "Montreal, Quebec",
            "Ann Lee was born in Montreal, Quebec, in 1950.",
            "Montreal, Quebec",
            "montreal quebec",
        ),
        (
            "Where did Ann Lee die?",
            "Ann Lee died in Salinas, California.",
            "Ann Lee died in Salinas, California.",
            "Salinas",
            "salinas",
        ),
        (
            "Who is the spouse of Ann Lee?",
            "Ugo, Duke of Aosta.",
            "Ann Lee married Ugo, Duke of Aosta.",
            "Ugo, Duke of Aosta",
            "ugo duke of aosta",
        ),
    ],
)
def test_a_short_answer_is_the_object(question: str, answer: str, text: str, stored: str, normal: str) -> None:
    found, reason = claim(question, answer, passage(text))
    assert found is not None, reason
    assert (found.object, found.object_norm) == (stored, normal)
    assert text[found.place.start : found.place.end] == stored
    assert found.grounding == (2 if stored in answer else 1)


def test_an_adjective_is_a_country_only_where_a_country_is_asked_for() -> None:
    assert claim("Where was Ann Lee born?", "France", passage("Ann Lee is a French director."))[0] is None
