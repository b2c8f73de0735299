"""What sentences state, by table: right readings, and sentences that state something else."""

from __future__ import annotations

import random
import time

import pytest

from mindchat.chain.reading import read, stating
from mindchat.memory.learning.slots import predicates

from ..fakes import passage

STATED = [
    ("director", "Dawn", "Dawn is a 1931 German film directed by Ada Stone and starring Ben Frost.", "Ada Stone"),
    ("director", "Dawn", "Dawn is a film. Directed by the Polish film-maker Ada Stone, it won a prize.", "Ada Stone"),
    ("director", "Dawn", "Dawn is a film by Quebec film director Denys Marchand.", "Denys Marchand"),
    ("director", "Dawn", "Dawn is a comedy. Ada Stone, its director, was past sixty.", "Ada Stone"),
    ("publication_date", "Dawn", "Dawn, a drama of 1948, opens a trilogy.", "1948"),
    ("father", "Anna", "His mother was Maria of Lund, and his father was Karl of Holm.", "Karl of Holm"),
    ("mother", "Anna", "Anna was a queen. Maria of Lund was her mother and Duke Karl her father.", "Maria of Lund"),
    ("composer", "Dawn", "Dawn is a film. The music was composed by Ivo Petrov.", "Ivo Petrov"),
    (
        "performer",
        "Stay",
        '"Stay" is a song written by Tom Reed and performed by American singer Joy Hale.',
        "Joy Hale",
    ),
    ("author", "Salt", "Salt is a novel by the English writer Mary Webb.", "Mary Webb"),
    ("founder", "Acme Works", "Acme Works was founded in 1901 by Hugo Lenz.", "Hugo Lenz"),
    ("inception", "Acme Works", "Acme Works is a maker of clocks. Founded in 1901, it has two plants.", "1901"),
    ("publication_date", "Dawn", "Dawn is a 1931 German film.", "1931"),
    ("publication_date", "Dawn", "Dawn is a film that was released on 3 May 1931.", "3 May 1931"),
    ("country_of_origin", "Dawn", "Dawn is a 1931 German silent film.", "German"),
    ("country_of_citizenship", "Ada Stone", "Ada Stone (born 1890) was a Polish film director.", "Polish"),
    ("country", "Lowe School", "Lowe School is a school in Roswell, New Mexico, United States.", "United States"),
    (
        "father",
        "Anna",
        "Anna (1701 – 1750) was a daughter of Johann III, Duke of Holm and his wife Sophie of Lund.",
        "Johann III, Duke of Holm",
    ),
    ("father", "Anna", "Anna was a painter. Her father, Karl Berg, was a smith.", "Karl Berg"),
    (
        "mother",
        "Anna",
        "Anna (1701 – 1750) was a daughter of Johann III, Duke of Holm and his wife Sophie of Lund.",
        "Sophie of Lund",
    ),
    (
        "mother",
        "Anna",
        "Anna was a daughter of Johann Berg (1628–1666) and the Countess Palatine Maria of Lund (1640–93).",
        "Countess Palatine Maria of Lund",
    ),
    ("spouse", "Ada Stone", "Ada Stone was a writer. In 1932 she married the dancer Ben Frost.", "Ben Frost"),
    ("spouse", "Ada Stone", "Ada Stone is the wife and assistant of the physicist John Tyre.", "John Tyre"),
    ("spouse", "Ada Stone", "Ada Stone is the estranged wife of Karl von Habsburg.", "Karl von Habsburg"),
    ("sibling", "Ben Frost", "Ben Frost is an actor. His brother Tom Frost is a singer.", "Tom Frost"),
    ("date_of_birth", "Ada Stone", "Ada Stone (3 May 1890 – 1 June 1950) was a writer.", "3 May 1890"),
    ("date_of_birth", "Ada Stone", "Ada Stone (born May 3, 1890) was a writer.", "May 3, 1890"),
    ("date_of_birth", "Ada Stone", "Ada Stone( b. 3 May 1890) is a writer.", "3 May 1890"),
    ("date_of_death", "Ada Stone", "Ada Stone (3 May 1890 – 1 June 1950) was a writer.", "1 June 1950"),
    ("date_of_death", "Ada Stone", "Ada Stone (died 1 June 1950) was a writer.", "1 June 1950"),
    ("place_of_birth", "Ada Stone", "Ada Stone was a writer. Born in Lund, she moved to Rome.", "Lund"),
    ("place_of_birth", "Ada Stone", "Ada Stone was born on 3 May 1890 in Lund.", "Lund"),
    ("place_of_death", "Ada Stone", "Ada Stone (3 May 1890, Lund – 1 June 1950, Rome) was a writer.", "Rome"),
    ("place_of_death", "Ada Stone", "Ada Stone died in Rome.", "Rome"),
    ("place_of_burial", "Ada Stone", "Ada Stone was buried in the Old Cemetery of Rome.", "Old Cemetery of Rome"),
    ("educated_at", "Ada Stone", "Ada Stone graduated from the University of Lund.", "University of Lund"),
    ("employer", "Ada Stone", "Ada Stone is a professor at Lund University.", "Lund University"),
    ("award_received", "Ada Stone", "Ada Stone won the Lund Prize for Poetry.", "Lund Prize for Poetry"),
    ("headquarters", "Acme Works", "Acme Works is headquartered in Lund.", "Lund"),
]


@pytest.mark.parametrize(("relation", "subject", "text", "value"), STATED)
def test_what_a_sentence_states(relation: str, subject: str, text: str, value: str) -> None:
    (first, *_) = read(relation, passage("p", text, subject), subject)
    assert first.value == value
    assert text[first.start : first.end] == value
    assert first.sentence.start <= first.start < first.end <= first.sentence.end


OTHERWISE = [
    ("place_of_birth", "Ada Stone", "Ada Stone was a writer. Her father was born in Rome."),
    ("date_of_death", "Ada Stone", "Ada Stone is a writer. Her husband died in 1950."),
    ("father", "Ada Stone", "Ada Stone married Ben Frost, son of Karl Frost."),
    ("father", "Ada Stone", "Ada Stone is a grandson of Karl Frost."),
    ("mother", "Ada Stone", "Ada Stone was a writer. Her husband was the son of Tom Frost and Joy Hale."),
    ("spouse", "Ben Frost", "Ben Frost was the second son of the Duke of Holm and his wife Sophie of Lund."),
    ("director", "Dawn", "Dawn is a film directed by him."),
    ("director", "Dawn", "Dawn is a film about Ada Stone."),
    ("country", "Lowe School", "Lowe School is in Roswell, New Mexico."),
    ("place_of_death", "Umar", "Umar (1456–1494 C.E.) was a ruler."),
    ("date_of_birth", "Dawn", "Dawn has 1200 pages and 3,500 readers."),
    ("note", "Ada Stone", "Ada Stone likes tea."),
]


@pytest.mark.parametrize(("relation", "subject", "text"), OTHERWISE)
def test_what_a_sentence_does_not_state(relation: str, subject: str, text: str) -> None:
    assert read(relation, passage("p", text, subject), subject) == []


def test_every_pattern_compiles_and_has_one_value() -> None:
    how = stating("en")
    assert how is not None
    assert set(how.relations) <= set(predicates())
    for name, relation in how.relations.items():
        for pattern in relation.patterns:
            assert "v" in pattern.groupindex, f"{name}: {pattern.pattern[:60]}"


def test_a_language_without_patterns_reads_nothing() -> None:
    assert read("director", passage("p", "Dawn is a film directed by Ada Stone.", "Dawn"), "Dawn", "de") == []


@pytest.mark.parametrize(
    "unit", ["(", "a ", "A ", "born in ", "Ada, ", "son of ", "1 ", "Ada Stone and ", ". ", "a" * 10 + "-"]
)
def test_no_text_makes_a_pattern_slow(unit: str) -> None:
    """Documents are hostile: the time grows with the length, not with its power."""
    how = stating("en")
    assert how is not None
    small, large = ("x " + unit * (size // len(unit)) for size in (2_000, 8_000))

    def taken(text: str) -> float:
        began = time.process_time()
        for relation in how.relations:
            read(relation, passage("p", text, "Ada"), "Ada")
        return time.process_time() - began

    taken(small)
    assert taken(large) < 40 * (taken(small) + 0.05)


def test_random_text_never_raises() -> None:
    dice = random.Random(3)
    how = stating("en")
    assert how is not None
    for _ in range(60):
        text = "".join(dice.choice('Ab (),.;–-1é’"“born in of son\n') for _ in range(300))
        for relation in how.relations:
            for reading in read(relation, passage("p", text, "Ab"), "Ab"):
                assert text[reading.start : reading.end] == reading.value
