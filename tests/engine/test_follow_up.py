"""Follow-ups: what leans, what the rules make of it, and that no form is taken that loses or invents a name or repeats
a question.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindchat import events as ev
from mindchat.engine.follow_up import fits, last_resort, leans, same, standalone
from mindchat.models.scripted import ScriptedModel
from mindchat.text.language import language
from mindchat.trace import fold_all

from ..fakes import KeywordRetriever, of, run

EN = language("en")
PAIRS: list[dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parent / "follow_ups.jsonl").read_text(encoding="utf-8").splitlines()
]
FILM = (("Who directed Metropolis?", "Fritz Lang"),)


def test_there_are_thirty_pairs_of_four_kinds() -> None:
    assert len(PAIRS) == 30
    assert {pair["kind"] for pair in PAIRS} == {"pronoun", "and in which year", "which of them", "new subject"}


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["question"])
def test_the_rules_keep_the_subject_and_never_repeat_a_question(pair: dict[str, Any]) -> None:
    history = tuple((asked, said) for asked, said in pair["history"])
    assert leans(pair["question"], EN)
    form = standalone(pair["question"], history, EN)
    assert form is not None
    assert all(name in form for name in pair["keeps"]), form
    assert not any(same(form, asked, EN) for asked, _ in history)
    assert not leans(form, EN)


@pytest.mark.parametrize(
    ("question", "does"),
    [
        ("And where was he born?", True),
        ("In which year?", True),
        ("When?", True),
        ("Which of the two is longer?", True),
        ("Where did both study?", True),
        ("Who wrote that book?", True),
        ("Who was his father?", True),
        ("What about Vienna in 1890?", True),
        ("Why?", True),
        ("Were both Fritz Lang and Marie Curie born in Europe?", False),
        ("When did Marie Curie win her first Nobel Prize?", False),
        (
            (
                "Who founded the Festival of Lights in the town where Tobias Lenz built a bridge that his father had"
                " planned?"
            ),
            False,
        ),
        ("Which year did the company that Ann Droid leads begin in?", False),
        ("Who directed the film Nosferatu?", False),
    ],
)
def test_what_leans(question: str, does: bool) -> None:
    assert leans(question, EN) is does


@pytest.mark.parametrize(
    ("history", "question", "form"),
    [
        ((("When was the treaty of Passau signed?", "1552"),), "Who signed it?", "Who signed the treaty of Passau?"),
        ((("What is the capital of Peru?", "Lima"),), "and of Chile?", "What is the capital of Chile?"),
        ((("Who won the 2019 race?", "Lena Bach"),), "And in 2020?", "Who won the 2020 race?"),
        (
            (("Who discovered penicillin?", "Alexander Fleming"),),
            "And in which year?",
            "In which year was penicillin discovered?",
        ),
        ((("Where is Tobias Lenz buried?", "Harrow Mills"),), "Since when?", "Since when is Tobias Lenz buried?"),
        (
            (("Which company built the Karwendel cable car?", "Doppelmayr"),),
            "Who founded it?",
            "Who founded Doppelmayr?",
        ),
    ],
)
def test_some_more_forms(history: tuple[tuple[str, str], ...], question: str, form: str) -> None:
    assert standalone(question, history, EN) == form


@pytest.mark.parametrize(
    ("question", "form"),
    [
        ("And who directed it?", "Who directed Metropolis?"),  # the question before
        ("And where was he born?", "Where was Harrow Mills born?"),  # a name from nowhere
        ("And did he know Marie Curie?", "Did Fritz Lang know her?"),  # a name is lost, and it leans
        ("And what did he do in 1931?", "What did Fritz Lang do?"),  # a number is lost
        ("And where was he born?", "Who was Fritz Lang?"),  # the words are lost
        ("And where was he born?", ""),
        ("And where was he born?", "Where was he born?"),
    ],
)
def test_what_may_not_take_a_questions_place(question: str, form: str) -> None:
    assert not fits(form, question, FILM, EN)
    events = run(question, ScriptedModel([form, "Vienna"]), "engine.policy=once", history=FILM)
    rewritten = [event.standalone for event in of(events, ev.QuestionRewritten)]
    assert form not in rewritten
    asked = rewritten[0] if rewritten else question
    assert not any(same(asked, earlier, EN) for earlier, _ in FILM)
    assert "Fritz Lang" in asked


def test_where_no_rule_helps_the_model_does_if_its_form_fits_and_else_the_names_are_added() -> None:
    asked = "And who directed it?"
    history = (("Who directed Metropolis?", "Fritz Lang"), ("Is the film Nosferatu older?", "yes"))
    assert standalone(asked, FILM, EN) is None
    for said, form in (
        ("Who directed Metropolis?", "And who directed it? (Metropolis; Fritz Lang)"),
        ("", "And who directed it? (Metropolis; Fritz Lang)"),
    ):
        events = run(asked, [said, "Vienna"], "engine.policy=once", history=FILM)
        assert [e.standalone for e in of(events, ev.QuestionRewritten)] == [form]
        assert [e.kind for e in of(events, ev.ModelAsked)] == ["rewrite", "answer"]
    assert standalone(asked, history, EN) == "Who directed Nosferatu?"


def test_asked_as_typed_it_keeps_its_words() -> None:
    from ..fakes import engine

    retriever = KeywordRetriever()
    made = engine(["Vienna"], "engine.policy=once", retriever=retriever)
    events = list(made.run("And where was he born?", history=FILM, as_typed=True))
    assert of(events, ev.QuestionRewritten) == []
    assert retriever.queries[0].text == "And where was he born?"
    assert fold_all(events).rewritten == ""


@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=20)), min_size=1, max_size=3), st.text(max_size=40))
def test_the_rules_never_fail_and_what_they_find_fits(history: list[tuple[str, str]], question: str) -> None:
    form = standalone(question, history, EN)
    assert form is None or fits(form, question, history, EN)
    assert question.strip() in last_resort(question, history, EN)


@pytest.mark.slow_model
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["question"])
def test_the_default_model_turns_a_follow_up_into_its_question(pair: dict[str, Any], default_model: Any) -> None:
    history = tuple((asked, said) for asked, said in pair["history"])
    rewritten: list[str] = []
    from ..fakes import engine

    for event in engine(default_model, "engine.policy=once", "answer.max_tokens=1").run(
        pair["question"], history=history
    ):
        if isinstance(event, ev.QuestionRewritten):
            rewritten.append(event.standalone)
    (form,) = rewritten
    assert all(name in form for name in pair["keeps"]), form
    assert not any(same(form, asked, EN) for asked, _ in history)


@pytest.mark.slow_model
def test_the_default_models_own_forms_are_checked(default_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rules: whatever the model writes, the subject is kept and no question is asked twice."""
    from mindchat.engine import follow_up

    from ..fakes import engine

    monkeypatch.setattr(follow_up, "standalone", lambda *_: None)
    kept, taken = 0, 0
    for pair in PAIRS:
        history = tuple((asked, said) for asked, said in pair["history"])
        events = engine(default_model, "engine.policy=once", "answer.max_tokens=1").run(
            pair["question"], history=history
        )
        form = next((event.standalone for event in events if isinstance(event, ev.QuestionRewritten)), pair["question"])
        assert not any(same(form, asked, EN) for asked, _ in history)
        kept += all(name.removeprefix("The ") in form for name in pair["keeps"])
        taken += "(" not in form
        print(pair["question"], "->", form)  # noqa: T201 - read with -s
    print(kept, "of", len(PAIRS), "keep the subject;", taken, "forms of the model were taken")  # noqa: T201
    assert kept >= 27
