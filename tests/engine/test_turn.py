"""A turn: what is accepted stays, what is flagged goes, and exactly one event ends it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindchat import events as ev
from mindchat.errors import CapabilityError
from mindchat.events import LAST, Event
from mindchat.models.scripted import Reply
from mindchat.policies import POLICIES
from mindchat.ports import Cancel
from mindchat.text.language import language
from mindchat.trace import fold_all
from mindchat.values import Fact, Found, Recalled, Signal

from ..fakes import (
    CURIE,
    LANG,
    METROPOLIS,
    KeywordRetriever,
    ListMemory,
    ListRetriever,
    NoIndex,
    engine,
    of,
    passage,
    run,
)

QUESTION = "Who directed the film Metropolis?"
FLAGGED = "The film Metropolis was directed by Ann{9,0.9} Droid in Berlin."
HOP = [" Ann Droid | Metropolis - director", " Who directed Metropolis?"]
NEXT = " Fritz Lang. So the answer is Fritz Lang."
TAPE: list[Reply | str] = [FLAGGED, *HOP, NEXT, "Fritz Lang"]
PLAIN = ("engine.filter=none",)


def last(events: list[Event]) -> Event:
    assert [isinstance(event, LAST) for event in events].count(True) == 1
    assert isinstance(events[-1], LAST)
    return events[-1]


def test_one_hop_from_trigger_to_answer() -> None:
    events = run(QUESTION, TAPE, *PLAIN)
    end = last(events)
    assert isinstance(end, ev.AnswerReady)
    assert (end.answer.text, end.stop) == ("Fritz Lang", "answered")
    assert [c.quote for c in end.answer.citations][:1] == ["Fritz Lang"]
    order = [
        type(e).__name__
        for e in events
        if isinstance(
            e,
            ev.RetrievalTriggered
            | ev.EntitiesExtracted
            | ev.EntitiesFiltered
            | ev.QueryFormed
            | ev.PassagesFound
            | ev.TextRetracted,
        )
    ]
    assert order == [
        "RetrievalTriggered",
        "EntitiesExtracted",
        "EntitiesFiltered",
        "QueryFormed",
        "PassagesFound",
        "TextRetracted",
    ]
    (retracted,) = of(events, ev.TextRetracted)
    assert (retracted.kept, retracted.text) == ("The film Metropolis was directed by", " Ann Droid in Berlin.")
    assert (
        "".join(e.text for e in of(events, ev.DraftAccepted) if e.channel == "reasoning")
        == " Fritz Lang. So the answer is Fritz Lang."
    )
    assert fold_all(events).reasoning.strip().endswith("So the answer is Fritz Lang.")


def test_kinds_of_calls_are_counted() -> None:
    kinds = [e.kind for e in of(run(QUESTION, TAPE, *PLAIN), ev.ModelAsked)]
    assert kinds == ["draft", "extract", "query", "redraft", "draft", "answer"]


def test_retraction_never_touches_what_was_accepted() -> None:
    tape = ["The film Metropolis is German. It was directed by Ann{9,0.9} Droid in Berlin.", *HOP, NEXT, "Fritz Lang"]
    events = run(QUESTION, tape, *PLAIN)
    accepted = ""
    for event in events:
        match event:
            case ev.DraftAccepted(channel="reasoning"):
                accepted += event.text
            case ev.TextRetracted():
                assert accepted == "The film Metropolis is German."
                assert event.text not in accepted
                accepted += event.kept
    (answer,) = [e for e in of(events, ev.PromptBuilt) if e.purpose == "answer"]
    assert "The film Metropolis is German. It was directed by Fritz Lang." in answer.sent
    assert "Ann Droid" not in answer.sent


def test_kept_words_are_continued_by_their_ids() -> None:
    events = run(QUESTION, TAPE, *PLAIN)
    first, second = [e for e in of(events, ev.PromptBuilt) if e.purpose == "reasoning"]
    assert first.prompt.messages[-1].text == ""
    assert second.prompt.messages[-1].text == "The film Metropolis was directed by"


def test_a_repeated_sub_query_is_not_searched_again_and_ends_the_loop() -> None:
    retriever = ListRetriever([METROPOLIS], [LANG], [CURIE])
    again = " Bob{9,0.9} Droid in Berlin yesterday. More"
    third = " It was Eve{9,0.9} Droid, from Berlin. More"
    tape = [
        FLAGGED,
        *HOP,
        again,
        " Metropolis",
        " who directed METROPOLIS",
        third,
        " Metropolis",
        " Who directed Metropolis?",
        "unknown",
    ]
    events = run(QUESTION, tape, *PLAIN, retriever=retriever)
    assert [e.repeated for e in of(events, ev.QueryFormed)] == [False, True, True]
    assert len(retriever.queries) == 1
    end = last(events)
    assert isinstance(end, ev.AnswerReady)
    assert end.stop == "repeated_query"


def test_no_new_passages_end_the_loop() -> None:
    tape = [
        FLAGGED + " More",
        *HOP,
        " It was Eve{9,0.9} Droid, from Berlin. More",
        " Eve",
        " Who was Eve?",
        "not stated",
    ]
    end = last(run(QUESTION, tape, *PLAIN, retriever=ListRetriever()))
    assert isinstance(end, ev.AnswerReady)
    assert (end.stop, end.answer.abstained) == ("no_new_passages", True)


def test_the_hop_limit_is_kept_and_named() -> None:
    many = [passage(f"m{n}", f"Text {n}") for n in range(9)]
    tape: list[Reply | str] = []
    for n in range(2):
        tape += [f" Ann{n}{{9,0.9}} Droid lived near Berlin.", f" Ann{n}", f" Who was Ann{n}?"]
    tape += [" Ann9{9,0.9} Droid lived near Berlin.", "Ann9"]
    events = run(QUESTION, tape, *PLAIN, "engine.max_hops=2", retriever=ListRetriever(*[[m] for m in many]))
    end = last(events)
    assert isinstance(end, ev.AnswerReady)
    assert end.stop == "max_hops"
    assert len(of(events, ev.RetrievalTriggered)) == 2
    assert of(events, ev.SentenceJudged)[-1].verdict.trigger is not None, "the trigger is still shown"


def test_sentences_are_limited() -> None:
    events = run(QUESTION, ["Lang lived. " * 5, "Lang"], *PLAIN, "engine.max_sentences=2")
    end = last(events)
    assert isinstance(end, ev.AnswerReady)
    assert end.stop == "budget"
    assert len([e for e in of(events, ev.DraftAccepted) if e.channel == "reasoning"]) == 2


def test_an_empty_step_ends_the_reasoning() -> None:
    end = last(run(QUESTION, ["", "Lang"], *PLAIN))
    assert isinstance(end, ev.AnswerReady)
    assert end.stop == "empty_step"


def test_without_an_index_the_answer_is_given_without_documents_and_says_so() -> None:
    events = run(QUESTION, ["Fritz Lang"], "engine.policy=once", retriever=NoIndex())
    (notice,) = of(events, ev.Notice)
    assert notice.level == "warning"
    assert "without documents" in notice.text
    assert "mindchat index add" in notice.text
    end = last(events)
    assert isinstance(end, ev.AnswerReady)
    assert end.answer.text == "Fritz Lang"


@pytest.mark.parametrize(
    ("provides", "works"),
    [
        (frozenset({Signal.LOGPROB, Signal.ENTROPY}), "rind-entropy"),
        (frozenset({Signal.LOGPROB}), "flare"),
        (frozenset[Signal](), "once"),
    ],
)
def test_a_policy_whose_signals_are_missing_is_refused_with_one_that_works(
    provides: frozenset[Signal], works: str
) -> None:
    with pytest.raises(CapabilityError) as caught:
        engine([], provides=provides)
    assert "Policy mind needs attention" in caught.value.message
    assert "scripted does not provide" in caught.value.message
    assert caught.value.hint == f"--policy {works} works with this model."


class CancelAt(Cancel):
    """Sets itself the n-th time it is looked at."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.left = n

    def check(self) -> None:
        self.left -= 1
        if self.left < 0:
            self.set()
        super().check()


def test_cancel_at_every_look_ends_the_turn_as_cancelled_and_keeps_what_was_accepted() -> None:
    phases = set()
    whole = run(QUESTION, [*TAPE], *PLAIN)
    for n in range(200):
        events = run(QUESTION, [*TAPE], *PLAIN, cancel=CancelAt(n))
        end = last(events)
        if isinstance(end, ev.AnswerReady):
            break
        assert isinstance(end, ev.TurnCancelled), end
        phases.add(end.phase)
        words = fold_all(events)
        assert end.partial in (words.reasoning, words.answer_text or words.draft_text)
    else:
        pytest.fail("the turn never finished")
    assert phases >= {"reasoning", "judge", "extract", "filter", "query", "search", "answer"}
    assert [type(e) for e in events] == [type(e) for e in whole]


def test_a_deadline_fails_the_turn_with_exit_code_four() -> None:
    end = last(run(QUESTION, [*TAPE], *PLAIN, cancel=Cancel(timeout=-1)))
    assert isinstance(end, ev.TurnFailed)
    assert (end.code, end.exit_code) == ("timeout", 4)


def test_closing_the_turn_stops_the_model() -> None:
    news = engine([*TAPE], *PLAIN).run(QUESTION)
    for event in news:
        if isinstance(event, ev.TokenDrafted):
            break
    news.close()
    assert list(news) == []


def test_memory_speaks_before_the_index_and_may_stand_in_for_it() -> None:
    fact = Fact("f1", "Metropolis", "director", "Fritz Lang", 0.95)
    memory = ListMemory({"Metropolis": Recalled((fact,), (METROPOLIS,), "known")})
    retriever = KeywordRetriever()
    events = run(QUESTION, TAPE, *PLAIN, retriever=retriever, memory=memory)
    (stored,) = of(events, ev.SearchSkipped)[0].passages
    assert (stored.id, stored.found) == (METROPOLIS.id, Found("memory"))
    assert retriever.queries == []
    assert [h.subquery for h in memory.harvests] == ["Who directed Metropolis?"]
    assert memory.harvests[0].answer.text == "The film Metropolis was directed by Fritz Lang."


def test_readonly_memory_learns_nothing() -> None:
    memory = ListMemory()
    run(QUESTION, TAPE, *PLAIN, "memory.mode=readonly", memory=memory)
    assert memory.harvests == []


# ── no answer, in words for people
# ───────────────────────────────────────────────────────────────────────────────────────


def test_who_finds_nothing_says_so_in_a_sentence_and_keeps_the_models_words() -> None:
    events = run(QUESTION, ["not stated in the documents"], "engine.policy=once")
    end = last(events)
    assert isinstance(end, ev.AnswerReady)
    assert (end.answer.text, end.answer.short) == ("Your documents do not say.", "not stated in the documents")
    assert end.answer.abstained
    assert end.answer.citations == ()
    assert "found no answer" in end.answer.why
    assert fold_all(events).answer == end.answer


def test_silence_is_no_answer() -> None:
    end = last(run(QUESTION, [""], "engine.policy=once"))
    assert isinstance(end, ev.AnswerReady)
    assert (end.answer.text, end.answer.short, end.answer.abstained) == ("Your documents do not say.", "", True)


# ── several turns
# ────────────────────────────────────────────────────────────────────────────────────────────────────────

HISTORY = (("Who directed Metropolis?", "Fritz Lang"),)


def test_a_follow_up_is_rewritten_shown_counted_and_searched_for() -> None:
    retriever = KeywordRetriever()
    events = run("And where was he born?", ["Vienna"], "engine.policy=once", history=HISTORY, retriever=retriever)
    assert of(events, ev.QuestionRewritten)[0].standalone == "Where was Fritz Lang born?"
    assert [e.kind for e in of(events, ev.ModelAsked)] == ["answer"], "a rule does it"
    assert retriever.queries[0].text == "Where was Fritz Lang born?"
    (built,) = of(events, ev.PromptBuilt)
    assert "Question: Where was Fritz Lang born?" in built.sent


@pytest.mark.parametrize("question", ["Who directed the film Nosferatu?", "In which year did Marie Curie die?"])
def test_a_question_that_stands_alone_is_not_rewritten(question: str) -> None:
    events = run(question, ["somebody"], "engine.policy=once", history=HISTORY)
    assert of(events, ev.QuestionRewritten) == []


def test_rewriting_can_be_switched_off() -> None:
    events = run("And where was he born?", ["Vienna"], "engine.policy=once", "engine.rewrite=false", history=HISTORY)
    assert [e.kind for e in of(events, ev.ModelAsked)] == ["answer"]


def test_old_turns_drop_visibly_when_the_window_is_small() -> None:
    history = tuple((f"Question number {n} about many old films?", f"Answer {n}") for n in range(4))
    events = run(
        "Who directed the film Nosferatu?",
        ["Murnau"],
        "engine.policy=once",
        "answer.max_tokens=4",
        history=history,
        window=80,
    )
    dropped = [d.passage for e in of(events, ev.DocumentsDropped) for d in e.dropped]
    assert dropped[0].startswith("turn: Question number 0")


# ── whatever the model says
# ──────────────────────────────────────────────────────────────────────────────────────────────

word = st.sampled_from(
    [
        "Fritz",
        "Lang",
        "was",
        "the",
        "Vienna.",
        "1927.",
        "So",
        "answer",
        "is",
        "Ann{9,0.9}",
        "Droid{4,0.2}",
        "",
        "keep",
        "2",
        "|",
        ";",
        "x\n",
    ]
)
reply = st.lists(word, max_size=14).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(reply, min_size=0, max_size=25),
    st.sampled_from(sorted(POLICIES)),
    st.sampled_from(["none", "cot", "conf", "conf+cot", "auto"]),
)
def test_any_tape_ends_in_exactly_one_last_event(tape: list[str], policy: str, kind: str) -> None:
    events = run(QUESTION, tape, f"engine.policy={policy}", f"engine.filter={kind}")
    end = last(events)
    assert isinstance(end, ev.AnswerReady) or (isinstance(end, ev.TurnFailed) and "tape" in end.message)
    assert all(event.query.text.strip() for event in of(events, ev.QueryFormed))
    assert len(of(events, ev.RetrievalTriggered)) <= 5
    for event in events:
        assert ev.from_json(ev.to_json(event)) == event


def test_the_same_tape_gives_the_same_bytes() -> None:
    def lines() -> list[str]:
        import re

        return [
            re.sub(r'"(first_token_)?seconds":[-\d.e]+', "", ev.to_json(event))
            for event in run(QUESTION, [*TAPE], *PLAIN)
        ]

    assert lines() == lines()


def test_retriever_queries_carry_who_wrote_them() -> None:
    retriever = KeywordRetriever()
    run(QUESTION, TAPE, *PLAIN, retriever=retriever)
    assert [query.by for query in retriever.queries] == ["model"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Who is the father of Jean?", "Who was the father of Jean?", True),
        ("father of Jean", "Jean: the father?", True),
        ("Who is the father of Jean?", "Who is the mother of Jean?", False),
        ("Who?", "What?", False),
    ],
)
def test_queries_with_the_same_content_words_are_the_same_to_an_index(one: str, other: str, same: bool) -> None:
    words = language("en")
    assert (words.key(one) == words.key(other)) is same
