"""Answers in sentences, and what is said and done when a limit ends one."""

from __future__ import annotations

import pytest

from mindchat import events as ev
from mindchat.engine.loop import LoopEngine
from mindchat.models.scripted import Reply, ScriptedModel
from mindchat.trace import cut_of, cut_words, fold, fold_all, report
from mindchat.values import Kept

from ..fakes import LANG, METROPOLIS, ListMemory, ListRetriever, engine, of, run

QUESTION = "Where was the director of Metropolis born?"
FULL = ("engine.policy=once", "answer.style=full")
WHY = " Metropolis was directed by Fritz Lang. Fritz Lang was born in Vienna."


def found() -> ListRetriever:
    return ListRetriever([METROPOLIS, LANG])


def ended(events: list[ev.Event]) -> ev.AnswerReady:
    assert isinstance(events[-1], ev.AnswerReady)
    return events[-1]


def test_the_short_answer_is_that_of_the_short_style_and_the_sentences_say_why() -> None:
    short = ended(run(QUESTION, [" Vienna"], "engine.policy=once", retriever=found())).answer
    model = ScriptedModel([" Vienna", WHY])
    events = run(QUESTION, model, *FULL, retriever=found())
    answer = ended(events).answer
    assert answer.text == "Metropolis was directed by Fritz Lang [1]. Fritz Lang was born in Vienna [2]."
    assert (answer.short, answer.verdict, answer.cut, answer.unsupported) == (short.short, "sourced", False, 0)
    assert [(c.n, c.passage) for c in answer.citations] == [(1, "p1"), (2, "p2")]
    first, second = model.prompts
    assert first.messages[:-1] == second.messages[:-1], "the second call only appends to the first"
    assert any(isinstance(segment, Kept) and segment.text == " Vienna" for segment in second.messages[-1].segments)
    assert [e.kind for e in of(events, ev.ModelAsked)] == ["answer", "explain"]
    assert fold_all(events).answer_text == WHY, "only the sentences are shown as they come"


def test_a_short_answer_that_the_sentences_leave_out_stands_before_them() -> None:
    answer = ended(
        run(QUESTION, [" Vienna", " Metropolis was directed by Fritz Lang."], *FULL, retriever=found())
    ).answer
    assert answer.text == "Vienna [1]. Metropolis was directed by Fritz Lang [2]."
    assert {c.passage for c in answer.citations} == {"p1", "p2"}, "and where it stands is cited"


def test_a_right_sentence_about_something_else_does_not_source_a_wrong_answer() -> None:
    answer = ended(
        run(
            QUESTION,
            [" Berlin", " Metropolis was directed by Fritz Lang."],
            *FULL,
            retriever=ListRetriever([METROPOLIS]),
        )
    ).answer
    assert answer.verdict == "sourced" or answer.citations  # the bridge is cited
    assert answer.short == "Berlin"
    located = ended(run(QUESTION, [" Rome", " Rome is old."], *FULL, retriever=found())).answer
    assert (located.verdict, located.citations) == ("doubtful", ())


def test_no_answer_is_not_explained() -> None:
    events = run(QUESTION, [" not stated"], *FULL, retriever=found())
    assert (ended(events).answer.verdict, [e.kind for e in of(events, ev.ModelAsked)]) == ("unresolved", ["answer"])


def test_a_question_that_a_few_words_cannot_answer_is_answered_in_sentences_at_once() -> None:
    model = ScriptedModel([" Read the plan.\n- Fritz Lang was born in Vienna [1].\n\n```sh\nmake all\n```"])
    events = run("How do I make Metropolis?", model, *FULL, retriever=found())
    answer = ended(events).answer
    assert answer.text == "Read the plan.\n- Fritz Lang was born in Vienna [1].\n\n```sh\nmake all\n```"
    assert answer.short == "Read the plan"
    assert [e.kind for e in of(events, ev.ModelAsked)] == ["answer"]
    assert "whole sentences" in of(events, ev.PromptBuilt)[-1].sent


def test_sentences_said_twice_are_shown_once() -> None:
    answer = ended(run(QUESTION, [" Vienna", WHY * 3], *FULL, retriever=found())).answer
    assert answer.text.count("directed by") == 1


def test_memory_learns_from_the_short_answer() -> None:
    memory = ListMemory()
    run(QUESTION, [" Vienna", WHY], *FULL, retriever=found(), memory=memory)
    assert [harvest.answer.text for harvest in memory.harvests] == [" Vienna"]


def test_overruled_words_are_explained_as_the_chosen_span() -> None:
    tape: list[Reply | str] = [" Metropolis", Reply(scores={" Vienna": -0.1, "Vienna": -0.1}), WHY]
    model = ScriptedModel(tape)
    answer = ended(run(QUESTION, model, *FULL, retriever=found())).answer
    assert answer.short == "Vienna"
    assert model.prompts[-1].messages[-1].text.startswith("Answer: Vienna")


# ── limits
# ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("style", "tape", "after"),
    [
        ("short", [Reply(" the city of", ends=False)], 3),
        ("full", [" Vienna", Reply(" Fritz Lang was born", ends=False)], 4),
        ("full", [Reply(" Fritz Lang was", ends=False), Reply(" born in", ends=False)], 5),
        ("full", [Reply(" Fritz Lang was", ends=False), " born in Vienna."], 0),
    ],
)
def test_whatever_ends_an_answer_but_its_own_end_is_said(style: str, tape: list[Reply | str], after: int) -> None:
    memory = ListMemory()
    events = run(QUESTION, tape, "engine.policy=once", f"answer.style={style}", retriever=found(), memory=memory)
    answer = ended(events).answer
    assert (answer.cut, answer.cut_after) == (after > 0, after)
    assert report(fold_all(events))["cut"] is (after > 0)
    assert (f"cut after {after} tokens" in cut_words(answer)) is (after > 0)
    assert answer.text.endswith("…") is (after > 0 and style == "full")
    assert not answer.cut or "[" not in answer.text.rpartition(". ")[2], (
        "nothing is claimed of a sentence that is not finished"
    )


def on(made: LoopEngine, events: list[ev.Event]) -> list[ev.Event]:
    cut = cut_of(fold_all(events))
    assert cut is not None
    return list(made.more(cut))


@pytest.mark.parametrize("pieces", [2, 3, 4])
def test_more_goes_on_by_token_ids_to_the_whole_answer(pieces: int) -> None:
    words = WHY.split(" ")[1:]
    size = -(-len(words) // pieces)
    parts = [" " + " ".join(words[at : at + size]) for at in range(0, len(words), size)]
    model = ScriptedModel([" Vienna", *(Reply(part, ends=part is parts[-1]) for part in parts)])
    made = engine(model, *FULL, retriever=found())
    events = list(made.run(QUESTION))
    whole = ended(run(QUESTION, [" Vienna", WHY], *FULL, retriever=found())).answer
    for n in range(1, len(parts)):
        events += on(made, events)
        assert model.prompts[-1].messages[-1].text == f"Answer: Vienna\nBecause:{''.join(parts[:n])}"
        assert sum(isinstance(segment, Kept) for segment in model.prompts[-1].messages[-1].segments) == 1 + n
    trace = fold_all(events)
    assert trace.answer is not None
    assert (trace.answer.text, trace.answer.short, trace.answer.citations) == (whole.text, whole.short, whole.citations)
    assert not trace.answer.cut
    assert trace.answer_text == WHY


def test_a_cut_short_answer_is_whole_after_more() -> None:
    model = ScriptedModel([Reply(" the city of", ends=False), " Vienna"])
    made = engine(model, "engine.policy=once", retriever=found())
    events = on(made, list(made.run(QUESTION)))
    answer = ended(events).answer
    assert (answer.short, answer.cut) == ("the city of Vienna", False)


def test_a_full_window_is_said_and_the_answer_stays() -> None:
    model = ScriptedModel([" Vienna", Reply(" Fritz Lang was", ends=False)], window=600)
    made = engine(model, *FULL, "answer.full_tokens=3", retriever=found())
    first = list(made.run(QUESTION))
    cut = cut_of(fold_all(first))
    assert cut is not None
    tight = engine(ScriptedModel([], window=20), *FULL, retriever=found())
    last = list(tight.more(cut))[-1]
    assert isinstance(last, ev.TurnFailed)
    assert "window" in last.message
    assert fold(fold_all(first), last).answer == ended(first).answer


# ── the same for reasoning
# ───────────────────────────────────────────────────────────────────────────────────────────────

LONG = "Metropolis was directed by Fritz Lang who was born in the city of Vienna in Austria."


def test_a_sentence_over_its_limit_is_judged_in_pieces_and_stays_one_sentence() -> None:
    events = run(
        QUESTION, [f"{LONG} So the answer is Vienna.", "Vienna"], "engine.sentence_tokens=6", retriever=found()
    )
    pieces = [e.text for e in of(events, ev.DraftAccepted) if e.channel == "reasoning"]
    assert len(pieces) > 3
    assert "".join(pieces) == f"{LONG} So the answer is Vienna."
    notices = [e.text for e in of(events, ev.Notice) if "sentence_tokens" in e.text]
    assert len(notices) == 1, "said once for the sentence"


def test_a_piece_is_never_learned_as_a_sentence() -> None:
    memory = ListMemory()
    flagged = "It was made by Ann{9,0.9} Droid."
    hop = [" Ann Droid | Metropolis - director", " Who directed Metropolis?"]
    rest = " Fritz Lang who was born in the city of Vienna. So the answer is Vienna."
    run(
        QUESTION,
        [flagged, *hop, rest, "Vienna"],
        "engine.filter=none",
        "engine.sentence_tokens=7",
        retriever=found(),
        memory=memory,
    )
    assert [h.answer.text for h in memory.harvests] == ["It was made by Fritz Lang who was born in the city of Vienna."]


@pytest.mark.parametrize(
    ("said", "mark", "stop"),
    [
        ("Metropolis is old. It was directed by", " …", "budget"),
        ("Metropolis is old. So the answer is Fri", " …", "budget"),
        ("Metropolis is old. It was directed by Lang.", "", "budget"),
        ("Metropolis is old. So the answer is Lang.", "", "answered"),
    ],
)
def test_reasoning_that_its_limit_cut_is_said_marked_and_not_taken_for_finished(
    said: str, mark: str, stop: str
) -> None:
    events = run(QUESTION, [Reply(said, ends=False), "Vienna"], retriever=found())
    assert ended(events).stop == stop
    notices = [e.text for e in of(events, ev.Notice) if "reasoning was cut" in e.text]
    assert len(notices) == (stop == "budget")
    assert all(("middle of a sentence" in text) is bool(mark) for text in notices)
    prompt = next(e for e in of(events, ev.PromptBuilt) if e.purpose == "answer")
    assert (f"{said}{mark}" in prompt.sent) if mark else (said in prompt.sent)


def test_an_answer_whose_own_sentence_stands_nowhere_is_doubtful() -> None:
    answer = ended(run(QUESTION, [" 1890", " Ann Droid was born in 1890."], *FULL, retriever=found())).answer
    assert (answer.verdict, answer.unsupported) == ("doubtful", 1)
    assert "[" not in answer.text


def test_who_wants_the_model_to_think_first_gets_that_for_every_question() -> None:
    tape = [" It was made step by step.", " in steps", " Metropolis was directed by Fritz Lang."]
    events = run("How do I make Metropolis?", tape, *FULL, "layout.cot=true", retriever=found())
    assert [e.kind for e in of(events, ev.ModelAsked)] == ["thinking", "answer", "explain"]
