"""Names that no document has are told early in the turn, and wherever a turn is shown."""

from __future__ import annotations

from collections.abc import Sequence

from mindchat import events as ev
from mindchat.corpus.search.memory_index import MemoryIndex
from mindchat.errors import IndexMissingError
from mindchat.models.scripted import Reply
from mindchat.text.language import Language
from mindchat.trace import fold_all, report
from mindchat.values import EVERYTHING, Absent, Filters

from ..fakes import WORLD, KeywordRetriever, NoIndex, of, run

TAPE: list[Reply | str] = ["So the answer is Fritz Lang.", "Fritz Lang"]


def kinds(events: Sequence[ev.Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def test_a_missing_name_is_told_before_anything_is_searched_or_generated() -> None:
    events = run("Who directed the film Metropoliss?", TAPE, "rind.first=true", retriever=MemoryIndex(WORLD))
    told = kinds(events).index("NamesAbsent")
    assert all(
        told < kinds(events).index(later) for later in ("QueryFormed", "PassagesFound", "PromptBuilt", "ModelAsked")
    )
    (event,) = of(events, ev.NamesAbsent)
    assert event.absent == (Absent("Metropoliss", ("Metropolis",)),)
    assert report(fold_all(events))["absent"] == [{"name": "Metropoliss", "near": ["Metropolis"]}]
    assert ev.from_json(ev.to_json(event)) == event


def test_names_that_are_there_give_no_event() -> None:
    events = run("Who directed the film Metropolis?", TAPE, retriever=MemoryIndex(WORLD))
    assert "NamesAbsent" not in kinds(events)
    assert report(fold_all(events))["absent"] == []


def test_a_rewritten_question_is_what_counts() -> None:
    history = (("Who directed Metropolis?", "Fritz Lnag"),)
    tape = ["Where was Fritz Lnag born?", *TAPE]
    events = run("And where was he born?", tape, retriever=MemoryIndex(WORLD), history=history)
    assert [item.name for event in of(events, ev.NamesAbsent) for item in event.absent] == ["Fritz Lnag"]


def test_a_retriever_that_knows_no_names_or_has_no_index_is_no_failure() -> None:
    class Empty(NoIndex):
        def absent(self, question: str, words: Language, filters: Filters = EVERYTHING) -> tuple[Absent, ...]:
            raise IndexMissingError("Nothing is indexed yet.")

    for retriever in (KeywordRetriever(), Empty()):
        events = run("Who directed the film Metropoliss?", TAPE, retriever=retriever)
        assert kinds(events)[-1] == "AnswerReady"
        assert "NamesAbsent" not in kinds(events)


def test_filters_of_the_question_hold_for_its_names() -> None:
    from mindchat.values import Sought

    for part, missing in (("p1.txt", 0), ("p3.txt", 1)):
        question = Sought("Who directed the film Metropolis?", "question", filters=Filters(paths=(part,)))
        events = run(question, TAPE, "answer.refuse=off", retriever=MemoryIndex(WORLD))
        assert len(of(events, ev.NamesAbsent)) == missing
