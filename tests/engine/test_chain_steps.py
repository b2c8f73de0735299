"""Questions that code follows, in a turn: no model call, each slot told, cited and kept; else the turn goes on."""

from __future__ import annotations

from typing import Any

import pytest

from mindchat import events as ev
from mindchat.corpus.search.memory_index import MemoryIndex
from mindchat.events import FactLearned
from mindchat.trace import counts, fold_all, report
from mindchat.values import Fact, Filled, Passage, Query, Recalled

from ..fakes import CURIE, LANG, METROPOLIS, KeywordRetriever, ListMemory, of, passage, run

WORLD = (METROPOLIS, LANG, CURIE)
BORN = "Where was the director of Metropolis born?"


class Keeping(ListMemory):
    """A memory that takes every slot, and says of it what it is told to."""

    def __init__(self, said: dict[str, Recalled] | None = None, refusal: str = "") -> None:
        super().__init__(said)
        self.kept: list[tuple[Filled, Passage]] = []
        self.refusal = refusal

    def keep(self, slot: Filled, passage: Passage, hop: int) -> FactLearned | str:
        self.kept.append((slot, passage))
        return self.refusal or FactLearned(
            Fact(f"f{len(self.kept)}", slot.subject, slot.relation, slot.value, 0.9), True
        )

    def flush(self) -> None:
        """Nothing waits."""


def turn(question: str, tape: list[str], *sets: str, **given: Any) -> list[ev.Event]:
    given.setdefault("retriever", MemoryIndex(WORLD))
    return run(question, tape, "engine.policy=auto", "answer.refuse=off", *sets, **given)


def answer(events: list[ev.Event]) -> Any:
    end = events[-1]
    assert isinstance(end, ev.AnswerReady)
    return end.answer


def test_a_chain_is_answered_without_the_model_and_each_slot_is_cited() -> None:
    events = turn(BORN, [])
    assert answer(events).short == answer(events).text == "Vienna"
    assert answer(events).verdict == "sourced"
    assert of(events, ev.ModelAsked) == []
    world = {p.id: p for p in WORLD}
    for citation in answer(events).citations:
        held = world[citation.passage]
        assert held.text[citation.start - held.start : citation.end - held.start] == citation.quote
    assert [c.quote for c in answer(events).citations] == ["Fritz Lang", "Vienna"]
    trace = fold_all(events)
    assert [(s.subject, s.relation, s.value) for s in trace.slots] == [
        ("Metropolis", "director", "Fritz Lang"),
        ("Fritz Lang", "place_of_birth", "Vienna"),
    ]
    assert [slot["value"] for slot in report(trace)["slots"]] == ["Fritz Lang", "Vienna"]
    assert answer(events).trust is not None


def test_in_full_style_every_slot_is_a_line_with_its_number() -> None:
    said = answer(turn(BORN, [], "answer.style=full")).text
    assert said.startswith("Vienna.\n\n")
    assert "Metropolis – director: Fritz Lang [1]" in said
    assert "Fritz Lang – place of birth: Vienna [2]" in said


def test_what_was_read_is_kept_at_once() -> None:
    memory = Keeping()
    events = turn(BORN, [], memory=memory)
    assert [slot.value for slot, _ in memory.kept] == ["Fritz Lang", "Vienna"]
    assert [item.fact.id for event in of(events, ev.FactsLearned) for item in event.learned] == ["f1", "f2"]
    assert of(turn(BORN, [], memory=Keeping(refusal="secret")), ev.FactsLearned)[0].refused == (("secret", 1),)


@pytest.mark.parametrize("mode", ["off", "readonly"])
def test_nothing_is_kept_where_memory_must_not_learn(mode: str) -> None:
    memory = Keeping()
    turn(BORN, [], f"memory.mode={mode}", memory=memory)
    assert memory.kept == []


def test_memory_answers_without_any_search() -> None:
    def served(p: Passage, fact: Fact) -> Recalled:
        return Recalled((fact,), (p,), "known")

    memory = Keeping(
        {
            "director of Metropolis": served(
                METROPOLIS, Fact("f1", "Metropolis", "director", "Fritz Lang", 0.9, passage="p1")
            ),
            "birth of Fritz Lang": served(
                LANG, Fact("f2", "Fritz Lang", "place of birth", "Vienna", 0.9, passage="p2")
            ),
        }
    )
    retriever = KeywordRetriever(WORLD)
    events = turn(BORN, [], memory=memory, retriever=retriever)
    assert answer(events).short == "Vienna"
    assert retriever.queries == []
    trace = fold_all(events)
    assert (counts(trace)["retrievals"], counts(trace)["retrievals_skipped"]) == (0, 2)
    assert [slot.by for slot in trace.slots] == ["memory", "memory"]
    assert memory.kept == []


def test_a_slot_that_no_pattern_reads_is_put_to_the_model_as_its_own_question() -> None:
    odd = passage("p2", "Fritz Lang: the Vienna boy who made films.", "Fritz Lang")
    events = turn(BORN, ["Vienna"], retriever=MemoryIndex((METROPOLIS, odd)))
    assert answer(events).short == "Vienna"
    (call,) = of(events, ev.ModelAsked)
    assert call.kind == "slot"
    (prompt,) = of(events, ev.PromptBuilt)
    assert "What is the place of birth of Fritz Lang?" in prompt.sent
    assert [slot.by for slot in fold_all(events).slots] == ["pattern", "model"]


@pytest.mark.parametrize("said", ["Atlantis", "unknown", "He was a boy who made films of all kinds.", "Fritz Lang"])
def test_what_the_model_says_must_stand_there(said: str) -> None:
    odd = passage("p2", "Fritz Lang: the Vienna boy who made films.", "Fritz Lang")
    memory = Keeping()
    events = turn(BORN, [said, "Vienna"], "layout.repeat=0", retriever=MemoryIndex((METROPOLIS, odd)), memory=memory)
    assert [call.kind for call in of(events, ev.ModelAsked)][:2] == ["slot", "answer"]
    assert any("no sentence states Fritz Lang – place of birth" in note.text for note in of(events, ev.Notice))
    assert [slot.value for slot, _ in memory.kept] == ["Fritz Lang"]


def test_off_by_setting_by_policy_and_where_passages_were_given() -> None:
    assert of(turn(BORN, ["Vienna"], "engine.chain=off"), ev.SlotFilled) == []
    events = run(BORN, ["Vienna"], "engine.policy=once", retriever=MemoryIndex(WORLD))
    assert of(events, ev.SlotFilled) == []


def test_every_query_of_a_chain_is_asked_once() -> None:
    class Counting(KeywordRetriever):
        def search(self, query: Query, k: int) -> Any:
            assert query.text not in [earlier.text for earlier in self.queries]
            return super().search(query, k)

    turn("Who is Fritz Lang's uncle?", ["nobody"], "layout.repeat=0", retriever=Counting(WORLD))


def test_a_memory_that_fails_costs_no_answer() -> None:
    class Broken(Keeping):
        def keep(self, slot: Filled, passage: Passage, hop: int) -> FactLearned | str:
            raise OSError("the disk is full")

    events = turn(BORN, [], memory=Broken())
    assert answer(events).short == "Vienna"
    assert [note.level for note in of(events, ev.Notice) if "the disk is full" in note.text] == ["warning", "warning"]


def test_a_turn_keeps_no_more_facts_than_its_quota() -> None:
    memory = Keeping()
    events = turn(BORN, [], "memory.per_turn=1", memory=memory)
    assert [slot.value for slot, _ in memory.kept] == ["Fritz Lang"]
    assert [event.refused for event in of(events, ev.FactsLearned)] == [(), (("quota", 1),)]


def test_values_that_are_not_told_apart_are_said() -> None:
    two = (
        passage("1", "Ann Low (born 1950) is a singer.", "Ann Low"),
        passage("2", "Bob Low (born 1950) is a singer.", "Bob Low"),
    )
    events = turn("Who is older, Ann Low or Bob Low?", ["Ann Low"], "layout.repeat=0", retriever=MemoryIndex(two))
    assert "chain: what was read does not tell the two apart." in [note.text for note in of(events, ev.Notice)]
    assert [slot.value for slot in fold_all(events).slots] == ["1950", "1950"]


def test_the_reason_counts_sentences_and_what_the_model_read() -> None:
    assert answer(turn(BORN, [])).why == "read from 2 sentences, each value cited"
    odd = passage("p2", "Fritz Lang: the Vienna boy who made films.", "Fritz Lang")
    events = turn(BORN, ["Vienna"], retriever=MemoryIndex((METROPOLIS, odd)))
    assert answer(events).why == "read from 2 sentences, each value cited; the model read 1 of 2 relations"
    life = passage("l", "Ann Low (1900 – 1980) was a singer.", "Ann Low")
    short = passage("s", "Bob Low (1900 – 1920) was a singer.", "Bob Low")
    events = turn("Who lived longer, Ann Low or Bob Low?", [], retriever=MemoryIndex((life, short)))
    assert answer(events).short == "Ann Low"
    assert answer(events).why == "read from 2 sentences, each value cited"
