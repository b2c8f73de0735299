"""Sessions and turns: committed before the first token, found again, copied, erased."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mindchat.errors import NotFoundError, UsageError
from mindchat.storage.chats import ChatStore


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[ChatStore]:
    store = ChatStore(tmp_path / "chats.db")
    yield store
    assert store.store.value("PRAGMA integrity_check") == "ok"
    store.close()


def ask(chats: ChatStore, session: str, question: str, answer: str) -> int:
    turn = chats.begin_turn(session, question)
    chats.finish_turn(turn, answer, json.dumps({"answer": answer}), b'{"type":"AnswerReady"}\n')
    return turn


def test_a_question_is_on_disk_before_its_answer(chats: ChatStore, tmp_path: Path) -> None:
    session = chats.create("p")
    turn = chats.begin_turn(session, "Who is Żuławski?\nReally?")
    chats.save_partial(turn, "He is")
    other = ChatStore(tmp_path / "chats.db")
    (seen,) = other.show(session).turns
    assert (seen.question, seen.answer, seen.status, seen.report) == (
        "Who is Żuławski?\nReally?",
        "He is",
        "running",
        None,
    )
    assert other.history(session) == ()
    other.close()
    chats.finish_turn(turn, "He is a director.", '{"a": 1}', b"x\n")
    chats.save_partial(turn, "too late")
    assert chats.history(session) == (("Who is Żuławski?\nReally?", "He is a director."),)
    assert chats.events(turn) == b"x\n"
    assert chats.show(session).turns[0].report == {"a": 1}
    assert chats.show(session).chat.title == "Who is Żuławski? Really?"


def test_history_is_the_last_n_in_order(chats: ChatStore) -> None:
    session = chats.create()
    for i in range(5):
        ask(chats, session, f"q{i}", f"a{i}")
    turn = chats.begin_turn(session, "failed")
    chats.finish_turn(turn, "", status="failed")
    assert chats.history(session, 2) == (("q3", "a3"), ("q4", "a4"))
    assert len(chats.history(session)) == 5


def test_the_past_holds_every_turn_and_a_search_finds_what_was_written_of_it(chats: ChatStore) -> None:
    session = chats.create()
    ask(chats, session, "q", "a")
    stopped = chats.begin_turn(session, "stopped?")
    chats.finish_turn(stopped, "half", status="cancelled")
    cut = chats.begin_turn(session, "cut off?")
    chats.save_partial(cut, "The Karwendel and")
    assert chats.past(session) == (
        ("q", "a", "done"),
        ("stopped?", "half", "cancelled"),
        ("cut off?", "The Karwendel and", "running"),
    )
    (hit,) = chats.search("karwendel")
    assert (hit.question, hit.answer) == ("cut off?", "The Karwendel and")
    chats.save_partial(stopped, "late news of a turn that ended")
    assert chats.past(session)[1] == ("stopped?", "half", "cancelled")


def test_list_latest_search_rename(chats: ChatStore) -> None:
    one, two = chats.create("a"), chats.create("b")
    ask(chats, one, "Where is Gdańsk?", "In Poland.")
    ask(chats, two, "Where is Rome?", "In Italy.")
    ask(chats, one, "And Łódź?", "Also in Poland.")
    assert [chat.id for chat in chats.list()] == [one, two]
    assert [chat.turns for chat in chats.list(project="a")] == [2]
    assert (chats.latest(), chats.latest("b"), chats.latest("c")) == (one, two, None)
    (hit,) = chats.search("lodz")
    assert (hit.chat, hit.turn, hit.answer) == (one, 2, "Also in Poland.")
    assert chats.rename(two, "  Italy\x1b[2J\n trip ") == "Italy trip"
    assert chats.show(two[:4]).chat.title == "Italy trip"
    with pytest.raises(UsageError):
        chats.search("the")
    with pytest.raises(UsageError):
        chats.rename(two, " ")
    with pytest.raises(NotFoundError):
        chats.show("zzzz")
    with pytest.raises(UsageError):
        chats.show("s")


def test_fork_copies_up_to_a_turn(chats: ChatStore) -> None:
    session = chats.create()
    for i in range(3):
        ask(chats, session, f"q{i}", f"a{i}")
    fork = chats.fork(session, 2)
    ask(chats, fork, "new", "branch")
    assert [q for q, _ in chats.history(fork)] == ["q0", "q1", "new"]
    assert [q for q, _ in chats.history(session)] == ["q0", "q1", "q2"]
    assert chats.show(fork).chat.forked_from == session
    assert chats.search("branch")[0].chat == fork


def test_export(chats: ChatStore) -> None:
    session = chats.create()
    ask(chats, session, "Where is Rome?", "In *Italy*.")
    assert "## 1. Where is Rome?\n\nIn *Italy*." in chats.export(session)
    data = json.loads(chats.export(session, "json"))
    assert data["turns"][0]["report"] == {"answer": "In *Italy*."}


def test_deleted_sessions_leave_no_byte(chats: ChatStore, tmp_path: Path) -> None:
    keep, gone = chats.create(), chats.create()
    ask(chats, keep, "Where is Rome?", "In Italy.")
    ask(chats, gone, "Where is Xanadu?", "Nobody knows Xanadu.")
    chats.delete(gone)
    for path in tmp_path.glob("chats.db*"):
        assert b"anadu" not in path.read_bytes()
    assert [chat.id for chat in chats.list()] == [keep]
    assert chats.search("Xanadu") == ()


def test_purge_by_age(chats: ChatStore) -> None:
    old, new = chats.create(), chats.create()
    with chats.store.write() as connection:
        connection.execute("UPDATE session SET updated_at='2001-01-01T00:00:00.000Z' WHERE uid=?", (old,))
    assert chats.purge("30d") == 1
    assert [chat.id for chat in chats.list()] == [new]
    assert chats.purge("30d") == 0
    with pytest.raises(UsageError):
        chats.purge("soon")


def test_a_turn_of_a_deleted_session_cannot_be_finished(chats: ChatStore) -> None:
    session = chats.create()
    turn = chats.begin_turn(session, "q")
    chats.delete(session)
    with pytest.raises(NotFoundError):
        chats.finish_turn(turn, "a")
