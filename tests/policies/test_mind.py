"""MIND's start and its guard: the first search, and names that were copied from the examples."""

from __future__ import annotations

import pytest

from mindchat import events as ev
from mindchat.config import Config
from mindchat.policies.copied import copied
from mindchat.prompts.side import exemplars
from mindchat.trace import counts, fold_all
from mindchat.values import Draft, Fact, TurnState

from ..fakes import CURIE, LANG, METROPOLIS, KeywordRetriever, ListRetriever, of, passage, run

QUESTION = "Who directed the film Metropolis?"
SURE = "The film Metropolis was directed by Fritz Lang. So the answer is Fritz Lang."
COPIED = "The film Metropolis was directed by Imra Solvay. So the answer is Imra Solvay."
HOP = [" Imra Solvay | Metropolis - director", " Who directed Metropolis?"]
FIRST = ("rind.first=true", "engine.filter=none")


# ── the first search
# ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_question_is_searched_before_the_first_word_unless_switched_off() -> None:
    assert Config().rind.first
    retriever = KeywordRetriever()
    events = run(QUESTION, [SURE, "Fritz Lang"], *FIRST, retriever=retriever)
    assert [(query.text, query.by) for query in retriever.queries] == [(QUESTION, "question")]
    assert [(e.hop, e.query.by) for e in of(events, ev.QueryFormed)] == [(1, "question")]
    assert of(events, ev.RetrievalTriggered) == []
    (reasoning,) = [e for e in of(events, ev.PromptBuilt) if e.purpose == "reasoning"]
    assert "p1" in reasoning.copies[0]
    bare = KeywordRetriever()
    run(QUESTION, [SURE, "Fritz Lang"], "rind.first=false", "engine.filter=none", retriever=bare)
    assert bare.queries == []


def test_given_passages_stand_in_for_the_first_search() -> None:
    retriever = KeywordRetriever()
    run(QUESTION, [SURE, "Fritz Lang"], *FIRST, retriever=retriever, given=(METROPOLIS,))
    assert retriever.queries == []


def test_a_trigger_after_the_first_search_is_the_second_hop() -> None:
    tape = [
        "The film Metropolis was directed by Ann{9,0.9} Droid in Berlin.",
        *HOP,
        " Fritz Lang. So the answer is Fritz Lang.",
        "Fritz Lang",
    ]
    events = run(QUESTION, tape, *FIRST, retriever=ListRetriever([CURIE], [METROPOLIS, LANG]))
    (trigger,) = of(events, ev.RetrievalTriggered)
    assert trigger.hop == 2
    end = events[-1]
    assert isinstance(end, ev.AnswerReady)
    assert counts(fold_all(events))["retrievals"] == 2
    assert end.stop == "answered"


# ── names copied from the examples
# ───────────────────────────────────────────────────────────────────────────────────────


def test_every_name_of_the_examples_is_listed_and_every_listed_name_is_in_them() -> None:
    data = exemplars("reasoning")
    told = "\n".join(shot["question"] + "\n" + shot["answer"] for shot in data["shots"])
    assert all(name in told for name in data["names"])
    rest = told
    for name in sorted(data["names"], key=len, reverse=True):
        rest = rest.replace(name, "")
    names = {word.strip(".,?") for line in rest.splitlines() for word in line.split()[1:] if word[0].isupper()}
    assert names <= {"So", "The"}, "a name that the guard would not know"


def test_a_copied_name_is_found_as_a_whole_word_and_only_where_it_was_not_given() -> None:
    draft = Draft("It was made in Sarn by Odo Prell.")
    found = copied(draft, TurnState(0, QUESTION))
    assert found is not None
    assert (found.word, found.start, found.stands) == ("Sarn", 15, False)
    assert copied(Draft("It was made in Sarnia."), TurnState(0, QUESTION)) is None
    assert copied(draft, TurnState(0, "Did Odo Prell live in Sarn?")) is None
    assert copied(draft, TurnState(0, QUESTION, passages=(passage("p", "Sarn is a town.", "Odo Prell"),))) is None
    assert copied(draft, TurnState(0, QUESTION, facts=(Fact("f", "Odo Prell", "birthplace", "Sarn", 1.0),))) is None


@pytest.mark.parametrize("policy", ["mind", "rind-fixed", "rind-entropy"])
def test_a_copied_sentence_is_searched_for_and_written_again(policy: str) -> None:
    events = run(
        QUESTION,
        [COPIED, *HOP, " Fritz Lang. So the answer is Fritz Lang.", "Fritz Lang"],
        f"engine.policy={policy}",
        "engine.filter=none",
    )
    (trigger,) = of(events, ev.RetrievalTriggered)
    assert trigger.word == "Imra Solvay"
    assert "copied from the examples" in trigger.reason
    assert fold_all(events).reasoning == "The film Metropolis was directed by Fritz Lang. So the answer is Fritz Lang."


@pytest.mark.parametrize(("limit", "stop"), [(5, "no_new_passages"), (0, "max_hops")])
def test_what_cannot_be_mended_is_not_accepted_and_the_answer_rests_on_the_passages_alone(
    limit: int, stop: str
) -> None:
    tape = [
        "Metropolis is a German film. It was directed by Imra Solvay. So the answer is Imra Solvay.",
        *(HOP if limit else ()),
        "Fritz Lang",
    ]
    events = run(QUESTION, tape, "engine.filter=none", f"engine.max_hops={limit}", retriever=ListRetriever())
    trace = fold_all(events)
    assert trace.reasoning == "Metropolis is a German film."
    assert trace.sentences[-1].retracted == " It was directed by Imra Solvay."
    assert not trace.sentences[-1].accepted
    (answer,) = [e for e in of(events, ev.PromptBuilt) if e.purpose == "answer"]
    assert "Notes:" not in answer.sent
    end = events[-1]
    assert isinstance(end, ev.AnswerReady)
    assert end.stop == stop


def test_a_repeated_query_cannot_mend_it_either() -> None:
    again = [" Metropolis", " Who directed Metropolis?"]
    tape = [COPIED, *HOP, " Wanda Quist. So the answer is Wanda Quist.", *again, "Fritz Lang"]
    events = run(QUESTION, tape, "engine.filter=none")
    end = events[-1]
    assert isinstance(end, ev.AnswerReady)
    assert end.stop == "repeated_query"
    assert not any("Quist" in e.text for e in of(events, ev.DraftAccepted))


def test_a_doubt_before_the_copied_name_keeps_the_guard() -> None:
    tape = ["The film was made in Ulm{9,0.9} by Imra Solvay long ago.", *HOP, "Fritz Lang"]
    events = run(QUESTION, tape, "engine.filter=none", retriever=ListRetriever())
    assert of(events, ev.RetrievalTriggered)[0].word == "Ulm"
    assert not any("Imra" in e.text for e in of(events, ev.DraftAccepted))
