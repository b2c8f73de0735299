"""Grounded short answers: which spans are candidates, how they are compared, and what a turn says of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindchat import events as ev
from mindchat.engine.picking import BONUS, MOST, best, candidates, echoes
from mindchat.events import Event
from mindchat.models.scripted import Reply
from mindchat.text.language import language
from mindchat.trace import counts, fold_all
from mindchat.values import Choice, TurnState

from ..fakes import CURIE, LANG, METROPOLIS, ListMemory, of, passage, run

EN = language("en")
QUESTION = "Where was the director of Metropolis born?"
HOP = TurnState(1, QUESTION, passages=(METROPOLIS, LANG))
SPAN = ("engine.policy=once", "answer.short=span")


def ended(events: list[Event]) -> ev.AnswerReady:
    assert isinstance(events[-1], ev.AnswerReady), events[-1]
    return events[-1]


# ── candidates
# ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_names_dates_numbers_and_titles_of_the_passages_and_the_free_answer_first() -> None:
    found = candidates(HOP, "in Austria", EN)
    assert found[0] == "in Austria"
    assert {"Fritz Lang", "Vienna", "5 December 1890", "1927", "Metropolis"} <= set(found)


def test_what_the_question_names_comes_last_unless_it_compares() -> None:
    assert candidates(HOP, "in Austria", EN)[-1] == "Metropolis"
    compares = TurnState(1, "Who was born first, Fritz Lang or Marie Curie?", passages=(LANG, CURIE))
    assert {"Fritz Lang", "Marie Curie"} <= set(candidates(compares, "nobody", EN)[1:4])


def test_yes_and_no_for_a_polar_question_and_names_too_if_it_offers_them() -> None:
    assert candidates(TurnState(1, "Was Fritz Lang born in Vienna?", passages=(LANG,)), "Yes", EN) == ["Yes", "no"]
    offered = candidates(
        TurnState(1, "Was Fritz Lang or Marie Curie born in Vienna?", passages=(LANG, CURIE)), "Lang", EN
    )
    assert {"Fritz Lang", "Marie Curie"} <= set(offered)


def test_what_the_reasoning_states_is_a_candidate_and_its_words_count_for_similarity() -> None:
    hop = TurnState(1, QUESTION, accepted="It was by Fritz Lang. So the answer is Linz.", passages=(CURIE, LANG))
    found = candidates(hop, "?", EN)
    assert found[1] == "Linz"
    assert found.index("Vienna") < found.index("Warsaw")


def test_an_encyclopedias_note_is_no_part_of_a_title() -> None:
    assert "Metropolis" in candidates(
        TurnState(1, "What?", passages=(passage("p", "it is old", "Metropolis (1927 film)"),)), "x", EN
    )


@given(st.lists(st.text(max_size=120), max_size=8), st.text(min_size=1, max_size=30), st.text(max_size=60))
def test_any_text_gives_few_different_candidates(texts: list[str], free: str, question: str) -> None:
    found = candidates(
        TurnState(1, question, passages=tuple(passage(f"p{n}", text, text[:20]) for n, text in enumerate(texts))),
        free,
        EN,
    )
    assert found[0] == free
    assert len(found) <= MOST
    assert len({text.casefold() for text in found}) == len(found)


# ── the comparison
# ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_mean_per_token_decides_not_the_sum() -> None:
    found = best(["Fritz", "Fritz Lang"], [Choice("Fritz", -1.0, 1), Choice("Fritz Lang", -1.1, 2)], ())
    assert found.text == "Fritz Lang"


def test_what_stands_in_a_passage_gives_way_only_to_what_is_clearly_likelier() -> None:
    def chosen(other: float, *grounded: str) -> str:
        return best(["free", "other"], [Choice("free", -1.0, 1), Choice("other", other, 1)], grounded).text

    assert (chosen(-1.0 - BONUS * 0.9, "other"), chosen(-1.0 - BONUS * 1.1, "other")) == ("other", "free")
    assert (chosen(-1.1, "free", "other"), chosen(-0.9, "free", "other")) == (
        "free",
        "other",
    ), "among grounded ones nothing changes"


def test_grounded_is_what_stands_in_a_passage_word_for_word() -> None:
    near = Reply(
        scores={"Vienna": -1.0 - BONUS / 2, "old Vienna": -2.0}
    )  # the free answer has two words: a mean of -1.0
    assert ended(run(QUESTION, ["old Vienna", near], *SPAN)).answer.short == "Vienna"


@given(st.lists(st.tuples(st.floats(-400, 0), st.integers(1, 12)), min_size=1, max_size=MOST))
def test_the_share_is_a_share(scores: list[tuple[float, int]]) -> None:
    found = best([str(n) for n in range(len(scores))], [Choice(str(n), s, t) for n, (s, t) in enumerate(scores)], {"0"})
    assert 1 / len(scores) - 1e-9 <= found.share <= 1


# ── in a turn
# ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_likelier_span_becomes_the_answer_with_its_place_its_share_and_one_call() -> None:
    events = run(QUESTION, ["the city of Berlin", Reply(scores={"Vienna": -0.1, "the city of Berlin": -8.0})], *SPAN)
    answer = ended(events).answer
    assert (answer.text, answer.short) == ("Vienna", "Vienna")
    assert [c.quote for c in answer.citations] == ["Vienna"]
    assert answer.verdict == "sourced"
    assert counts(fold_all(events))["model_calls"] == {"answer": 1, "choose": 1}
    assert any("Vienna" in e.text and "the city of Berlin" in e.text for e in of(events, ev.Notice))
    assert of(events, ev.DraftAccepted)[-1].tokens == 0, "the overruled words are no part of the answer"


def test_the_options_continue_the_answer_prompt_itself() -> None:
    from mindchat.models.scripted import ScriptedModel

    model = ScriptedModel(["Vienna", Reply(scores={"Vienna": -0.1})])
    events = run(QUESTION, model, *SPAN)
    assert model.prompts[0] == model.prompts[1]
    assert ended(events).answer.short == "Vienna"
    assert of(events, ev.DraftAccepted)[-1].tokens == 1
    assert of(events, ev.Notice) == []


@pytest.mark.parametrize("layout", ["layout.cot=true", "layout.repeat=auto"])
def test_it_follows_thinking_and_probing_too(layout: str) -> None:
    tape = ["Lang was born there.", "Berlin"] if "cot" in layout else ["Berlin"]
    events = run(QUESTION, [*tape, Reply(scores={"Vienna": -0.1, "Berlin": -8.0})], *SPAN, layout)
    assert ended(events).answer.short == "Vienna"


@pytest.mark.parametrize(("said", "question"), [("not stated", QUESTION), ("unknown", QUESTION)])
def test_who_says_that_it_does_not_know_is_not_made_to_choose(said: str, question: str) -> None:
    events = run(question, [said], *SPAN)
    assert ended(events).answer.abstained
    assert "choose" not in counts(fold_all(events))["model_calls"]


def test_without_passages_the_answer_is_free() -> None:
    events = run("What is it?", ["Vienna"], "engine.policy=none", "answer.short=span")
    assert ended(events).answer.short == "Vienna"


def test_overruled_words_are_not_offered_to_memory() -> None:
    memory = ListMemory()
    run(QUESTION, ["Berlin", Reply(scores={"Vienna": -0.1, "Berlin": -8.0})], *SPAN, memory=memory)
    assert memory.harvests == []
    run(QUESTION, ["Vienna", Reply(scores={"Vienna": -0.1})], *SPAN, memory=memory)
    assert [harvest.answer.text for harvest in memory.harvests] == ["Vienna"]


ECHOES = [
    ("Metropolis", "Who directed Metropolis?", True),
    ("metropolis.", "Who directed Metropolis?", True),
    ("Fritz Lang", "Who directed Metropolis?", False),
    ("Metropolis", "Which film is older, Metropolis or Nosferatu?", False),
    ("yes", "Is Metropolis a film, yes or no?", False),
    ("", "Who directed Metropolis?", False),
]


@pytest.mark.parametrize(("short", "question", "expected"), ECHOES)
def test_an_echo_is_an_answer_that_the_question_named(short: str, question: str, expected: bool) -> None:
    assert echoes(short, question, language("en")) is expected


def test_an_echo_is_replaced_by_a_span_that_the_question_did_not_name() -> None:
    settings = ("engine.policy=once", "layout.repeat=0", "answer.short=auto")
    asked = "Who directed Metropolis?"
    echoed = run(asked, [" Metropolis", Reply(scores={"Fritz Lang": -0.5, "Metropolis": -0.1})], *settings)
    assert ended(echoed).answer.short == "Fritz Lang"
    plain = run(asked, [" Fritz Lang"], *settings)
    assert ended(plain).answer.short == "Fritz Lang"
    assert "choose" not in counts(fold_all(plain))["model_calls"]
