"""From one schema to the next, and what happens to files that are newer, foreign or damaged."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec
import pytest

from mindchat.errors import MemoryStoreError
from mindchat.storage.backups import backup, backups
from mindchat.storage.migrations import CHATS, MEMORY, Schema, objects, open_store, statements

from ..memory.conftest import run_together


@pytest.fixture
def two(tmp_path: Path) -> Schema:
    """memory.db as a later release will have it: one migration more."""
    second = tmp_path / "memory_002_more.sql"
    second.write_text(
        "CREATE TABLE extra(x TEXT);\nCREATE TRIGGER extra_ai AFTER INSERT ON extra BEGIN\n  DELETE FROM extra WHERE"
        " x='';\nEND;\n"
    )
    return msgspec.structs.replace(MEMORY, files=(*MEMORY.files, second))


def fill(path: Path, rows: int = 3) -> None:
    store = open_store(path, MEMORY)
    with store.write() as connection:
        connection.executemany("INSERT INTO meta VALUES(?, 'v')", [(str(i),) for i in range(rows)])
    store.close()


@pytest.mark.parametrize("schema", [MEMORY, CHATS])
def test_schema_files_split_into_statements_and_apply(schema: Schema) -> None:
    text = "".join(file.read_text() for file in schema.files)
    split = statements(text)
    assert sum("CREATE TRIGGER" in statement for statement in split) == text.count("CREATE TRIGGER")
    assert objects(schema) >= {"session", "turn"}


def test_unfinished_sql_is_refused() -> None:
    with pytest.raises(ValueError, match="unfinished SQL"):
        statements("CREATE TABLE a(x);\nCREATE TABLE b(")


def test_a_migration_keeps_rows_and_leaves_a_backup(tmp_path: Path, two: Schema) -> None:
    path = tmp_path / "data" / "memory.db"
    fill(path)
    store = open_store(path, two)
    assert store.value("SELECT count(*) FROM meta") == 3
    assert store.value("PRAGMA user_version") == len(two.files)
    assert set(objects(two)) <= {row[0] for row in store.rows("SELECT name FROM sqlite_master")}
    (copy,) = [file for file in backups(path) if f"-v{len(MEMORY.files)}-" in file.name]
    old = sqlite3.connect(copy)
    assert old.execute("SELECT count(*) FROM meta").fetchone()[0] == 3
    assert old.execute("PRAGMA user_version").fetchone()[0] == len(MEMORY.files)
    old.close()
    store.close()


def test_three_backups_are_kept(tmp_path: Path) -> None:
    store = open_store(tmp_path / "memory.db", MEMORY)
    made = [backup(store, f"t{i}") for i in range(5)]
    assert backups(tmp_path / "memory.db") == made[:1:-1]
    store.close()


def test_a_newer_file_is_read_only_and_says_so(tmp_path: Path, two: Schema) -> None:
    path = tmp_path / "data" / "memory.db"
    open_store(path, two).close()
    store = open_store(path, MEMORY)
    assert "newer MindChat" in store.notices[0]
    assert store.value("SELECT count(*) FROM extra") == 0
    with pytest.raises(MemoryStoreError, match="newer MindChat"), store.write():
        pass
    store.close()


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs(x)")
    other.commit()
    other.close()
    before = path.read_bytes()
    with pytest.raises(MemoryStoreError, match="not MindChat's"):
        open_store(path, MEMORY)
    assert path.read_bytes() == before


def test_a_failed_migration_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "data" / "memory.db"
    fill(path)
    bad = tmp_path / "memory_002_bad.sql"
    bad.write_text("CREATE TABLE good(x);\nCREATE TABLE meta(x);\n")
    with pytest.raises(MemoryStoreError):
        open_store(path, msgspec.structs.replace(MEMORY, files=(*MEMORY.files, bad)))
    store = open_store(path, MEMORY)
    assert store.value("SELECT count(*) FROM meta") == 3
    assert store.value("SELECT count(*) FROM sqlite_master WHERE name='good'") == 0
    store.close()


def _damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[:200] = b"\xff" * 200
    path.write_bytes(bytes(content))
    path.with_name("memory.db.checked").unlink(missing_ok=True)


def test_a_damaged_file_is_set_aside_and_the_newest_sound_backup_continues(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    fill(path)
    store = open_store(path, MEMORY)
    backup(store, "good")
    store.close()
    _damage(path)
    restored = open_store(path, MEMORY)
    assert restored.value("SELECT count(*) FROM meta") == 3
    assert "was damaged" in restored.notices[0]
    assert list(tmp_path.glob("memory.db.damaged-*"))
    restored.close()


def test_a_damaged_file_without_backup_is_never_replaced_by_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    fill(path)
    for copy in backups(path):
        copy.unlink()
    _damage(path)
    before = path.read_bytes()
    with pytest.raises(MemoryStoreError, match="damaged"):
        open_store(path, MEMORY)
    assert path.read_bytes() == before


OPEN = """
import sys
from pathlib import Path
from mindchat.storage.migrations import MEMORY, open_store
open_store(Path(sys.argv[1]), MEMORY).close()
"""


def test_processes_that_start_together_migrate_once(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    assert run_together(OPEN, str(path)) == [0, 0, 0]
    store = open_store(path, MEMORY)
    assert store.value("SELECT count(*) FROM _sqlite_migrations") == len(MEMORY.files)
    store.close()
