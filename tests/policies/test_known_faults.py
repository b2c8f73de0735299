"""Faults that users of the original systems filed, one test each (others stand with the part that they concern)."""

from __future__ import annotations

import json
import random

import pytest

from mindchat import events as ev
from mindchat.config import Config, RindSection
from mindchat.policies import POLICIES
from mindchat.policies.rind import judge
from mindchat.text.language import language
from mindchat.trace import fold_all, report
from mindchat.values import Passage, Query

from ..fakes import LANG, METROPOLIS, ListRetriever, draft, engine, of, run

QUESTION = "Is Metropolis older than Nosferatu?"
FLIP = [
    "Yes, Metropolis premiered{9,0.9} long before Nosferatu.",
    " Metropolis | Metropolis - year",
    " When did Metropolis come out?",
    " is younger. So the answer is no.",
    "no",
]


def test_an_answer_that_flips_after_a_search_is_visible_and_no_earlier_sentence_is_lost() -> None:
    """DRAGIN issue 5."""
    tape = ["Nosferatu is of 1922. " + FLIP[0], *FLIP[1:]]
    events = run(QUESTION, tape, "engine.filter=none", "rind.threshold=fixed")
    (retracted,) = of(events, ev.TextRetracted)
    assert "long before" in retracted.text
    trace = fold_all(events)
    assert trace.reasoning.startswith("Nosferatu is of 1922. Yes, Metropolis")
    assert trace.reasoning.endswith("So the answer is no.")
    assert any("premiered long before" in sentence.text for sentence in trace.sentences), (
        "the flagged draft can be read in the trace"
    )


@pytest.mark.parametrize("attention", ["sentence", "raw"])
def test_the_trigger_rate_over_lengths_is_reported(attention: str, record_property: pytest.RecordProperty) -> None:
    """DRAGIN issue 5: normalised attention makes S grow with a sentence's length. The bound is reported, not gated;
    that it triggers at all is.
    """
    rates = {}
    for length in (5, 15, 40):
        hits = 0
        for seed in range(100):
            rng = random.Random(seed * 100 + length)
            cells = [
                (
                    f" {rng.choice(['Lang', 'the', 'film', 'of', 'Vienna', 'was'])}",
                    rng.expovariate(1.2),
                    rng.uniform(0.02, 0.4),
                )
                for _ in range(length)
            ]
            hits += (
                judge(
                    draft(*cells), "", language("en"), RindSection(threshold="fixed", fixed=1.2), attention=attention
                ).trigger
                is not None
            )
        rates[length] = hits
    record_property("trigger_rate_percent", json.dumps(rates))
    assert any(rates.values())
    assert rates[5] <= rates[40], "more words, more chances: a fixed threshold cannot trigger less on longer sentences"


def test_the_trace_holds_the_formula_in_use_and_every_factor() -> None:
    """DRAGIN issue 9: which formula is it? S recomputes from the JSON line alone."""
    events = run(QUESTION, FLIP, "engine.filter=none")
    for line in [ev.to_json(event) for event in of(events, ev.SentenceJudged)]:
        verdict = json.loads(line)["verdict"]
        assert verdict["formula"].startswith("S = H · a / mean(a) · s; θ = ")
        for word in verdict["words"]:
            counts = word["content"] and not word.get("anchor", False)
            assert word["score"] == pytest.approx(word["entropy"] * word["attention"] * counts, abs=1e-6)


def test_extraction_failures_are_counted() -> None:
    """HippoRAG issue 3: an exception in extraction was swallowed."""
    events = run(QUESTION, [FLIP[0], "))((", *FLIP[2:]], "engine.filter=none")
    (found,) = of(events, ev.EntitiesExtracted)
    assert found.fallback
    assert "fallback" in json.dumps(report(fold_all(events)))
    assert isinstance(events[-1], ev.AnswerReady)


@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("shape", [list, tuple])
def test_any_sequence_of_passages_will_do(policy: str, shape: type) -> None:
    """FlashRAG issue 40: FLARE crashed on a list-shaped item."""
    from ..contract.test_policies import LOW, ByPrompt

    class Retriever:
        def search(self, query: Query, k: int) -> list[Passage] | tuple[Passage, ...]:
            found: list[Passage] | tuple[Passage, ...] = shape([METROPOLIS, LANG])
            return found

    events = list(
        engine(ByPrompt(LOW), f"engine.policy={policy}", "engine.filter=none", retriever=Retriever()).run(QUESTION)
    )
    assert isinstance(events[-1], ev.AnswerReady)


def test_a_search_that_finds_nothing_at_all_still_ends_in_an_answer() -> None:
    events = run(QUESTION, FLIP, "engine.filter=none", retriever=ListRetriever())
    end = events[-1]
    assert isinstance(end, ev.AnswerReady)


def test_defaults_hold_a_real_iteration_cap() -> None:
    """FLARE's code caps its loop at 10000."""
    assert Config().engine.max_hops <= 10
    assert Config().engine.max_sentences <= 20
