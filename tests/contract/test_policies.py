"""What holds for every policy of the table, present and future."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from mindchat import events as ev
from mindchat.config import Config, load_config
from mindchat.errors import CapabilityError, ConfigError
from mindchat.events import LAST, Event
from mindchat.policies import POLICIES
from mindchat.ports import Policy
from mindchat.values import Query, Recalled, Signal

from ..fakes import ALL, ByPrompt, KeywordRetriever, ListMemory, config, engine, of, plug

QUESTION = "Who directed the film Metropolis?"
SIDE = {
    "extract": " Ann Droid | Metropolis - director",
    "cot": " keep: asked about\n2 keep: its director",
    "query": " Who directed the film Metropolis of 1927?",
    "ask": " Who directed it?",
    "decompose": " Who directed Metropolis?\n2. Where was Fritz Lang born?",
}
LOW = {
    **SIDE,
    "draft": (
        "Follow up: The film Metropolis was directed by Ann{9,0.9} Droid in Berlin. It is old. So the answer is Droid."
    ),
    "redraft": " Fritz Lang. So the answer is Fritz Lang.",
    "sample": "one---two---three---four---five",
    "answer": "Ann{4} Droid{4}",
}
HIGH = {
    **SIDE,
    "draft": (
        "Follow up: The film Metropolis was directed by Fritz Lang long ago. It is old. So the answer is Fritz Lang."
    ),
    "redraft": " It is old. So the answer is Fritz Lang.",
    "sample": "one",
    "answer": "Fritz Lang",
}
ADAPTIVE = {"mind", "rind-fixed", "rind-entropy", "dragin", "flare", "seakr", "gate"}
FIRST = {"flare": 1}
"""Searches that an adaptive policy declares before the first word."""


def turn(policy: str, answers: dict[str, str], *sets: str, **parts: Any) -> tuple[list[Event], ByPrompt]:
    model = ByPrompt(answers)
    events = list(engine(model, f"engine.policy={policy}", "engine.filter=none", *sets, **parts).run(QUESTION))
    assert [isinstance(event, LAST) for event in events].count(True) == 1
    assert isinstance(events[-1], ev.AnswerReady), events[-1]
    return events, model


@pytest.fixture(params=sorted(POLICIES))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_it_starts_from_the_default_configuration_under_its_own_name(name: str) -> None:
    policy: Policy = plug(POLICIES, name, Config())
    assert policy.name == name
    assert policy.needs <= ALL
    assert policy.reasons or not policy.retracts


def test_it_ends_in_an_answer_with_exactly_one_last_event(name: str) -> None:
    for answers in (LOW, HIGH):
        events, _ = turn(name, answers)
        assert all(event.query.text.strip() for event in of(events, ev.QueryFormed))
        for event in events:
            assert ev.from_json(ev.to_json(event)) == event


@pytest.mark.parametrize("policy", sorted(ADAPTIVE))
def test_adaptive_policies_retrieve_when_unsure_and_do_not_when_sure(policy: str) -> None:
    unsure, sure = KeywordRetriever(), KeywordRetriever()
    turn(policy, LOW, retriever=unsure)
    turn(policy, HIGH, retriever=sure)
    assert len(unsure.queries) > FIRST.get(policy, 0)
    assert len(sure.queries) == FIRST.get(policy, 0)


def test_every_query_goes_to_memory_before_the_one_retriever_with_the_one_k(name: str) -> None:
    asked: list[Query] = []
    sizes: list[int] = []

    class Memory(ListMemory):
        def recall(self, query: Query) -> Recalled:
            asked.append(query)
            return Recalled()

    class Retriever(KeywordRetriever):
        def search(self, query: Query, k: int) -> Any:
            sizes.append(k)
            assert query in asked
            return super().search(query, k)

    events, _ = turn(name, LOW, "retrieve.k=2", retriever=Retriever(), memory=Memory())
    formed = iter(asked)  # a chain asks memory for its slots before it is decided that anything is searched
    assert all(event.query in formed for event in of(events, ev.QueryFormed))
    assert set(sizes) <= {2}


def test_every_decision_is_judged_in_an_event_with_its_formula(name: str) -> None:
    events, _ = turn(name, LOW)
    judged = of(events, ev.SentenceJudged)
    assert bool(judged) == plug(POLICIES, name, config()).reasons
    assert all(event.verdict.formula and event.policy == name for event in judged)
    # a hop needs a verdict that asked for it; only the search before the first word has none
    assert len(of(events, ev.RetrievalTriggered)) <= len([event for event in judged if event.verdict.trigger])


def test_a_first_search_is_the_same_prompt_for_all(name: str) -> None:
    """Comparisons share the prompts: system message and exemplars are equal but for self-ask, whose format is the
    method.
    """
    if name == "selfask" or not plug(POLICIES, name, config()).reasons:
        return
    events, _ = turn(name, HIGH)
    reference, _ = turn("mind", HIGH)

    def fixed(events: list[Event]) -> list[str]:
        first, *_ = [e for e in of(events, ev.PromptBuilt) if e.purpose == "reasoning"]
        return [
            m.text
            for m in first.prompt.messages
            if all(getattr(s, "origin", "") in ("instruction", "exemplar") for s in m.segments) and m.segments
        ]

    assert fixed(events)[:1] == fixed(reference)[:1]
    assert len(fixed(events)) >= 3


def test_the_model_that_is_named_receives_every_call(name: str) -> None:
    events, model = turn(name, LOW)
    assert of(events, ev.TurnStarted)[0].model == model.id
    asked = [event.kind for event in of(events, ev.ModelAsked)]
    for kind in ("extract", "query", "sample", "decompose"):
        assert model.calls.count(kind) == asked.count(kind)
    assert model.calls.count("answer") == asked.count("answer") + asked.count("gate")


def test_a_model_that_lacks_a_signal_is_refused_in_one_sentence_that_names_what_works(name: str) -> None:
    needs = plug(POLICIES, name, config()).needs
    for signal in needs:
        provides = ALL - {signal} - ({Signal.LOGPROB, Signal.ENTROPY} if signal in (Signal.LOGPROB,) else set())
        with pytest.raises(CapabilityError) as caught:
            engine(ByPrompt({}, provides=frozenset(provides)), f"engine.policy={name}")
        assert name in caught.value.message
        assert signal.value in caught.value.message
        works = caught.value.hint.split()[1]
        engine(ByPrompt({}, provides=frozenset(provides)), f"engine.policy={works}")


def test_an_unknown_key_of_its_section_fails_at_load_and_is_named(name: str) -> None:
    sections = {
        "rind-fixed": "rind",
        "rind-entropy": "rind",
        "mind": "rind",
        "sentences": "schedule",
        "tokens": "schedule",
    }
    section = sections.get(name, name if hasattr(Config(), name) else "engine")
    with pytest.raises(ConfigError, match=rf"{section}\.nonsense"):
        load_config(environ={}, assignments=(f"{section}.nonsense=1",))


def test_laying_out_the_prompt_keeps_the_accepted_words_and_the_question(name: str) -> None:
    from mindchat.prompts import COMPOSERS
    from mindchat.values import Draft, Kept, Token, TurnState

    settings = config()
    kept = [Draft("It was", (Token(0, 5, "It"), Token(1, 6, " was")))]
    prompt = plug(COMPOSERS, "user", settings).reasoning(
        TurnState(0, QUESTION, accepted="It was"), kept, [("old question", "old answer")]
    )
    laid = plug(POLICIES, name, settings).lay(prompt)
    assert [s for s in laid.messages[-1].segments if isinstance(s, Kept)] == [Kept((5, 6), "It was")]
    text = "\n".join(message.text for message in laid.messages)
    assert QUESTION in text
    assert "old question" in text
    assert plug(POLICIES, name, settings).lay(prompt) == laid


def test_policies_are_made_anew_for_each_turn_by_before(name: str) -> None:
    """A second turn of the same engine behaves as the first one: no state leaks from turn to turn."""
    made = engine(ByPrompt(LOW), f"engine.policy={name}", "engine.filter=none")

    def shape() -> list[Any]:
        found: list[Any] = []
        for event in made.run(QUESTION):
            if isinstance(event, ev.SentenceJudged | ev.QueryFormed | ev.TextRetracted):
                found.append(replace(event))
        return found

    assert shape() == shape()
