"""A sound backup is there before the first damage, whoever wrote, and whatever is damaged."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from mindchat.config import MemorySection
from mindchat.memory import verbs
from mindchat.memory.facts import FactMemory
from mindchat.storage import backups as module
from mindchat.storage.backups import LATEST, backups, complaint, keep_backup, newest_sound
from mindchat.storage.chats import ChatStore
from mindchat.storage.migrations import CHATS, MEMORY, Schema, open_store
from mindchat.storage.sqlite_file import stamp_of


def a_fact(path: Path) -> None:
    memory = FactMemory(path, MemorySection(), project="p", session="s")
    verbs.add(memory, "Metropolis | director | Fritz Lang")
    memory.close()


def a_chat(path: Path) -> None:
    chats = ChatStore(path)
    chats.finish_turn(chats.begin_turn(chats.create("p", "t"), "Who directed Metropolis?"), "Fritz Lang.")
    chats.close()


FILES: dict[str, tuple[Schema, Callable[[Path], None], str]] = {
    "memory.db": (MEMORY, a_fact, "fact"),
    "chats.db": (CHATS, a_chat, "turn"),
}
DAMAGE: dict[str, Callable[[bytearray], object]] = {
    "head": lambda body: body.__setitem__(slice(0, 200), b"\xff" * 200),
    "schema page": lambda body: body.__setitem__(slice(100, 4000), b"\xff" * 3900),
    "cut": lambda body: body.__delitem__(slice(len(body) // 2, None)),
    "a page in the middle": lambda body: body.__setitem__(slice(8192, 20480), b"\xa5" * 12288),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", FILES)
def test_the_first_damage_finds_a_sound_backup(tmp_path: Path, name: str, damage: str) -> None:
    schema, write, table = FILES[name]
    write(tmp_path / name)
    body = bytearray((tmp_path / name).read_bytes())
    DAMAGE[damage](body)
    (tmp_path / name).write_bytes(body)
    stamp_of(tmp_path / name).unlink()  # as on the next day
    assert complaint(tmp_path / name)
    store = open_store(tmp_path / name, schema)
    assert store.value(f"SELECT count(*) FROM {table}") == 1
    assert "was damaged" in store.notices[0]
    store.close()
    assert complaint(tmp_path / name) == ""


@pytest.mark.parametrize("name", FILES)
def test_damage_that_is_met_while_working_is_named_and_checked_at_the_next_start(tmp_path: Path, name: str) -> None:
    schema, write, table = FILES[name]
    write(tmp_path / name)
    with closing(sqlite3.connect(tmp_path / name)) as connection:
        page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name=?", (table,)).fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    body = bytearray((tmp_path / name).read_bytes())
    body[(page - 1) * size : page * size] = b"\xa5" * size
    (tmp_path / name).write_bytes(body)
    store = open_store(tmp_path / name, schema)  # checked today already: opens
    with pytest.raises(Exception, match="damaged") as told:
        store.rows(f"SELECT * FROM {table}")
    assert "restores a backup" in told.value.hint  # type: ignore[attr-defined]
    store.close()
    again = open_store(tmp_path / name, schema)
    assert again.value(f"SELECT count(*) FROM {table}") == 1
    again.close()


def test_one_backup_by_the_clock_is_kept_and_not_made_before_it_is_due(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    a_chat(path)
    (first,) = backups(path)
    assert LATEST in first.name
    a_chat(path)
    assert backups(path) == [first]
    os.utime(first, (time.time() - module.SOON - 1,) * 2)
    a_chat(path)
    (second,) = backups(path)
    assert second != first
    with closing(sqlite3.connect(second)) as copy:
        assert copy.execute("SELECT count(*) FROM turn").fetchone()[0] == 3


def test_reading_makes_no_backup(tmp_path: Path) -> None:
    a_chat(tmp_path / "chats.db")
    for copy in backups(tmp_path / "chats.db"):
        copy.unlink()
    chats = ChatStore(tmp_path / "chats.db")
    chats.list()
    chats.close()
    assert backups(tmp_path / "chats.db") == []


@pytest.mark.parametrize("why", ["full", "unwritable"])
def test_a_backup_that_cannot_be_made_is_told_and_breaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    store = open_store(tmp_path / "chats.db", CHATS)
    if why == "full":
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    else:
        (tmp_path / "backups").write_text("a file has its name")
    keep_backup(store)
    assert "No backup of chats.db" in store.notices[-1]
    store.close()
    assert list(tmp_path.glob("backups/*")) == []


def test_a_damaged_backup_is_passed_over(tmp_path: Path) -> None:
    a_chat(tmp_path / "chats.db")
    (good,) = backups(tmp_path / "chats.db")
    bad = good.with_name("chats-v9-99991231T000000000000.db")
    bad.write_bytes(b"\xff" * 9000)
    assert backups(tmp_path / "chats.db")[0] == bad
    assert newest_sound(tmp_path / "chats.db") == good
