"""Extraction: what parses is kept, what breaks is counted, nothing crashes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindchat.entities.extract import MAX_ENTITIES, ModelExtractor, parse
from mindchat.events import EntitiesExtracted, QueryFormed
from mindchat.models.scripted import Reply
from mindchat.text.language import language
from mindchat.text.names import find_names
from mindchat.values import Relation, TurnState

from ..fakes import ask, config, draft, of, run

EN = language("en")
QUESTION = "Who is the mother of the director of Metropolis?"
SENTENCE = draft(
    (" Metropolis", 0.1),
    (" was", 0.1),
    (" directed", 0.1),
    (" by", 0.1),
    (" Fritz", 1.0, 0.5),
    (" Lang", 0.25, 0.5),
    (" in", 0.1),
    (" 1927", 2.0),
    (".", 0.1),
)
HOP = TurnState(1, QUESTION)


def extract(reply: str) -> tuple[list[str], bool]:
    found = ModelExtractor(config()).extract(SENTENCE, HOP, ask([reply]))
    return [entity.text for entity in found.entities], found.fallback


def test_names_and_relations_of_one_line() -> None:
    names, relations = parse(" Metropolis; Fritz Lang | Fritz Lang - mother; Metropolis - director - Fritz Lang")
    assert names == ["Metropolis", "Fritz Lang"]
    assert relations == [Relation("Fritz Lang", "mother"), Relation("Metropolis", "director", "Fritz Lang")]


@pytest.mark.parametrize(
    ("raw", "names"),
    [
        ("Names: Fritz Lang", ["Fritz Lang"]),
        ("entities: Fritz Lang; Vienna", ["Fritz Lang", "Vienna"]),
        ('["Fritz Lang"]', ["Fritz Lang"]),
        ("Fritz Lang, Vienna", ["Fritz Lang", "Vienna"]),
        ("Sammy Davis, Jr; Vienna", ["Sammy Davis, Jr", "Vienna"]),
        ("", []),
        ("\n\n", []),
        ("|", []),
        ("; ; ;", []),
    ],
)
def test_tolerant_parsing(raw: str, names: list[str]) -> None:
    assert parse(raw)[0] == names


def test_a_name_that_nobody_wrote_is_not_taken() -> None:
    assert extract(" Fritz Lang; Thea von Harbou") == (["Fritz Lang", "Metropolis"], False)


def test_the_names_of_the_question_are_anchors_without_a_span() -> None:
    found = ModelExtractor(config()).extract(SENTENCE, HOP, ask([" Metropolis; Fritz Lang"]))
    spans = {entity.text: entity.span for entity in found.entities}
    assert spans["Metropolis"] is None
    assert spans["Fritz Lang"] is not None
    assert (
        "".join(token.text for token in SENTENCE.tokens[spans["Fritz Lang"].start : spans["Fritz Lang"].end])
        == " Fritz Lang"
    )


def test_confidence_of_a_span_with_every_aggregate() -> None:
    found = ModelExtractor(config()).extract(SENTENCE, HOP, ask([" Fritz Lang"]))
    lang = next(entity for entity in found.entities if entity.text == "Fritz Lang")
    first, second = 1 / 2 + 0.2 * 0.5, 1 / 1.25 + 0.2 * 0.5
    assert dict(lang.aggregates) == pytest.approx(
        {"max": second, "mean": (first + second) / 2, "min": first, "first": first}
    )
    assert lang.confidence == pytest.approx(second)


def test_broken_output_falls_back_to_the_spans_of_the_sentence() -> None:
    names, fallback = extract("{]]: nope")
    assert fallback
    assert names == ["Metropolis", "Fritz Lang", "1927"]


def broken_replies(n: int) -> list[str]:
    """Replies as small models write them: cut JSON, loops, prose, markup, controls, other scripts."""
    shuffle = random.Random(36)
    pieces = [
        '{"entities": [',
        '"Fritz Lang"',
        "]}",
        "```json",
        "Names:",
        "|",
        ";",
        " - ",
        "\x1b[31m",
        "\u202e",
        "None",
        "[]",
        "🙂",
        "弗里茨",
        "\n",
        "1.",
        "{" * 9,
        "Ann Droid",
        "Metropolis",
        "'",
        "\\u00",
        ":::",
    ]
    return ["".join(shuffle.choice(pieces) for _ in range(shuffle.randrange(12))).replace("{", "(") for _ in range(n)]


def test_two_hundred_broken_replies_never_crash_and_never_leave_an_empty_query() -> None:
    fallbacks = 0
    for number, reply in enumerate(broken_replies(200)):
        tape = [
            "Metropolis was directed by Ann{9,0.9} Droid someday.",
            Reply(reply),
            Reply(reply),
            Reply(reply),
            "So the answer is Lang.",
            "Lang",
        ]
        events = run(QUESTION, [*tape], "engine.filter=cot", "rind.fixed=1", "rind.threshold=fixed")
        assert events[-1].__class__.__name__ == "AnswerReady", (number, reply, events[-1])
        assert all(event.query.text.strip() for event in of(events, QueryFormed))
        (found,) = of(events, EntitiesExtracted)
        assert found.entities, "the question's own names are always there"
        fallbacks += found.fallback
    assert 0 < fallbacks < 200, "broken replies are counted, usable ones are used"


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=120))
def test_any_text_parses_to_names_that_are_not_empty(raw: str) -> None:
    names, relations = parse(raw)
    assert all(name.strip() for name in names)
    assert all(relation.subject and relation.predicate for relation in relations)


def test_no_more_entities_than_the_limit() -> None:
    names = "; ".join(f"Name{n}" for n in range(30))
    sentence = draft(*[(f" Name{n}", 0.5) for n in range(30)])
    found = ModelExtractor(config()).extract(sentence, TurnState(1, "Which?"), ask([names]))
    assert len(found.entities) == MAX_ENTITIES


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The director of “Das Boot” was Wolfgang Petersen.", ["Das Boot", "Wolfgang Petersen"]),
        (
            "Ludwig van Beethoven was born in Bonn on 17 December 1770.",
            ["Ludwig van Beethoven", "Bonn", "17 December 1770"],
        ),
        ("It was made in 1927 by him.", ["1927"]),
        ("Łódź lies in Poland.", ["Łódź", "Poland"]),
        ("《红楼梦》 is a novel.", ["红楼梦"]),
        ("nothing here at all", []),
        ("", []),
    ],
)
def test_names_without_a_model(text: str, names: list[str]) -> None:
    assert [name for name, _, _, _ in find_names(text, EN)] == names
    assert all(text[start:end] == name for name, start, end, _ in find_names(text, EN))
