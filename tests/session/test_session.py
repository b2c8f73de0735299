from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import pytest

from mindchat import session as module
from mindchat import wiring
from mindchat.errors import ModelMissingError, NotFoundError, UsageError
from mindchat.events import LAST, AnswerReady, ModelLoading, QuestionRewritten, TurnCancelled, TurnFailed
from mindchat.models.scripted import ScriptedModel
from mindchat.pace import Pace, PaceFile, Ratio
from mindchat.paths import find_paths
from mindchat.ports import Cancel
from mindchat.session import Session

Open = Callable[..., Session]
QUESTION = "Who directed Metropolis?"


def bytes_of(folder: Path) -> dict[str, bytes]:
    """What is on disk; the -shm file holds readers' marks, no content, and an empty log holds nothing."""
    held = {path.name: path.read_bytes() for path in folder.glob("*.db*") if not path.name.endswith("-shm")}
    return {name: content for name, content in held.items() if content or not name.endswith("-wal")}


def test_a_turn_is_written_down_with_its_events_and_report(open_session: Open) -> None:
    session = open_session([" Fritz Lang"])
    events = list(session.ask(QUESTION))
    assert isinstance(events[-1], AnswerReady)
    chats = wiring.open_chats(find_paths())
    transcript = chats.show(session.id or "")
    assert [(turn.question, turn.answer, turn.status) for turn in transcript.turns] == [
        (QUESTION, "Fritz Lang", "done")
    ]
    assert session.history == [(QUESTION, "Fritz Lang")]
    assert len(chats.events(1).splitlines()) == len(events)


def test_the_users_turn_is_on_disk_before_the_first_event(open_session: Open) -> None:
    session = open_session([" Fritz Lang"])
    stream = session.ask(QUESTION)
    next(stream)
    turns = wiring.open_chats(find_paths()).show(session.id or "").turns
    assert [(turn.question, turn.status) for turn in turns] == [(QUESTION, "running")]


def test_the_partial_answer_is_saved_while_it_streams(open_session: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PARTIAL_SECONDS", 0.0)
    session = open_session([" Fritz Lang was it"])
    for event in session.ask(QUESTION):
        if type(event).__name__ == "TokenDrafted" and "Lang" in event.token.text:  # type: ignore[union-attr]
            break
    assert "Fritz Lang" in wiring.open_chats(find_paths()).show(session.id or "").turns[0].answer


def test_a_second_session_goes_on_where_the_first_ended(open_session: Open) -> None:
    first = open_session([" Fritz Lang"])
    list(first.ask(QUESTION))
    second = open_session([" Vienna"], session=first.id)
    assert second.history == [(QUESTION, "Fritz Lang")]
    events = list(second.ask("And where was he born?"))
    assert [e.standalone for e in events if isinstance(e, QuestionRewritten)] == ["Where was Fritz Lang born?"]


def test_incognito_leaves_every_byte_as_it_was(open_session: Open) -> None:
    first = open_session([" Fritz Lang"])
    list(first.ask(QUESTION))
    first.close()
    del first
    gc.collect()  # a connection that waits to be collected would move SQLite's log into the file while we look
    before = bytes_of(find_paths().data)
    session = open_session([" Fritz Lang"], incognito=True)
    list(session.ask(QUESTION))
    assert bytes_of(find_paths().data) == before
    assert session.id is None
    assert session.rooms.chats is None
    assert session.rooms.memory is None


def test_cancel_keeps_what_was_read_and_says_so(open_session: Open) -> None:
    session, cancel = open_session([" Fritz Lang was it"]), Cancel()
    events = []
    for event in session.ask(QUESTION, cancel=cancel):
        events.append(event)
        if type(event).__name__ == "TokenDrafted":
            cancel.set()
    assert isinstance(events[-1], TurnCancelled)
    turn = wiring.open_chats(find_paths()).show(session.id or "").turns[0]
    assert (turn.status, turn.answer) == ("cancelled", " Fritz")
    assert session.history == []


def test_retry_asks_again_without_the_old_answer_in_view(open_session: Open) -> None:
    session = open_session([" Fritz Lang", " Lang"])
    list(session.ask(QUESTION))
    list(session.retry())
    assert session.history == [(QUESTION, "Lang")]
    with pytest.raises(UsageError):
        open_session([]).retry()


def test_a_reopened_conversation_shows_what_was_cut_off_and_asks_it_again(
    open_session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PARTIAL_SECONDS", 0.0)
    first = open_session([" Fritz Lang was it"])
    for event in first.ask(QUESTION):
        if type(event).__name__ == "TokenDrafted" and "Lang" in event.token.text:  # type: ignore[union-attr]
            break  # as if killed
    second = open_session([" Fritz Lang"], session=first.id)
    question, answer, status = second.past[0]
    assert (question, status) == (QUESTION, "running")
    assert "Fritz Lang" in answer
    assert second.history == [], "an answer without an end is no material for the next prompt"
    list(second.retry())
    assert second.history == [(QUESTION, "Fritz Lang")]
    third = open_session([" Lang"], session=first.id)
    list(third.retry())
    assert third.history == [(QUESTION, "Lang")], "the answer that is asked again is out of view"


@pytest.mark.parametrize("on", [True, False])
def test_nothing_is_carried_into_or_out_of_incognito(open_session: Open, on: bool) -> None:
    session = open_session([" Fritz Lang"], incognito=not on)
    list(session.ask(QUESTION))
    session.go_incognito(on)
    assert (session.history, session.turns, session.events, session.past) == ([], [], [], ())
    with pytest.raises(UsageError):
        session.retry()


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_question_is_refused(open_session: Open, text: str) -> None:
    with pytest.raises(UsageError):
        list(open_session([]).ask(text))


def test_a_model_that_cannot_be_had_ends_the_turn_as_a_failure(
    open_session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session([])

    def missing(config: object, progress: object) -> ScriptedModel:
        raise ModelMissingError("The model is not here.", "mindchat models pull it")

    session._open_model = missing  # type: ignore[assignment]
    events = list(session.ask(QUESTION))
    assert isinstance(events[-1], TurnFailed)
    assert events[-1].exit_code == 3
    assert sum(isinstance(event, LAST) for event in events) == 1


def test_loading_reports_progress_and_can_be_cancelled(open_session: Open) -> None:
    session, cancel = open_session([]), Cancel()
    loads = 0

    def slow(config: object, progress: Callable[[ModelLoading], None]) -> ScriptedModel:
        nonlocal loads
        for step in range(1000):
            loads = step
            progress(ModelLoading("loading", step, 1000))
            cancel.set()
        raise AssertionError("was not stopped")

    session._open_model = slow  # type: ignore[assignment]
    events = list(session.ask(QUESTION, cancel=cancel))
    assert isinstance(events[-1], TurnCancelled)
    assert loads < 1000


def test_a_change_loads_the_model_again_only_if_the_model_is_another_one(open_session: Open) -> None:
    session = open_session([" a", " b"])
    list(session.ask(QUESTION))
    model = session.model
    session.change("layout.repeat", "0")
    assert session.model is model
    session.change("model.window", "2000")
    assert session.model is None


def test_the_report_of_a_turn_is_the_contracts(open_session: Open) -> None:
    session = open_session([" Fritz Lang"])
    list(session.ask(QUESTION))
    stored = wiring.open_chats(find_paths()).show(session.id or "").turns[0].report
    assert stored is not None
    keys = "question standalone answer short abstained verdict trust confidence citations model policy filter layout"
    keys += " hops context counts timing stop seed versions"
    assert set(keys.split()) <= set(stored)


def test_what_a_turn_took_is_known_to_the_next_session(open_session: Open) -> None:
    first = open_session(["Fritz Lang"])
    assert first.forecast() == (None, None)
    list(first.ask(QUESTION))
    (known,) = [PaceFile(first.rooms.paths.cache / "pace.json").read(first.config)]
    assert [work.written.value for work in known.work.values()] == [2.0]
    PaceFile(first.rooms.paths.cache / "pace.json").add(first.config, Pace(Ratio(100, 1), Ratio(10, 1), Ratio(80, 1)))
    expected, copies = open_session([]).forecast()
    assert expected is not None
    assert expected.seconds == pytest.approx(expected.read / 100 + expected.written / 10, rel=0.1)
    assert copies is not None
    assert copies.tokens > 0


def test_a_conversation_that_is_not_there_leaves_this_one_as_it_is(open_session: Open) -> None:
    session = open_session([" Fritz Lang", " Vienna"])
    list(session.ask(QUESTION))
    before = (session.id, list(session.turns), list(session.history), session.past)
    with pytest.raises(NotFoundError):
        session.resume("s0000000")
    assert (session.id, list(session.turns), list(session.history), session.past) == before
    assert isinstance(list(session.ask("Where was Fritz Lang born?"))[-1], AnswerReady)
    assert len(wiring.open_chats(find_paths()).show(session.id or "").turns) == 2


class Unsettled(ScriptedModel):
    """A model whose load left something."""

    settled = False

    def settle(self, *, cancel: Cancel) -> None:
        cancel.check()
        self.settled = True


def test_what_a_load_left_is_done_before_the_turns_clocks_start(
    open_session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session([" Fritz Lang"])
    monkeypatch.setattr(session, "_open_model", lambda config, tell: Unsettled([" Fritz Lang"]))
    cancel = Cancel()
    events = session.ask(QUESTION, cancel=cancel)
    for event in events:
        if isinstance(event, ModelLoading) and event.phase == "arranging weights":
            cancel.set()
    assert event == TurnCancelled("", "loading")
    phases = [
        (event.phase, session.model.settled) if isinstance(event, ModelLoading) else ()
        for event in session.ask(QUESTION)
    ]
    assert phases[:3] == [("arranging weights", False), ("ready", True), ()]
    assert not [event for event in session.ask(QUESTION) if isinstance(event, ModelLoading)]


def test_an_incognito_turn_is_not_timed(open_session: Open) -> None:
    session = open_session(["Fritz Lang"], incognito=True)
    list(session.ask(QUESTION))
    assert session.forecast() == (None, None)


@pytest.mark.parametrize("kind", ["paraphrase", "summary"])
@pytest.mark.parametrize("later", [True, False], ids=["typed", "from the start"])
def test_incognito_keeps_no_document_in_other_words(open_session: Open, kind: str, later: bool) -> None:
    session = open_session([" Fritz Lang"] * 40, f"layout.as={kind}", "layout.repeat=1", incognito=not later)
    if later:
        session.go_incognito(True)
    list(session.ask(QUESTION))
    assert kind in [call.kind for call in session.turns[-1].calls]
    assert not (find_paths().cache / "rewordings.jsonl").exists()
    kept = open_session([" Fritz Lang"] * 40, f"layout.as={kind}", "layout.repeat=1")
    list(kept.ask(QUESTION))
    assert (find_paths().cache / "rewordings.jsonl").is_file()
