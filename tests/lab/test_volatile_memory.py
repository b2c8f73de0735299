"""Evaluation's memory in RAM: what the corpus no longer says is withdrawn, forgotten facts stay away, and what was
written can be looked through.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mindchat.config import MemorySection
from mindchat.lab.volatile_memory import VolatileMemory
from mindchat.memory import verbs
from mindchat.memory.learning.confidence import FEATURES, Calibration
from mindchat.values import Harvest, Passage, Query

from ..memory.conftest import DIRECTOR, FILM, MOTHER, PERSON, YesAsk, draft

SECRET = "tulip-4711"


def passage(text: str, title: str, id: str = "x7") -> Passage:
    return Passage(id, f"question#{id}", title, text, 0, len(text), rank=1)


def harvest(question: tuple[str, str], *read: Passage) -> Harvest:
    return Harvest(1, question[0], draft(question[1]), read)


@pytest.fixture
def memory() -> Iterator[VolatileMemory]:
    made = VolatileMemory(MemorySection(audit=0.0))
    yield made
    made.close()


READ = passage(FILM, "Polish-Russian War (film)")


def test_a_passage_with_a_new_text_withdraws_what_it_no_longer_says(memory: VolatileMemory) -> None:
    memory.learn([harvest(DIRECTOR, READ)], YesAsk())  # type: ignore[arg-type]
    memory.sync([READ])
    assert memory.recall(Query(DIRECTOR[0])).skip == (READ,)
    changed = passage(FILM.replace("Xawery Żuławski", "Andrzej Wajda"), READ.title)
    memory.sync([changed])
    recalled = memory.recall(Query(DIRECTOR[0]))
    assert (recalled.facts, recalled.skip) == ((), ())
    question = (DIRECTOR[0], "It was directed by Andrzej Wajda.")
    memory.learn([harvest(question, changed)], YesAsk())  # type: ignore[arg-type]
    recalled = memory.recall(Query(DIRECTOR[0]))
    assert [fact.object for fact in recalled.facts] == ["Andrzej Wajda"]
    assert recalled.skip == (changed,)


def test_a_change_elsewhere_in_the_passage_keeps_the_fact(memory: VolatileMemory) -> None:
    memory.learn([harvest(DIRECTOR, READ)], YesAsk())  # type: ignore[arg-type]
    moved = passage(f"Seen often. {FILM}", READ.title)
    memory.sync([moved])
    recalled = memory.recall(Query(DIRECTOR[0]))
    assert [fact.object for fact in recalled.facts] == ["Xawery Żuławski"]
    assert recalled.skip == (moved,)


def test_another_document_under_the_same_id_is_not_a_change(memory: VolatileMemory) -> None:
    memory.learn([harvest(DIRECTOR, READ)], YesAsk())  # type: ignore[arg-type]
    memory.sync([Passage("x7", "question#x7#other", "Other", "Something else.", 0, 15)])
    assert memory.recall(Query(DIRECTOR[0])).skip == (READ,)


def test_a_secret_in_the_sentence_keeps_the_fact_out_and_leaves_no_trace(memory: VolatileMemory) -> None:
    text = f"Polish-Russian War was directed by Xawery Żuławski, whose password is {SECRET}."
    learned, refused = memory.learn([harvest(DIRECTOR, passage(text, READ.title))], YesAsk())  # type: ignore[arg-type]
    assert (list(learned), dict(refused)) == ([], {"secret": 1})
    memory.flush()
    assert not memory.holds(SECRET)


def test_what_was_written_can_be_looked_through(memory: VolatileMemory) -> None:
    memory.learn([harvest(DIRECTOR, READ)], YesAsk())  # type: ignore[arg-type]
    assert memory.holds("xawery żuławski")
    assert memory.holds("directed by Xawery")  # the quote
    assert not memory.holds("novel by Dorota"), "the document's own text is no memory"


def test_forgotten_stays_forgotten(memory: VolatileMemory) -> None:
    (item,), _ = memory.learn([harvest(DIRECTOR, READ)], YesAsk())  # type: ignore[arg-type]
    verbs.VERBS["forget"](memory, [item.fact.id], yes=True)  # type: ignore[operator]
    assert memory.learn([harvest(DIRECTOR, READ)], YesAsk())[1] == {"tombstone": 1}  # type: ignore[arg-type]
    assert memory.recall(Query(DIRECTOR[0])).facts == ()


def test_a_fit_given_to_it_decides() -> None:
    never = Calibration("m", dict.fromkeys(FEATURES, 0.0), -2.0, 0.9, 100, 0.0, 0.0)
    memory = VolatileMemory(MemorySection(audit=0.0), calibration=never)
    (item,), _ = memory.learn([harvest(DIRECTOR, READ)], YesAsk())  # type: ignore[arg-type]
    assert item.fact.status == "candidate"
    assert item.fact.confidence == pytest.approx(0.1192, abs=1e-3)
    memory.close()


def test_a_fact_about_what_a_named_thing_leads_to_is_served_after_it(memory: VolatileMemory) -> None:
    person = passage(PERSON, "Xawery Żuławski", "x8")
    memory.learn([harvest(DIRECTOR, READ), harvest(MOTHER, person)], YesAsk())  # type: ignore[arg-type]
    facts = memory.recall(Query("Is the mother of the director of Polish-Russian War an actress?")).facts
    assert [fact.predicate for fact in facts] == ["director", "mother"]
