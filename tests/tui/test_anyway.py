"""A question that was refused is asked all the same by one key; while something is typed the key is the editor's."""

from __future__ import annotations

from typing import Any

from mindchat import events as ev
from mindchat.tui.widgets.prompt import Prompt
from mindchat.values import Answer


def refused(question: str) -> list[ev.Event]:
    return [
        ev.TurnStarted(question, question, "smollm2-135m", "once", "conf", 0, "user", "same"),
        ev.AnswerReady(Answer("", "Your documents do not say.", False, "not_in_documents"), "answered", 1.0),
    ]


async def test_one_key_asks_a_refused_question_anyway(stage: Any) -> None:
    async with stage((80, 24)) as s:
        await s.ready()
        s.session.script = refused
        await s.answer("Who?")
        assert s.chat.query_one(Prompt).input.has_focus
        await s.pilot.press("ctrl+y")
        await s.until(lambda: s.session.anyway == [True] and not s.chat.busy)


async def test_while_something_is_typed_the_key_is_the_editors(stage: Any) -> None:
    async with stage((80, 24)) as s:
        await s.ready()
        s.session.script = refused
        await s.answer("Who?")
        await s.pilot.press("a", "ctrl+y")
        await s.pilot.pause()
        assert s.session.anyway == []


async def test_nothing_is_asked_anew_where_nothing_was_refused(stage: Any, fakes: Any) -> None:
    async with stage((80, 24)) as s:
        await s.ready()
        await s.answer(fakes.QUESTION)
        await s.pilot.press("ctrl+y")
        await s.pilot.pause()
        assert s.session.anyway == []
