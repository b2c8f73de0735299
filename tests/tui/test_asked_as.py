"""A follow-up that was rewritten says so where it was asked, and one key asks it as typed."""

from __future__ import annotations

from typing import Any

from mindchat import events as ev
from mindchat.values import Answer

TYPED, FORM = "And where was he born?", "Where was Fritz Lang born?"


def turn(question: str) -> list[ev.Event]:
    return [
        ev.TurnStarted(question, question, "smollm2-135m", "once", "conf", 0, "user", "same"),
        ev.QuestionRewritten(FORM),
        ev.DraftAccepted("Vienna", "answer", 1),
        ev.AnswerReady(Answer("Vienna", "Vienna", False, "sourced"), "answered", 1.0),
    ]


async def test_the_form_stands_under_the_question_and_a_key_asks_as_typed(stage: Any) -> None:
    async with stage((80, 24)) as s:
        await s.ready()
        s.session.script = turn
        await s.answer(TYPED)
        assert f"asked as: {FORM}" in s.text()
        await s.pilot.press("ctrl+o")
        await s.until(lambda: s.session.typed == [True] and not s.chat.busy)
        await s.say("/retry typed")
        await s.until(lambda: s.session.typed == [True, True] and not s.chat.busy)


async def test_what_was_asked_as_typed_is_not_asked_again(stage: Any, fakes: Any) -> None:
    async with stage((80, 24)) as s:
        await s.ready()
        await s.answer(fakes.QUESTION)
        assert "asked as" not in s.text()
        await s.pilot.press("ctrl+o")
        await s.pilot.pause()
        assert s.session.typed == []
