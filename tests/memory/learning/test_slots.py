"""Subject and relation of a sub-question, by table only."""

from __future__ import annotations

import time

import pytest

from mindchat.errors import UsageError
from mindchat.memory.learning.slots import find_predicate, parse, predicates, relation_words


@pytest.mark.parametrize(
    ("question", "subject", "predicate"),
    [
        ("Who is the mother of Xawery Żuławski?", "Xawery Żuławski", "mother"),
        ("Xawery Żuławski mother", "Xawery Żuławski", "mother"),
        ("Xawery Żuławski's mother", "Xawery Żuławski", "mother"),
        ("director of Polish-Russian War", "Polish-Russian War", "director"),
        ("Who directed the film Polish-Russian War (film)?", "Polish-Russian War", "director"),
        ("Polish-Russian War was directed by", "Polish-Russian War", "director"),
        ("When was Andrew Lau born?", "Andrew Lau", "date_of_birth"),
        ("Where was Paco Godia born?", "Paco Godia", "place_of_birth"),
        ("Lagos >> country", "Lagos", "country"),
        ("What is Đakovo Cathedral named after?", "Đakovo Cathedral", "named_after"),
        ("Who is Elvis Presley’s father?", "Elvis Presley", "father"),
        ("The father of Chiang Hsiao-wen is whom?", "Chiang Hsiao-wen", "father"),
        ("What state is Redan High School located in?", "Redan High School", "located_in"),
        ("what is the name of the father of Louis XIV", "Louis XIV", "father"),
        ("Who founded Arthur's Magazine?", "Arthur's Magazine", "founder"),
        ("When did Marie Curie die?", "Marie Curie", "date_of_death"),
        ("who wrote Don Quixote", "Don Quixote", "author"),
        ("Who directed King Kong?", "King Kong", "director"),
        ("Who directed City of God?", "City of God", "director"),
        ("Who directed the 1976 film King Kong?", "King Kong", "director"),
        ("Who directed the American silent film 'Sunrise'?", "Sunrise", "director"),
    ],
)
def test_a_simple_question_has_one_slot(question: str, subject: str, predicate: str) -> None:
    slot = parse(question)
    assert slot is not None
    assert (slot.subject, slot.predicate.name) == (subject, predicate)


@pytest.mark.parametrize(
    "question",
    [
        "Who is the mother of the director of Polish-Russian War?",
        "What is the date of birth of the director of Foo?",
        "When was he born?",
        "Who is his father?",
        "Who is the father of #1?",
        "Who is tall?",
        "Are both films by the same director?",
        "",
        "x" * 1000,
        "Hello, how are you?",
    ],
)
def test_a_nested_vague_or_unknown_question_has_none(question: str) -> None:
    assert parse(question) is None


def test_parsing_a_hostile_question_is_quick() -> None:
    began = time.perf_counter()
    for text in ("what is the " * 19, "of " * 79, "' s's " * 39, "a" * 239):
        parse(text)
    assert time.perf_counter() - began < 2


def test_the_table_is_consistent() -> None:
    table = predicates()
    kinds = {"person", "place", "org", "work", "event", "date", "number", "any"}
    assert len(table) >= 45
    for name, predicate in table.items():
        assert predicate.name == name
        assert predicate.range in kinds
        assert predicate.domain in kinds
        assert not predicate.inverse or predicate.inverse in table
        assert predicate.mutable or predicate.ttl_days is None
        assert all("{s}" in template for template in predicate.ask)
    two_wiki = (
        "director composer performer publisher spouse father mother founder producer country child sibling employer"
        " inception"
    )
    assert set(two_wiki.split()) <= set(table)


@pytest.mark.parametrize("name", [p.name for p in predicates().values() if p.kind == "document" and p.nouns])
def test_every_predicate_answers_to_its_own_question(name: str) -> None:
    predicate = predicates()[name]
    slot = parse(predicate.question("Foo Bar"))
    assert slot is not None
    assert slot.subject == "Foo Bar"
    for template in predicate.ask:
        slot = parse(template.replace("{s}", "Foo Bar"))
        assert slot is not None, template
        assert slot.subject == "Foo Bar", template


def test_a_user_names_a_predicate_by_any_of_its_words() -> None:
    assert find_predicate("Place of Birth").name == "place_of_birth"
    assert find_predicate("birthplace").name == "place_of_birth"
    with pytest.raises(UsageError) as caught:
        find_predicate("directr")
    assert "director" in caught.value.hint
    assert "director" in relation_words()
