"""The answer prompt holds sentences; citations, copies and reports keep to what was read."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from mindchat import events as ev
from mindchat.corpus.search.memory_index import MemoryIndex
from mindchat.engine.answering import cite
from mindchat.trace import fold_all, report
from mindchat.values import Passage, Span

from ..fakes import NoIndex, engine, of, passage, run

QUESTION = "Where was the director of Metropolis born?"
FILM = passage(
    "film", "Metropolis is a film. It was shot in Babelsberg. It was directed by Fritz Lang.", "Metropolis", 12
)
LANG = passage(
    "lang",
    "Fritz Lang was a director. He liked the coffee of Vienna, as some tell, more than all tea. He was born in Vienna."
    " He never drove any car.",
    "Fritz Lang",
    5,
)
TEA = passage(
    "tea",
    "Tea is a drink. It is made from leaves in Assam, China and Ceylon, and drunk by the director of this text.",
    "Tea",
)
WORLD = (FILM, LANG, TEA)
ONCE = ("engine.policy=once", "retrieve.k=3", "memory.mode=off")
SMALL = (*ONCE, "retrieve.evidence_words=28")


def turn(*sets: str, answer: str = "Vienna", world: tuple[Passage, ...] = WORLD, **rest: Any) -> list[ev.Event]:
    return run(QUESTION, [answer], *sets, retriever=MemoryIndex(world), **rest)


def answer_prompt(events: list[ev.Event]) -> ev.PromptBuilt:
    return next(event for event in reversed(of(events, ev.PromptBuilt)) if event.purpose == "answer")


@pytest.mark.parametrize("repeat", [0, 1, 2])
def test_every_copy_holds_the_evidence_and_nothing_else_of_the_passages(repeat: int) -> None:
    events = turn(*SMALL, f"layout.repeat={repeat}")
    prompt = answer_prompt(events)
    (chosen,) = of(events, ev.EvidenceChosen)
    by_id = {p.id: p for p in WORLD}
    for evidence in chosen.evidence:
        source = by_id[evidence.passage]
        assert prompt.sent.count(source.text[evidence.start - source.start : evidence.end - source.start]) == repeat + 1
    assert prompt.sent.count("born in Vienna") == repeat + 1
    assert "coffee" not in prompt.sent
    assert len(prompt.copies) == repeat + 1
    assert chosen.words < chosen.of


def test_a_citation_stands_in_what_was_read() -> None:
    end = turn(*SMALL)[-1]
    assert isinstance(end, ev.AnswerReady)
    (citation,) = end.answer.citations
    assert citation.quote == "Vienna"
    at = citation.start - LANG.start
    assert LANG.text[at - 8 : at + 6] == "born in Vienna"[-14:]  # not the coffee's, which the prompt did not hold


@pytest.mark.parametrize(
    ("sets", "whole"),
    [
        (("retrieve.evidence=passages",), True),
        (("layout.as=summary", "layout.repeat=0"), False),
        (("layout.as=reverse",), False),
        (("layout.order=docs_first",), False),
        (("layout.role=assistant",), False),
    ],
)
def test_when_passages_stay_whole(sets: tuple[str, ...], whole: bool) -> None:
    events = turn(*SMALL, *sets)
    (chosen,) = of(events, ev.EvidenceChosen)
    assert ("coffee" in answer_prompt(events).sent) is whole
    assert bool(chosen.evidence) is not whole
    assert chosen.answerable is not None


def test_given_passages_stay_as_they_are() -> None:
    events = turn(*SMALL, "engine.policy=none", given=WORLD)
    assert of(events, ev.EvidenceChosen) == []
    assert "coffee" in answer_prompt(events).sent


def test_without_an_index_or_a_search_there_is_no_evidence() -> None:
    assert of(run(QUESTION, ["Vienna"], *ONCE, retriever=NoIndex()), ev.EvidenceChosen) == []
    assert of(turn(*SMALL, "engine.policy=none"), ev.EvidenceChosen) == []


def test_a_search_that_finds_nothing_answers_nothing() -> None:
    (chosen,) = of(
        run("Who sang Xyzzy?", ["nobody"], *ONCE, "answer.refuse=off", retriever=MemoryIndex(WORLD)), ev.EvidenceChosen
    )
    assert chosen.evidence == ()
    assert chosen.answerable is not None
    assert not chosen.answerable.enough


def test_the_report_tells_where_the_evidence_stands() -> None:
    shown = report(fold_all(turn(*SMALL)))
    assert {item["passage"] for item in shown["evidence"]} == {
        item for copy in shown["context"]["copies"] for item in copy
    }
    assert all(set(item) == {"passage", "start", "end"} for item in shown["evidence"])
    assert set(shown["answerable"]) == {"p", "enough"}
    assert report(fold_all(turn(*SMALL, "retrieve.evidence=passages")))["evidence"] == []


def test_what_is_not_there_is_seen_before_any_model_call() -> None:
    events = list(
        engine(["nobody"], *ONCE, "answer.refuse=off", retriever=MemoryIndex(WORLD)).run(
            "Who composed the opera The Glass Heron of Vostronia?"
        )
    )
    (chosen,) = of(events, ev.EvidenceChosen)
    assert chosen.answerable is not None
    assert not chosen.answerable.enough
    asked = [number for number, event in enumerate(events) if isinstance(event, ev.ModelAsked)]
    assert events.index(chosen) < asked[0]


def test_a_cited_number_means_what_was_read() -> None:
    read = replace(LANG, shown=(Span(0, 26), Span(91, 113)))
    (citation,) = cite("yes", "yes [0]", [read])
    assert (citation.start, citation.end) == (LANG.start, LANG.start + 113)
    assert citation.quote == LANG.text[:113]
    assert read.read == f"{LANG.text[:26]} {LANG.text[91:113]}"
