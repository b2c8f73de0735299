"""Filters and phrases of a question: filters hold for every search of the turn, phrases for the question's own."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mindchat import events as ev
from mindchat.corpus.search.memory_index import MemoryIndex
from mindchat.models.scripted import Reply
from mindchat.values import Fact, Filters, Passage, Query, Recalled, Sought

from ..fakes import LANG, METROPOLIS, WORLD, ListMemory, engine, of, passage

TAPE: list[Reply | str] = [
    "The film Metropolis was directed by Ann{9,0.9} Droid in Berlin.",
    " Ann Droid | Metropolis - director",
    " Who directed Metropolis?",
    " Fritz Lang. So the answer is Fritz Lang.",
    "Fritz Lang",
]
FILTERS = Filters(types=(".txt",))


class Recorder:
    """Keeps the queries, and finds nothing for a phrase."""

    def __init__(self) -> None:
        self.queries: list[Query] = []

    def search(self, query: Query, k: int) -> Sequence[Passage]:
        self.queries.append(query)
        return [] if isinstance(query, Sought) and query.phrases else WORLD[:k]


def turn(question: str | Sought, retriever: object, *sets: str, memory: object = None) -> list[ev.Event]:
    settings = ("engine.filter=none", "rind.first=true", *sets)
    return list(engine(TAPE, *settings, retriever=retriever, memory=memory).run(question))  # type: ignore[arg-type]


def test_filters_reach_every_search_and_phrases_the_question_alone() -> None:
    recorder = Recorder()
    events = turn(Sought('Who made "Metropolis"?', "question", ("Metropolis",), FILTERS), recorder)
    assert len(recorder.queries) > 2
    assert all(isinstance(query, Sought) and query.filters == FILTERS for query in recorder.queries)
    assert [query.phrases for query in recorder.queries if isinstance(query, Sought)][:2] == [("Metropolis",), ()]
    assert all(not query.phrases for query in recorder.queries[1:] if isinstance(query, Sought))
    (notice,) = [event.text for event in of(events, ev.Notice) if "word for word" in event.text]
    assert notice == "No passage has “Metropolis” word for word; searching for the words."


def test_a_plain_question_is_searched_as_ever() -> None:
    recorder = Recorder()
    turn("Who made Metropolis?", recorder)
    assert not any(isinstance(query, Sought) for query in recorder.queries)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_passages_with_the_phrase_come_first_and_leave_room_for_others(k: int) -> None:
    world = [
        METROPOLIS,
        LANG,
        *(passage(f"x{n}", f"A film about Fritz Lang, number {n}. Lang Lang Lang.") for n in range(6)),
    ]
    asked = Sought('Which film is "a film of 1927" by Fritz Lang?', "question", ("a film of 1927",))
    found = of(turn(asked, MemoryIndex(world), f"retrieve.k={k}"), ev.PassagesFound)[0].passages
    assert found[0].id == METROPOLIS.id
    assert [p.rank for p in found] == list(range(1, k + 1))
    assert len({p.id for p in found}) == k


def test_memory_does_not_stand_in_for_a_search_under_filters() -> None:
    said = {"": Recalled((Fact("abc1234", "Metropolis", "director", "Fritz Lang", 0.9),), (METROPOLIS,), "known")}
    recorder = Recorder()
    assert of(turn("Who made Metropolis?", recorder, memory=ListMemory(said)), ev.SearchSkipped)
    assert not recorder.queries
    assert not of(
        turn(Sought("Who made Metropolis?", "question", (), FILTERS), recorder, memory=ListMemory(said)),
        ev.SearchSkipped,
    )
    assert recorder.queries
