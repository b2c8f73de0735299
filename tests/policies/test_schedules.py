"""Fixed schedules, IRCoT and the gate."""

from __future__ import annotations

import pytest

from mindchat import events as ev
from mindchat.policies.ircot import LONGEST_PASSAGE, MOST_PASSAGES, Ircot
from mindchat.policies.schedules import Tokens
from mindchat.values import Draft, TurnState

from ..fakes import METROPOLIS, KeywordRetriever, ListRetriever, ask, config, draft, of, passage, run

QUESTION = "Where was the director of Metropolis born?"


def texts(retriever: KeywordRetriever | ListRetriever) -> list[str]:
    return [query.text for query in retriever.queries]


def test_sentences_searches_after_each_sentence_but_not_after_the_answer() -> None:
    retriever = KeywordRetriever()
    tape = [
        "Metropolis was directed by Fritz Lang. More",
        " He was born in Vienna. More",
        " So the answer is Vienna.",
        "Vienna",
    ]
    events = run(QUESTION, tape, "engine.policy=sentences", retriever=retriever)
    assert texts(retriever) == [QUESTION, "Metropolis was directed by Fritz Lang.", "He was born in Vienna."]
    assert of(events, ev.TextRetracted) == []
    end = events[-1]
    assert isinstance(end, ev.AnswerReady)
    assert end.stop == "answered"


def test_every_second_sentence() -> None:
    retriever = KeywordRetriever()
    tape = ["Metropolis is old. Fritz Lang made it. More", " He was born in Vienna. So the answer is Vienna.", "Vienna"]
    run(QUESTION, tape, "engine.policy=sentences", "schedule.sentences=2", retriever=retriever)
    assert texts(retriever) == [QUESTION, "Fritz Lang made it."]


def test_a_schedule_goes_on_when_searches_bring_nothing_new() -> None:
    tape = [
        "One is here. Two is here. Three is here. So the answer is four.",
        " Two is here. Three is here. So the answer is four.",
    ]
    tape += [" Three is here. So the answer is four.", " So the answer is four.", "four"]
    events = run(QUESTION, tape, "engine.policy=sentences", retriever=ListRetriever([METROPOLIS]))
    assert len([e for e in of(events, ev.DraftAccepted) if e.channel == "reasoning"]) == 4
    end = events[-1]
    assert isinstance(end, ev.AnswerReady)
    assert end.stop == "answered"


def test_tokens_cuts_units_of_n_tokens_wherever_they_end() -> None:
    retriever = KeywordRetriever()
    tape = ["Fritz Lang made the film. He was born", " in Vienna. So it is", " so.", "Vienna"]
    events = run(
        QUESTION, tape, "engine.policy=tokens", "schedule.tokens=4", "schedule.query_tokens=6", retriever=retriever
    )
    assert [e.sentence for e in of(events, ev.SentenceJudged)] == ["Fritz Lang made the", " in Vienna. So it", " so."]
    assert texts(retriever) == [QUESTION, "Fritz Lang made the", "made the in Vienna. So it"]
    assert [e.query.by for e in of(events, ev.QueryFormed)] == ["question", "template", "template"]


def test_tokens_ends_when_a_whole_sentence_has_stated_the_answer() -> None:
    tape = ["So the answer is Vienna. And then more and more and more", "Vienna"]
    events = run(QUESTION, tape, "engine.policy=tokens", "schedule.tokens=4", retriever=ListRetriever())
    end = events[-1]
    assert isinstance(end, ev.AnswerReady)
    assert end.stop == "answered"
    assert [e.text for e in of(events, ev.DraftAccepted)][:-1] == ["So the answer is", " Vienna. And then more"]


@pytest.mark.parametrize(("n", "last", "name"), [(4, 32, "(IC-RALM)"), (64, 64, "(RETRO-style)"), (16, 32, "last 32")])
def test_schedules_of_the_papers_are_named(n: int, last: int, name: str) -> None:
    policy = Tokens(config(f"schedule.tokens={n}", f"schedule.query_tokens={last}"))
    verdict = policy.when(Draft(""), TurnState(1, QUESTION), ask())
    assert verdict.formula.endswith(name)


def test_tokens_replaces_its_passages() -> None:
    a, b = passage("a", "A."), passage("b", "B.")
    tape = ["Fritz Lang made the", " film and so on", " end.", "Vienna"]
    events = run(QUESTION, tape, "engine.policy=tokens", "schedule.tokens=4", retriever=ListRetriever([a], [b]))
    assert [e.copies for e in of(events, ev.PromptBuilt)][:2] == [(("a",),), (("b",),)]


# ── ircot
# ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("sentence", "earlier", "query"),
    [
        ("Lang was born in Vienna.", (), "Lang was born in Vienna."),
        (" Thus it is so.", ("Lang lived.",), "Lang lived."),
        ("So, therefore.", (), QUESTION),
        ("1927 - 1890 = 37", ("Lang lived.", "Hence it is."), "Lang lived."),
    ],
)
def test_the_query_is_the_last_sentence_that_is_not_pure_reasoning(
    sentence: str, earlier: tuple[str, ...], query: str
) -> None:
    policy = Ircot(config())
    made = policy.what(None, draft((sentence, 0.1)), [], (), TurnState(1, QUESTION, sentences=earlier), ask())  # type: ignore[arg-type]
    assert made.text == query


def test_passages_add_up_to_fifteen() -> None:
    many = [passage(f"m{n}", f"Text {n}.", rank=n + 1) for n in range(40)]
    lists = [many[i : i + 10] for i in range(0, 40, 10)]
    tape = ["Lang lived here. X", " Lang lived there. X", " So the answer is Vienna.", "Vienna"]
    events = run(QUESTION, tape, "engine.policy=ircot", "retrieve.k=10", retriever=ListRetriever(*lists))
    assert [len(e.copies[0]) for e in of(events, ev.PromptBuilt)] == [10, MOST_PASSAGES, MOST_PASSAGES, MOST_PASSAGES]


def test_overlong_and_copied_paragraphs_are_not_collected() -> None:
    long = passage("long", "word " * (LONGEST_PASSAGE + 1))
    copy = passage("copy", METROPOLIS.text.upper())
    chosen = Ircot(config()).which(
        [long, copy, passage("new", "New.")], TurnState(1, QUESTION, passages=(METROPOLIS,)), ask()
    )
    assert [p.id for p in chosen] == ["new"]


def test_the_reader_sees_the_collected_passages() -> None:
    tape = ["Metropolis was directed by Fritz Lang.", " So the answer is Vienna.", "Vienna"]
    events = run(QUESTION, tape, "engine.policy=ircot", "retrieve.k=1")
    (reader,) = [e for e in of(events, ev.PromptBuilt) if e.purpose == "answer"]
    assert set(reader.copies[0]) == {"p1", "p2"} or reader.copies[0] == ("p1",)
    assert "Metropolis was directed by Fritz Lang." in reader.sent


# ── gate
# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("closed_book", "searches", "told"),
    [
        ("Vienna{0.2} Austria{0.4}", 0, "mean entropy 0.30 ≤ 0.5"),
        ("Vienna{0.2} Austria{0.9}", 1, "mean entropy 0.55 > 0.5"),
        ("", 1, "no answer from memory"),
    ],
)
def test_the_gate_decides_by_mean_entropy_and_says_so(closed_book: str, searches: int, told: str) -> None:
    retriever = KeywordRetriever()
    events = run(QUESTION, [closed_book, "Vienna"], "engine.policy=gate", retriever=retriever)
    assert len(retriever.queries) == searches
    assert told in of(events, ev.Notice)[0].text
    assert [e.kind for e in of(events, ev.ModelAsked)] == ["gate", "answer"]
    end = events[-1]
    assert isinstance(end, ev.AnswerReady)
    assert end.answer.text == "Vienna"
