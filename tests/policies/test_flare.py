"""FLARE by hand: probabilities, masking, explicit questions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindchat import events as ev
from mindchat.models.scripted import ScriptedModel
from mindchat.policies.flare import Flare, masked, sureness, terms
from mindchat.values import Draft, Query, Signal, Token, TurnState

from ..fakes import KeywordRetriever, ListRetriever, ask, config, of, passage, run

HOP = TurnState(1, "Where was the director of Metropolis born?")


def probable(*cells: tuple[str, float]) -> Draft:
    tokens = tuple(Token(i, i, text, math.log(p)) for i, (text, p) in enumerate(cells))
    return Draft("".join(text for text, _ in cells), tokens)


SENTENCE = probable(
    ("Fritz", 0.9),
    (" Lang", 0.95),
    (" was", 0.9),
    (" born", 0.9),
    (" in", 0.9),
    (" Buda", 0.3),
    ("pest", 0.99),
    (" in", 0.7),
    (" 1891", 0.2),
    (".", 0.9),
)


def test_a_word_is_as_sure_as_its_least_probable_token() -> None:
    assert {s.word.text: pytest.approx(s.probability) for s in sureness(SENTENCE)}["Budapest"] == 0.3


def test_masking_drops_whole_words_below_beta() -> None:
    assert masked(SENTENCE, 0.4) == "Fritz Lang was born in in ."
    assert masked(SENTENCE, 0.0) == SENTENCE.text
    assert terms(SENTENCE, 0.4) == ["Budapest", "1891"]
    assert terms(SENTENCE, 0.8) == ["Budapest in 1891"]


@pytest.mark.parametrize(("lowest", "triggers"), [(0.79, True), (0.8, False), (0.81, False)])
def test_every_token_at_or_above_theta_is_accepted(lowest: float, triggers: bool) -> None:
    sentence = probable(("Fritz", 0.9), (" Lang", lowest), (" won", 0.9))
    verdict = Flare(config()).when(sentence, HOP, ask())
    assert (verdict.trigger is not None) is triggers
    assert verdict.threshold == pytest.approx(0.2)
    assert verdict.words[1].score == pytest.approx(1 - lowest)


def test_the_whole_sentence_is_written_again() -> None:
    trigger = Flare(config()).when(SENTENCE, HOP, ask()).trigger
    assert trigger is not None
    assert (trigger.word, trigger.start) == ("1891", 0)


def test_the_implicit_query_is_the_masked_sentence() -> None:
    policy = Flare(config())
    trigger = policy.when(SENTENCE, HOP, ask()).trigger
    assert trigger is not None
    assert policy.what(trigger, SENTENCE, [], (), HOP, ask()) == Query("Fritz Lang was born in in .", "template")


def test_nothing_left_after_masking_means_no_search_and_says_so() -> None:
    verdict = Flare(config()).when(probable(("Budapest", 0.1), (" is", 0.9), (" it", 0.9)), HOP, ask())
    assert verdict.trigger is None
    assert "masking" in verdict.formula


def test_explicit_asks_one_question_for_each_unsure_term() -> None:
    policy = Flare(config("flare.query=explicit"))
    trigger = policy.when(SENTENCE, HOP, ask()).trigger
    assert trigger is not None
    asked = ask([" Where was Fritz Lang born?", " When was Fritz Lang born?"])
    queries = policy.what(trigger, SENTENCE, [], (), HOP, asked)
    assert isinstance(queries, tuple)
    assert [q.text for q in queries] == ["Where was Fritz Lang born?", "When was Fritz Lang born?"]
    model = asked._model
    assert isinstance(model, ScriptedModel)
    assert ["Term: Budapest" in p.messages[-2].text for p in model.prompts] == [True, False]


def test_explicit_without_a_readable_question_falls_back_to_the_masked_sentence() -> None:
    policy = Flare(config("flare.query=explicit"))
    trigger = policy.when(SENTENCE, HOP, ask()).trigger
    assert trigger is not None
    query = policy.what(trigger, SENTENCE, [], (), HOP, ask(["", " ..."]))
    assert isinstance(query, Query)
    assert query.by == "template"


def test_a_stub_shorter_than_a_word_is_not_looked_ahead_for() -> None:
    assert Flare(config()).when(probable(("1", 0.1), (".", 0.9)), HOP, ask()).trigger is None


def test_an_improbable_full_stop_is_no_reason_to_search() -> None:
    assert (
        Flare(config()).when(probable(("Fritz", 0.9), (" Lang", 0.9), (" won", 0.9), (".", 0.1)), HOP, ask()).trigger
        is None
    )


def test_it_needs_nothing_but_probabilities() -> None:
    events = run(
        HOP.question,
        ["Fritz Lang{3} lived in Vienna.", " So the answer is Vienna.", "Vienna"],
        "engine.policy=flare",
        provides=frozenset({Signal.LOGPROB}),
    )
    assert len(of(events, ev.RetrievalTriggered)) == 1


def test_first_search_can_be_switched_off() -> None:
    retriever = KeywordRetriever()
    run(
        HOP.question,
        ["So the answer is Vienna.", "Vienna"],
        "engine.policy=flare",
        "flare.first=false",
        retriever=retriever,
    )
    assert retriever.queries == []


def test_passages_are_replaced_but_those_of_one_hop_join() -> None:
    a, b, c = passage("a", "A."), passage("b", "B."), passage("c", "C.")
    retriever = ListRetriever([a], [b], [c])
    tape = [
        "Fritz Lang lived{3} in Vienna{3} long.",
        " Who lived?",
        " Where did Lang live?",
        " Lang lived. So the answer is Vienna.",
        "Vienna",
    ]
    events = run(HOP.question, tape, "engine.policy=flare", "flare.query=explicit", retriever=retriever)
    prompts = [e.copies for e in of(events, ev.PromptBuilt)]
    assert prompts[0] == (("a",),)
    assert prompts[1] == (("b", "c"),)


cells = st.lists(
    st.tuples(st.sampled_from([" Lang", " was", " Buda", "pest", ".", ",", " 1891"]), st.floats(0.001, 1.0)),
    min_size=1,
    max_size=20,
)


@settings(max_examples=80, deadline=None)
@given(cells, st.floats(0, 1))
def test_masking_keeps_exactly_the_sure_words_in_order(made: list[tuple[str, float]], beta: float) -> None:
    sentence = probable(*made)
    left = "".join(masked(sentence, beta).split())
    kept = "".join(s.word.text for s in sureness(sentence) if s.probability >= beta)
    assert left == kept
