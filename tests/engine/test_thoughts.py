"""Thoughts of reasoning models: in the model's own turn, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindchat import events as ev
from mindchat.engine.thoughts import Thoughts
from mindchat.trace import fold_all

from ..fakes import of, run

QUESTION = "Who directed the film Metropolis?"


@pytest.mark.parametrize(
    ("sentences", "visible"),
    [
        (["No thought."], ["No thought."]),
        (["<think>\n", "Perhaps Lang.", " So.</think>\n", "It was Lang."], ["", "", "\n", "It was Lang."]),
        (["<think>a</think>b", "c"], ["b", "c"]),
        (["a<think>b", "c</think>d<think>e</think>f"], ["a", "df"]),
        (["<think>never closed", " and on"], ["", ""]),
    ],
)
def test_what_lies_outside(sentences: list[str], visible: list[str]) -> None:
    thoughts = Thoughts()
    assert [thoughts.visible(sentence) for sentence in sentences] == visible


@given(st.lists(st.sampled_from(["<think>", "</think>", "word ", "end. "]), max_size=12))
def test_cutting_into_sentences_elsewhere_changes_nothing(parts: list[str]) -> None:
    apart, whole = Thoughts(), Thoughts()
    assert "".join(apart.visible(part) for part in parts) == whole.visible("".join(parts))


def test_a_template_may_open_the_thought() -> None:
    thoughts = Thoughts()
    thoughts.opened_by("<assistant>\n<think>\n")
    assert thoughts.visible("Hm.") == ""
    assert thoughts.visible("So.</think>Lang.") == "Lang."


THINKING = (
    "<think> Perhaps Ann{9,0.9} Droid made it long ago. </think> The film was directed by Fritz Lang. So the answer is"
    " Fritz Lang."
)


def test_a_thought_never_triggers_and_reaches_no_other_prompt() -> None:
    events = run(QUESTION, [THINKING, "Fritz Lang"], "engine.policy=rind-fixed", "engine.filter=none")
    assert of(events, ev.RetrievalTriggered) == []
    assert not any("Ann Droid" in event.sentence for event in of(events, ev.SentenceJudged))
    (answer,) = [e for e in of(events, ev.PromptBuilt) if e.purpose == "answer"]
    assert "Ann Droid" not in answer.sent
    assert "directed by Fritz Lang" in answer.sent
    end = events[-1]
    assert isinstance(end, ev.AnswerReady)
    assert end.answer.short == "Fritz Lang"
    assert "Ann Droid" in fold_all(events).reasoning, "it can be read, folded away"


def test_after_a_hop_the_model_continues_behind_its_own_thought() -> None:
    tape = [
        "<think> Hm. </think> The film was directed by Ann{9,0.9} Droid long ago.",
        " Ann Droid",
        " Who directed Metropolis?",
        " Fritz Lang. So the answer is Lang.",
        "Lang",
    ]
    events = run(QUESTION, tape, "engine.filter=none")
    second = [e for e in of(events, ev.PromptBuilt) if e.purpose == "reasoning"][1]
    assert second.prompt.messages[-1].text == "<think> Hm. </think> The film was directed by"
    (extract,) = [e for e in of(events, ev.EntitiesExtracted)]
    assert "Hm" not in extract.entities


def test_a_blank_line_inside_a_thought_does_not_end_the_reasoning() -> None:
    tape = ["<think> One idea. \n\n Another.", "\n\n Another. </think> It was Lang. So the answer is Lang.", "Lang"]
    events = run(QUESTION, tape, "engine.policy=rind-fixed")
    assert fold_all(events).reasoning.endswith("So the answer is Lang.")
    end = events[-1]
    assert isinstance(end, ev.AnswerReady)
    assert end.stop == "answered"
