"""Erased for good: told when another program's read keeps the bytes, finished later, also after a kill."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from mindchat.config import MemorySection
from mindchat.memory import verbs
from mindchat.memory.facts import FactMemory
from mindchat.storage import erasing, sqlite_file
from mindchat.storage.backups import backup, backups
from mindchat.storage.chats import ChatStore
from mindchat.storage.migrations import CHATS, MEMORY, open_store
from mindchat.storage.sqlite_file import Store, sqlite3

NEEDLE = "Xanadu"


def holding(folder: Path) -> list[str]:
    """Files in which the erased word stands."""
    return [
        file.name
        for file in folder.rglob("*")
        if file.is_file() and NEEDLE.lower().encode() in file.read_bytes().lower()
    ]


def chat_with_a_secret(path: Path) -> tuple[ChatStore, str]:
    chats = ChatStore(path)
    session = chats.create("p", "t")
    chats.finish_turn(chats.begin_turn(session, f"Who lived in {NEEDLE}?"), "Kubla Khan.")
    return chats, session


def other_reader(path: Path) -> sqlite3.Connection:
    """Another program that has begun to read and goes on reading."""
    other = sqlite3.connect(path)
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return other


ERASERS: dict[str, Callable[[ChatStore, str], object]] = {
    "delete": lambda chats, session: chats.delete(session),
    "purge": lambda chats, session: chats.purge("0d"),
    "erase all": lambda chats, session: chats.erase_all(),
}


@pytest.mark.parametrize("how", ERASERS)
def test_a_chat_that_another_program_reads_is_erased_when_it_has_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(sqlite_file, "LOCK_SECONDS", 0.05)
    path = tmp_path / "chats.db"
    chats, session = chat_with_a_secret(path)
    backup(chats.store, "old")
    other = other_reader(path)
    ERASERS[how](chats, session)
    assert "still in that file" in chats.store.notices[-1]
    assert holding(tmp_path)
    chats.close()
    again = open_store(path, CHATS)
    assert "still in that file" in again.notices[-1]
    again.close()
    other.close()
    finished = open_store(path, CHATS)
    assert finished.notices == []
    finished.close()
    assert holding(tmp_path) == []
    assert not erasing.left_over(path)


@pytest.mark.parametrize("how", ERASERS)
def test_a_chat_that_nobody_reads_is_erased_at_once(tmp_path: Path, how: str) -> None:
    chats, session = chat_with_a_secret(tmp_path / "chats.db")
    backup(chats.store, "old")
    ERASERS[how](chats, session)
    assert (chats.store.notices, holding(tmp_path)) == ([], [])
    chats.close()
    assert holding(tmp_path) == []


@pytest.mark.parametrize("everything", [True, False])
def test_forget_hard_says_whose_read_keeps_the_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, everything: bool
) -> None:
    monkeypatch.setattr(sqlite_file, "LOCK_SECONDS", 0.05)
    path = tmp_path / "memory.db"
    memory = FactMemory(path, MemorySection(), project="p", session="s")
    verbs.add(memory, f"{NEEDLE} | director | Kubla Khan")
    (fact,) = verbs.list_facts(memory).facts
    other = other_reader(path)
    done = (
        verbs.forget(memory, everything=True, hard=True, yes=True)
        if everything
        else verbs.forget(memory, [fact.id], hard=True, yes=True)
    )
    assert done.left
    assert "erased 1" not in done.render()
    assert "still in that file" in done.render()
    assert holding(tmp_path)
    memory.close()
    other.close()
    open_store(path, MEMORY).close()
    assert holding(tmp_path) == []


def test_a_kill_between_deleting_and_compacting_is_made_good_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "chats.db"
    chats, session = chat_with_a_secret(path)

    class Killed(BaseException):
        pass

    def killed(self: Store, *tables: str) -> bool:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Store, "compact", killed)
        with pytest.raises(Killed):
            chats.delete(session)
    del chats
    open_store(path, CHATS).close()
    assert holding(tmp_path) == []
    assert not erasing.left_over(path)


def test_what_was_set_aside_as_damaged_is_named_when_something_is_erased(tmp_path: Path) -> None:
    memory = FactMemory(tmp_path / "memory.db", MemorySection(), project="p", session="s")
    verbs.add(memory, f"{NEEDLE} | director | Kubla Khan")
    (fact,) = verbs.list_facts(memory).facts
    (tmp_path / "memory.db.damaged-20260101T000000").write_text(NEEDLE)
    assert "memory.db.damaged-20260101T000000" in verbs.forget(memory, [fact.id], hard=True, yes=True).render()
    memory.close()


def test_a_finished_erase_leaves_a_clean_backup_at_most(tmp_path: Path) -> None:
    chats, session = chat_with_a_secret(tmp_path / "chats.db")
    chats.delete(session)
    chats.close()
    for copy in backups(tmp_path / "chats.db"):
        with closing(sqlite3.connect(copy)) as connection:
            assert connection.execute("SELECT count(*) FROM turn").fetchone()[0] == 0
