"""/more: the answer grows where it stands."""

from __future__ import annotations

from typing import Any

from mindchat import events as ev
from mindchat.values import Answer, Citation

CUT, WHOLE = (
    "Metropolis was directed by Fritz Lang [1]. He was …",
    "Metropolis was directed by Fritz Lang [1]. He was born in Vienna [2].",
)


def cited(*passages: str) -> tuple[Citation, ...]:
    return tuple(Citation(n, "/docs/x.md", passage, 0, 4, "text", "span") for n, passage in enumerate(passages, 1))


def script(fakes: Any) -> Any:
    def turn(question: str) -> list[ev.Event]:
        return [
            ev.TurnStarted(question, question, "smollm2-135m", "once", "conf", 0, "user", "same"),
            ev.PassagesFound(question, fakes.PASSAGES, 3),
            fakes.prompt(1, "full"),
            *fakes.drafted(" Metropolis was directed by Fritz Lang. He was", "answer"),
            ev.DraftAccepted(" Metropolis was directed by Fritz Lang. He was", "answer", 8),
            ev.AnswerReady(Answer(CUT, "Fritz Lang", False, "sourced", cited("p1"), cut_after=8), "answered", 1.0),
        ]

    return turn


def rest(fakes: Any) -> list[ev.Event]:
    return [
        ev.TurnStarted("Who?", "Who?", "smollm2-135m", "once", "conf", 0, "user", "same"),
        fakes.prompt(1, "full"),
        *fakes.drafted(" born in Vienna.", "answer"),
        ev.DraftAccepted(" born in Vienna.", "answer", 3),
        ev.AnswerReady(Answer(WHOLE, "Fritz Lang", False, "sourced", cited("p1", "p2")), "answered", 1.0),
    ]


async def test_a_cut_answer_is_said_and_more_completes_it_in_its_place(stage: Any, fakes: Any) -> None:
    async with stage((80, 24)) as s:
        await s.ready()
        s.session.script, s.session.rest = script(fakes), rest(fakes)
        await s.answer("Who?")
        assert "cut after 8 tokens; /more goes on" in s.text()
        await s.say("/more")
        await s.until(lambda: "born in Vienna [2]" in s.text())
        assert s.text().count("Metropolis was directed") == 1
        assert "/more goes on" not in s.text()
        assert s.chat.newest.trace.answer.text == WHOLE
        assert [trace.answer.text for trace in s.session.turns] == [WHOLE]
        await s.say("/more")
        await s.until(lambda: "no cut answer" in s.text())


async def test_what_fails_on_the_way_leaves_the_answer_as_it_was(stage: Any, fakes: Any) -> None:
    async with stage((80, 24)) as s:
        await s.ready()
        s.session.script = script(fakes)
        s.session.rest = [ev.TurnFailed("window", "The answer fills the window.", "Ask for the rest.")]
        await s.answer("Who?")
        await s.say("/more")
        await s.until(lambda: "fills the window" in s.text())
        assert "Metropolis was directed by Fritz Lang" in s.text()
