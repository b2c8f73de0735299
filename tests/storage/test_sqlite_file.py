"""Connections, transactions, locks and the files' modes."""

from __future__ import annotations

import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from mindchat.errors import MemoryStoreError
from mindchat.storage.migrations import MEMORY, open_store
from mindchat.storage.sqlite_file import Store, network_filesystem, wal_reset_bug

from ..memory.conftest import run_together


@pytest.mark.parametrize(
    ("version", "affected"),
    [
        ((3, 6, 23), False),
        ((3, 7, 0), True),
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 0), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 53, 4), False),
    ],
)
def test_versions_with_the_wal_reset_bug(version: tuple[int, ...], affected: bool) -> None:
    assert wal_reset_bug(version) is affected


def test_network_file_systems_are_recognised_by_the_longest_mount(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text("/dev/sda / ext4 rw 0 0\nserver:/x /home nfs4 rw 0 0\n/dev/sdb /home/me/local ext4 rw 0 0\n")
    assert network_filesystem(Path("/home/me"), str(mounts))
    assert not network_filesystem(Path("/home/me/local/mindchat"), str(mounts))
    assert not network_filesystem(Path("/homework"), str(mounts))


def test_file_and_folder_are_private_and_wal_is_on(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data" / "memory.db", MEMORY)
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "data" / "memory.db").stat().st_mode) == 0o600
    assert store.value("PRAGMA journal_mode") == "wal"
    assert store.value("PRAGMA application_id") == 0x4D494E44
    assert store.value("PRAGMA secure_delete") == 1
    store.close()


def test_a_failed_transaction_leaves_nothing_and_the_error_passes(tmp_path: Path) -> None:
    store = open_store(tmp_path / "memory.db", MEMORY)

    def fail() -> None:
        with store.write() as connection:
            connection.execute("INSERT INTO meta VALUES('a', 'b')")
            raise KeyError("x")

    with pytest.raises(KeyError):
        fail()
    assert store.rows("SELECT * FROM meta") == []
    with store.write() as connection, store.write() as inner:
        assert inner is connection
        inner.execute("INSERT INTO meta VALUES('a', 'b')")
    assert store.value("SELECT count(*) FROM meta") == 1
    store.close()


def test_every_thread_has_its_own_connection(tmp_path: Path) -> None:
    store = open_store(tmp_path / "memory.db", MEMORY)
    seen: list[object] = []
    threads = [threading.Thread(target=lambda: seen.append(store.connection)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(connection) for connection in [*seen, store.connection]}) == 4
    store.close()
    with pytest.raises(sqlite3.ProgrammingError):
        seen[0].execute("SELECT 1")  # type: ignore[attr-defined]


def test_a_held_lock_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mindchat.storage.sqlite_file.LOCK_SECONDS", 0.2)
    first = open_store(tmp_path / "memory.db", MEMORY, guarded=True)
    second = open_store(tmp_path / "memory.db", MEMORY, guarded=True)
    with first.write(), pytest.raises(MemoryStoreError, match="locked by another MindChat"), second.write():
        raise AssertionError("two writers at once")
    first.close()
    second.close()


ADD_ONE = """
import sys
from pathlib import Path
from mindchat.storage.migrations import MEMORY, open_store
store = open_store(Path(sys.argv[1]), MEMORY, guarded=sys.argv[3] == "True")
for _ in range(int(sys.argv[2])):
    with store.write() as connection:
        value = int(connection.execute("SELECT value FROM meta WHERE key='n'").fetchone()[0])
        connection.execute("UPDATE meta SET value=? WHERE key='n'", (str(value + 1),))
store.close()
"""


def _three_writers(path: Path, times: int, guarded: bool) -> int:
    store = open_store(path, MEMORY)
    with store.write() as connection:
        connection.execute("INSERT INTO meta VALUES('n', '0')")
    assert run_together(ADD_ONE, str(path), str(times), str(guarded)) == [0, 0, 0]
    total = int(store.value("SELECT value FROM meta WHERE key='n'"))
    assert store.value("PRAGMA integrity_check") == "ok"
    store.close()
    return total


def test_three_processes_lose_no_read_modify_write(tmp_path: Path) -> None:
    assert _three_writers(tmp_path / "memory.db", 15, True) == 45


@pytest.mark.soak
@pytest.mark.parametrize("guarded", [True, False])
def test_three_processes_lose_none_of_450(tmp_path: Path, guarded: bool) -> None:
    assert _three_writers(tmp_path / "memory.db", 150, guarded) == 450


def test_a_store_in_ram_serves_several_threads() -> None:
    store = open_store(None, MEMORY)

    def work(n: int) -> None:
        for i in range(50):
            with store.write() as connection:
                connection.execute("INSERT INTO meta VALUES(?, '')", (f"{n}-{i}",))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.value("SELECT count(*) FROM meta") == 200
    store.close()


def test_compact_leaves_no_byte_of_a_deleted_row(tmp_path: Path) -> None:
    store = Store(tmp_path / "x.db")
    with store.write() as connection:
        connection.execute("CREATE TABLE t(x)")
        connection.execute("INSERT INTO t VALUES('needle-in-the-file')")
    with store.write() as connection:
        connection.execute("DELETE FROM t")
    store.compact()
    found = [path for path in tmp_path.iterdir() if b"needle-in-the-file" in path.read_bytes()]
    assert found == []
    store.close()
