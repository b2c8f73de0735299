"""The swap test of the design note, read from the text: subject and object exchanged are another claim."""

from __future__ import annotations

import pytest

from mindchat.memory.learning.direction import reversed_in_text

from ..conftest import World
from .test_grounding import claim, passage

FATHER, CHILD, CAPITAL = (
    "Who is the father of Ann Lee?",
    "Who is the child of Ann Lee?",
    "What is the capital of Avaria?",
)


@pytest.mark.parametrize(
    ("question", "answer", "text", "reversed_"),
    [
        (FATHER, "Bob Lee", "Ann Lee is the daughter of Bob Lee.", False),
        (FATHER, "Bob Lee", "Ann Lee is the daughter of the late painter Bob Lee and of Eve Roe.", False),
        (FATHER, "Bob Lee", "Bob Lee is the father of Ann Lee.", False),
        (FATHER, "Bob Lee", "Ann Lee's father, Bob Lee, was a painter.", False),
        (FATHER, "Bob Lee", "Her father Bob Lee, son of Carl Lee, was a painter, as Ann Lee said.", False),
        (FATHER, "Bob Lee", "Ann Lee is the mother of Bob Lee.", True),
        (FATHER, "Bob Lee", "Ann Lee was the mother of the late painter Bob Lee.", True),
        (FATHER, "Bob Lee", "Bob Lee's mother is Ann Lee.", True),
        (FATHER, "Bob Lee", "Bob Lee, the eldest son of Ann Lee, was a painter.", True),
        (FATHER, "Bob Lee", "Bob Lee is the son of Ann Lee.", True),
        (CHILD, "Bob Lee", "Ann Lee is the mother of Bob Lee.", False),
        (CHILD, "Bob Lee", "Bob Lee, the eldest son of Ann Lee, was a painter.", False),
        (CHILD, "Bob Lee", "Ann Lee is the daughter of Bob Lee.", True),
        (CHILD, "Bob Lee", "Bob Lee is the father of Ann Lee.", True),
        (CAPITAL, "Burg", "Burg is the capital of Avaria.", False),
        (CAPITAL, "Burg", "Avaria is the capital of Burg.", True),
    ],
)
def test_which_way_round(question: str, answer: str, text: str, reversed_: bool) -> None:
    found, _ = claim(question, answer, passage(text))
    assert found is not None
    assert reversed_in_text(found) is reversed_


def test_a_claim_the_wrong_way_round_is_refused_without_asking_the_model(world: World) -> None:
    world.write("a.txt", "Ann Lee is the mother of Bob Lee.", "Ann Lee")
    memory = world.memory()
    assert world.learn(memory, "Who is the mother of Ann Lee?", "The mother of Ann Lee is Bob Lee.") == (
        [],
        {"reversed": 1},
    )
    assert memory.store.value("SELECT count(*) FROM event WHERE name='verify'") == 0
    assert len(world.learn(memory, "Who is the mother of Bob Lee?", "The mother of Bob Lee is Ann Lee.")[0]) == 1
