"""Plans followed over small worlds: what is wanted, what is found, and where a way ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from mindchat.chain.follow import Followed, Supplied, Unread, Wanted, follow
from mindchat.chain.naming import bearers, gender, likeness, told_of
from mindchat.chain.parse import parse
from mindchat.chain.reading import Reading
from mindchat.values import Fact, Passage, Span

from ..fakes import passage

DAWN = passage("d", "Dawn is a 1931 German film directed by Ada Stone.", "Dawn")
DUSK = passage("u", "Dusk is a 1933 French film directed by Karl Berg.", "Dusk (1933 film)")
ADA = passage(
    "a",
    "Ada Stone (3 May 1890 – 1 June 1950) was a Polish director. Born in Lund, she was a daughter of Tom Stone and Joy Hale.",
    "Ada Stone",
)
KARL = passage(
    "k", "Karl Berg (born 1888) was a Polish director. His father, Ivo Berg, was a smith.", "Karl Berg (director)"
)
OTHER = passage("o", "Karl Berg (born 1950) is a Swiss skier.", "Karl Berg (skier)")
JOY = passage("j", "Joy Hale was a singer. She sang in Rome and her voice was praised.", "Joy Hale")
WORLD = (DAWN, DUSK, ADA, KARL, OTHER, JOY)


def found(
    question: str, world: Sequence[Passage] = WORLD, supply: Callable[[Wanted | Unread], Supplied] | None = None
) -> tuple[Followed, list[Wanted | Unread]]:
    """The first plan that is answered, else the last; and all that was wanted."""
    wants: list[Wanted | Unread] = []
    end = Followed("", ())
    for plan in parse(question):
        way = follow(plan, ())
        try:
            wanted = next(way)
            while True:
                wants.append(wanted)
                named = isinstance(wanted, Wanted) and not wanted.here
                given = supply(wanted) if supply else Supplied(tuple(world) if named else ())
                wanted = way.send(given)
        except StopIteration as stop:
            end = stop.value
        if end.answer:
            break
    return end, wants


ANSWERS = {
    "Who directed Dawn?": "Ada Stone",
    "Where was the director of film Dawn born?": "Lund",
    "When did the director of Dawn die?": "1 June 1950",
    "Who is the father of the director of film Dusk?": "Ivo Berg",
    "Who is Ada Stone's mother?": "Joy Hale",
    "Which film has the director who was born first, Dawn or Dusk?": "Dusk",
    "Which film has the director who was born later, Dawn or Dusk?": "Dawn",
    "Which film was released earlier, Dawn or Dusk?": "Dawn",
    "Are both films Dawn and Dusk from the same country?": "no",
    "Do both films Dawn and Dusk have the directors from the same country?": "yes",
    "Are Ada Stone and Karl Berg from the same country?": "",
    "Who lived longer, Ada Stone or Karl Berg?": "",
    "Where was the director of Dusk born?": "",
}


@pytest.mark.parametrize("question", ANSWERS)
def test_answers(question: str) -> None:
    assert found(question)[0].answer == ANSWERS[question]


def test_every_step_stands_where_it_says() -> None:
    end, _ = found("Where was the director of film Dawn born?")
    assert [(step.subject, step.relation, step.value) for step in end.steps] == [
        ("Dawn", "director", "Ada Stone"),
        ("Ada Stone", "place_of_birth", "Lund"),
    ]
    for step in end.steps:
        text = step.passage.text
        assert text[step.start - step.passage.start : step.end - step.passage.start] == step.value
        assert step.value in text[step.sentence.start - step.passage.start : step.sentence.end - step.passage.start]


def test_an_open_slot_is_named_and_what_was_filled_stays() -> None:
    end, wants = found("Where was the director of Dusk born?")
    assert end.open == ("Karl Berg", "place_of_birth")
    assert [step.value for step in end.steps] == ["Karl Berg"]
    assert isinstance(wants[-1], Unread)
    assert [p.title for p in wants[-1].passages] == ["Karl Berg (director)"]


def test_of_namesakes_the_one_that_fits_what_led_there_is_meant() -> None:
    speaks = passage("k2", "Karl Berg (born 1901) was a director, known for Dusk.", "Karl Berg (artist)")
    plain = passage("k3", "Karl Berg (born 1950) is a Swiss skier.", "Karl Berg (skier)")
    end, _ = found("When was the director of Dusk born?", (DUSK, speaks, plain))
    assert end.answer == "1901"
    assert found("When was Karl Berg born?", (speaks, plain))[0].answer == ""


def test_a_slot_that_no_pattern_reads_may_be_read_by_a_model() -> None:
    def supply(wanted: Wanted | Unread) -> Supplied:
        if isinstance(wanted, Unread):
            at = KARL.text.index("smith")
            return Supplied(read=(KARL, Reading("smith", at, at + 5, Span(0, len(KARL.text)), 0)))
        return Supplied(WORLD)

    end, _ = found("Where was the director of Dusk born?", supply=supply)
    assert end.answer == "smith"
    assert [step.by_model for step in end.steps] == [False, True]


def test_a_fact_of_memory_serves_a_slot() -> None:
    fact = Fact("f1", "Dusk", "director", "Karl Berg", 0.97, passage="u", quote=DUSK.text)

    def supply(wanted: Wanted | Unread) -> Supplied:
        first = isinstance(wanted, Wanted) and wanted.relation == "director"
        return Supplied((DUSK,), (fact,)) if first else Supplied(WORLD)

    end, _ = found("Who is the father of the director of film Dusk?", supply=supply)
    assert end.answer == "Ivo Berg"
    assert [step.remembered for step in end.steps] == [fact, None]


def test_a_way_never_comes_back_to_where_it_was() -> None:
    loop = passage("l", "Tom Reed was a smith. His father, Tom Hale, was a smith.", "Tom Reed")
    back = passage("b", "Tom Hale was a smith. His father, Tom Reed, was a smith.", "Tom Hale")
    assert found("Who is the paternal grandfather of Tom Reed?", (loop, back))[0].answer == ""


def test_dates_of_which_one_is_only_the_year_are_not_told_apart() -> None:
    one = passage("1", "Ann Low (born 1950) is a singer.", "Ann Low")
    two = passage("2", "Bob Low (born 3 May 1950) is a singer.", "Bob Low")
    assert found("Who is older, Ann Low or Bob Low?", (one, two))[0].answer == ""


LIKE = [
    ("Karl Berg", "Karl Berg", True),
    ("Karl Berg", "Karl Berg (director)", True),
    ("Émile Chautard", "Emile Chautard", True),
    ("William E. Bell", "William Edwin Bell", True),
    ("King Heraclius II of Georgia", "Heraclius II of Georgia", True),
    ("Bogislaw IV", "Bogislaw IV, Duke of Pomerania", True),
    ("Drusus Caesar", "Drusus Julius Caesar", True),
    ("National Theatre Tibor Frešo", "Tibor Frešo", True),
    ("Karl Berg", "Karl Bergman", False),
    ("Karl Berg", "Ivo Berg", False),
    ("Henry", "Henry King", False),
    ("King Henry", "King", False),
]


@pytest.mark.parametrize(("name", "title", "alike"), LIKE)
def test_names_and_titles(name: str, title: str, alike: bool) -> None:
    assert (likeness(name, title) >= 1) == alike


def test_a_year_in_the_question_chooses_the_title() -> None:
    old, new = passage("1", "Dawn is a film.", "Dawn (1916 film)"), passage("2", "Dawn is a film.", "Dawn (1923 film)")
    assert bearers("Dawn", (old, new), "1923 Film") == [new]
    assert bearers("Dawn", (old, new)) == []


def test_gender() -> None:
    assert gender("Queen Ann", ()) == "female"
    assert gender("Joy Hale", (JOY,)) == "female"
    assert gender("Karl Berg", (KARL,)) == "male"
    assert gender("Karl Berg", ()) == ""


NOTES = passage(
    "n",
    "# People\n\nMarta Lindqvist was born in Uppsala in 1931. She died in Lund. Per Holm was born in Rome.",
    "People",
    start=100,
)


def test_a_note_about_several_people_tells_of_each() -> None:
    (told,) = told_of("Marta Lindqvist", (NOTES,))
    assert told.text == "Marta Lindqvist was born in Uppsala in 1931. She died in Lund."
    assert NOTES.text[told.start - NOTES.start : told.end - NOTES.start] == told.text
    assert told_of("Marta", (NOTES,)) == []
    assert told_of("Marta Lindqvist", (NOTES, passage("m", NOTES.text, "Others"))) == []


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("Where was Marta Lindqvist born?", "Uppsala"),
        ("Where did Marta Lindqvist die?", "Lund"),
        ("Where was Per Holm born?", "Rome"),
    ],
)
def test_it_is_read_there_and_cited_at_its_place_in_the_document(question: str, value: str) -> None:
    end, _ = found(question, (NOTES,))
    assert end.answer == value
    (step,) = end.steps
    assert NOTES.text[step.start - NOTES.start : step.end - NOTES.start] == value


def test_what_is_told_of_another_is_not_taken() -> None:
    assert found("Where did Per Holm die?", (NOTES,))[0].answer == ""
