"""SeaKR: the gate over k samples, δ carried over, the query, the passage that calms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindchat import events as ev
from mindchat.policies.seakr import Seakr, carried, strength
from mindchat.values import Query, TurnState
from mindchat.word_signals import log_det_gram

from ..fakes import KeywordRetriever, ask, config, of, run
from .test_flare import probable

SPREAD, SAME = "one---two---three---four---five", "one"
QUESTION = "Where was the director of Metropolis born?"


@given(st.floats(-8, 2), st.integers(2, 40), st.floats(0.5, 5000))
def test_delta_is_the_papers_at_twenty_samples_and_grows_for_fewer(delta: float, k: int, size: float) -> None:
    assert carried(delta, 20, size) == pytest.approx(delta)
    spread = (delta * 20 - math.log(20 * size)) / 19
    if spread < math.log(size):
        assert (carried(delta, k, size) >= delta - 1e-9) == (k <= 20) or math.isclose(
            carried(delta, k, size), delta, abs_tol=0.05
        )


@pytest.mark.parametrize("k", [3, 5, 20])
@pytest.mark.parametrize("size", [1.0, 100.0, 1000.0])
def test_samples_that_agree_stay_below_and_samples_that_differ_exceed(k: int, size: float) -> None:
    random = np.random.default_rng(0)
    one = random.normal(size=64)
    one *= math.sqrt(size / ((one - one.mean()) ** 2).sum())
    same = [one] * k
    apart = [random.permutation(one) for _ in range(k)]
    delta = carried(-6.0, k, strength(same))
    assert strength(same) == pytest.approx(size)
    assert log_det_gram(same) < delta < log_det_gram(apart)


def test_identical_rows_have_the_lowest_uncertainty() -> None:
    eye = np.eye(8)
    assert log_det_gram([eye[0]] * 4) < log_det_gram([eye[0], eye[0], eye[1], eye[1]]) < log_det_gram(list(eye[:4]))


def test_all_zero_states_give_a_number() -> None:
    assert math.isfinite(carried(-6.0, 5, 0.0))


def test_it_searches_when_the_samples_spread_and_tells_the_cost_first() -> None:
    tape = ["Lang lived in Vienna.", SPREAD, " Lang lived. So the answer is Vienna.", "Vienna"]
    events = run(QUESTION, tape, "engine.policy=seakr", "seakr.rerank=false")
    notices = of(events, ev.Notice)
    assert "each sentence costs 5 further samples" in notices[0].text
    assert events.index(notices[0]) < events.index(of(events, ev.SentenceJudged)[0])
    first = of(events, ev.SentenceJudged)[0].verdict
    assert first.trigger is not None
    terms = dict(first.terms)
    assert (terms["delta"], terms["k"]) == (-6.0, 5.0)
    assert first.threshold == pytest.approx(carried(-6.0, 5, terms["size"]))
    assert terms["U"] > (first.threshold or 0)
    assert of(events, ev.TextRetracted)[0].kept == ""


def test_it_does_not_search_when_they_agree() -> None:
    retriever = KeywordRetriever()
    tape = ["Lang lived in Vienna. It is big. So the answer is Vienna.", SAME, SAME, "Vienna"]
    events = run(QUESTION, tape, "engine.policy=seakr", retriever=retriever)
    assert retriever.queries == []
    assert "answer is stated" in of(events, ev.SentenceJudged)[-1].verdict.formula, "a stated answer is not sampled for"


def test_samples_that_say_nothing_do_not_decide() -> None:
    events = run(QUESTION, ["Lang lived in Vienna.", "------", "Vienna"], "engine.policy=seakr")
    assert of(events, ev.SentenceJudged)[0].verdict.trigger is None
    assert "fewer than two" in of(events, ev.SentenceJudged)[0].verdict.formula


def test_samples_continue_the_same_prompt_as_the_draft() -> None:
    from mindchat.models.scripted import ScriptedModel

    from ..fakes import ALL

    model = ScriptedModel(
        ["Lang lived in Vienna. It is big. So the answer is Vienna.", SAME, SAME, "Vienna"], provides=ALL
    )
    run(QUESTION, model, "engine.policy=seakr")
    draft, first, second, _ = model.prompts
    assert first == draft
    assert second.messages[:-1] == draft.messages[:-1]
    assert second.messages[-1].text == "Lang lived in Vienna."


def test_the_passage_with_the_lowest_uncertainty_is_kept_and_every_value_told() -> None:
    # three passages are found; with the second one all samples agree
    tape = [
        "Lang lived in Vienna and Warsaw.",
        SPREAD,
        SPREAD,
        SAME,
        SPREAD,
        " So the answer is Vienna.",
        SAME,
        SAME,
        "Vienna",
    ]
    events = run(QUESTION.replace("born", "born in Warsaw"), tape, "engine.policy=seakr")
    (found,) = of(events, ev.PassagesFound)
    assert len(found.passages) == 1
    told = next(notice.text for notice in of(events, ev.Notice) if "Kept: " in notice.text)
    assert told.count("U -") + told.count("U 0") >= 2
    assert f"Kept: {found.passages[0].title}." in told
    assert len([e for e in of(events, ev.ModelAsked) if e.kind == "sample"]) == 1 + 3 + 2, (
        "the sentence, three passages, two ways to answer"
    )


def test_the_query_drops_unsure_words_unless_the_question_has_them() -> None:
    sentence = probable(
        ("Fritz", 0.95), (" Lang", 0.2), (" directed", 0.5), (" Metropolis", 0.3), (" thus", 0.99), (".", 0.9)
    )
    trigger = ev.RetrievalTriggered  # the method looks at the sentence only
    del trigger
    policy = Seakr(config())
    query = policy.what(None, sentence, [], (), TurnState(1, QUESTION), ask())  # type: ignore[arg-type]
    assert query == Query(f"{QUESTION} Fritz Metropolis", "template")
    unsure = policy.what(None, probable(("Ann", 0.1), (" Droid", 0.1)), [], (), TurnState(1, QUESTION), ask())  # type: ignore[arg-type]
    assert unsure == Query(QUESTION, "question")


HOP = ["Lang lived in Vienna.", SPREAD, " Lang lived. So the answer is Vienna."]
UNSURE = "unknown---unknown---It is unknown.---unknown---Vienna"


@pytest.mark.parametrize(
    ("rationale", "passages", "notes", "documents", "told"),
    [
        (SAME, SPREAD, True, False, "reasoning alone U"),
        (SPREAD, SAME, False, True, "passages alone U"),
        (UNSURE, SPREAD, False, True, "reasoning alone U inf"),
        (SPREAD, UNSURE, True, False, "passages alone U inf"),
        ("------", "------", True, True, "inf"),
    ],
)
def test_the_answer_rests_on_the_surer_of_rationale_and_passages(
    rationale: str, passages: str, notes: bool, documents: bool, told: str
) -> None:
    tape = [*HOP, rationale, passages, "Vienna"]
    events = run(QUESTION, tape, "engine.policy=seakr", "seakr.rerank=false", "layout.repeat=0")
    prompt = next(event for event in of(events, ev.PromptBuilt) if event.purpose == "answer").prompt
    words = "".join(message.text for message in prompt.messages)
    assert ("Notes: Lang lived" in words, "Document [0]" in words) == (notes, documents)
    assert told in of(events, ev.Notice)[-1].text
    assert len([event for event in of(events, ev.ModelAsked) if event.kind == "sample"]) == 3
    end = events[-1]
    assert isinstance(end, ev.AnswerReady)
    assert documents or not end.answer.citations, "what was not in the prompt is not cited"


def test_without_both_there_is_nothing_to_choose() -> None:
    tape = ["Lang lived in Vienna. So the answer is Vienna.", SAME, "Vienna"]
    events = run(QUESTION, tape, "engine.policy=seakr", retriever=KeywordRetriever())
    assert len([event for event in of(events, ev.ModelAsked) if event.kind == "sample"]) == 1
    silent = run(QUESTION, [*HOP, "Vienna"], "engine.policy=seakr", "seakr.rerank=false", "answer.reasoning=false")
    assert len([event for event in of(silent, ev.ModelAsked) if event.kind == "sample"]) == 1
