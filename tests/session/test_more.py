"""Going on with a cut answer: the same turn, in the history and on disk, also after the program was left."""

from __future__ import annotations

import pytest

from mindchat import wiring
from mindchat.commands import COMMANDS
from mindchat.errors import UsageError
from mindchat.events import AnswerReady, TurnFailed, from_json
from mindchat.models.scripted import Reply, ScriptedModel
from mindchat.paths import find_paths
from mindchat.ports import Cancel
from mindchat.trace import fold_all

from .conftest import Open

QUESTION = "Who directed the film Metropolis?"
CUT = Reply(" Fritz Lang and", ends=False)


def test_more_goes_on_in_the_same_turn(open_session: Open) -> None:
    session = open_session([CUT, Reply(" Thea von", ends=False), " Harbou"])
    list(session.ask(QUESTION))
    for said in ("Fritz Lang and Thea von …", "Fritz Lang and Thea von Harbou"):
        (reply,) = COMMANDS["more"].run(session, "")
        assert reply.action == "more"
        last = list(session.more())[-1]
        assert isinstance(last, AnswerReady)
        assert last.answer.text == said
    assert len(session.turns) == len(session.history) == 1
    (turn,) = wiring.open_chats(find_paths()).show(session.id or "").turns
    assert (turn.answer, turn.status, turn.report["cut"]) == ("Fritz Lang and Thea von Harbou", "done", False)  # type: ignore[index]
    stored = [from_json(line) for line in wiring.open_chats(find_paths()).events(turn.id).splitlines()]
    assert [type(event) for event in stored].count(AnswerReady) == 1
    assert fold_all(stored).answer == session.turns[0].answer


def test_a_later_start_goes_on_too_but_only_with_the_same_model(
    open_session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_session([CUT])
    list(first.ask(QUESTION))
    later = open_session([" Thea von Harbou"], session=first.id)
    last = list(later.more())[-1]
    assert isinstance(last, AnswerReady)
    assert last.answer.text == "Fritz Lang and Thea von Harbou"
    again = open_session([CUT])
    list(again.ask(QUESTION))
    other = open_session([], session=again.id)
    monkeypatch.setattr(wiring, "load_model", lambda config, progress: ScriptedModel([" x"], id="another"))
    other._open_model = wiring.load_model  # type: ignore[assignment]
    failed = list(other.more())[-1]
    assert isinstance(failed, TurnFailed)
    assert "Another model" in failed.message


def test_what_is_stopped_leaves_the_answer_to_be_gone_on_with(open_session: Open) -> None:
    session = open_session([CUT, " Thea", " Thea von Harbou"])
    list(session.ask(QUESTION))
    before, cancel = session.turns[0], Cancel()
    cancel.set()
    list(session.more(cancel=cancel))
    assert session.turns == [before]
    assert session.newest_cut() is not None
    (turn,) = wiring.open_chats(find_paths()).show(session.id or "").turns
    assert turn.status == "done"
    assert isinstance(list(session.more())[-1], AnswerReady)


def test_there_must_be_a_cut_answer(open_session: Open) -> None:
    session = open_session([" Fritz Lang"])
    for _ in range(2):
        with pytest.raises(UsageError, match="no cut answer"):
            list(COMMANDS["more"].run(session, ""))
        with pytest.raises(UsageError, match="no cut answer"):
            session.more()
        list(session.ask(QUESTION)) if not session.turns else None


def test_events_that_cannot_be_read_are_nothing_to_go_on_with(open_session: Open) -> None:
    first = open_session([CUT])
    list(first.ask(QUESTION))
    chats = wiring.open_chats(find_paths())
    (turn,) = chats.show(first.id or "").turns
    chats.finish_turn(turn.id, "Fritz Lang and", "{}", b'{"type":"AnswerReady"}\n', "done")
    with pytest.raises(UsageError, match="no cut answer"):
        open_session([], session=first.id).more()


def test_later_turns_see_the_standalone_question_and_the_short_answer(open_session: Open) -> None:
    session = open_session(
        [" Fritz Lang", " It was Metropolis.", " Vienna", " He was born in Vienna."], "answer.style=full"
    )
    list(session.ask(QUESTION))
    list(session.ask("And where was he born?"))
    known = [(QUESTION, "Fritz Lang"), ("Where was Fritz Lang born?", "Vienna")]
    assert session.history == known
    assert open_session([], session=session.id).history == known
    assert [question for question, _, _ in open_session([], session=session.id).past] == [
        QUESTION,
        "And where was he born?",
    ]
