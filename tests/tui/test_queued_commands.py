"""A command behind a running turn, with a question behind it: the screen ends with that question answered."""

from __future__ import annotations

from typing import Any

import pytest

from mindchat.commands import COMMANDS

LEAVES = {"quit"}
OPENS = {"sessions", "resume", "edit", "model"}
"""These put a screen or the prompt in front of what follows."""


SECOND = "And the second question?"


async def three(s: Any, first: str, name: str) -> None:
    """A question, a command and a question, without waiting for anything in between."""
    await s.ready()
    for text in (first, f"/{name}", SECOND):
        s.chat.query_one("Prompt").restore(text)
        await s.pilot.pause()
        await s.pilot.press("enter")


def answered(s: Any) -> bool:
    """Whether the second question's turn stands on the screen with its answer."""
    return any(view.question == SECOND and view.trace.state == "answered" for view in s.chat.query("TurnView"))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(COMMANDS) - LEAVES - OPENS))
async def test_a_question_behind_a_command_behind_a_question(stage: Any, fakes: Any, name: str) -> None:
    async with stage(pause=0.002) as s:
        await three(s, fakes.QUESTION, name)
        await s.until(lambda: answered(s))
        assert s.app.is_running


@pytest.mark.parametrize("name", ["clear", "new"])
async def test_what_was_before_the_command_goes_and_what_was_behind_it_stays(stage: Any, fakes: Any, name: str) -> None:
    async with stage(pause=0.002) as s:
        await three(s, fakes.QUESTION, name)
        await s.until(lambda: answered(s))
        assert [view.question for view in s.chat.query("TurnView")] == [SECOND]
