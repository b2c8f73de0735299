"""The schemas of memory.db and chats.db, and how a file gets from one version to the next.

Owns: opening a file at the right version (backup first), refusing to write a newer one, and what happens to a damaged
one.
Does not own: connections (sqlite_file), backups (backups). The SQL stands beside this file in schema/. Versions are
sqlite-utils Migrations; PRAGMA user_version repeats the number so that a current file opens without that import.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from mindchat.errors import MemoryStoreError
from mindchat.storage.backups import backup, keep_backup, newest_sound
from mindchat.storage.erasing import finish
from mindchat.storage.sqlite_file import Store, network_filesystem, sqlite3, stamp_of

_SCHEMA = Path(__file__).parent / "schema"
_CHECK_SECONDS = 24 * 3600.0


class Schema(Struct, frozen=True):
    """All versions of one database."""

    name: str
    application_id: int
    """In the file's header, so that no other program's database is taken for ours."""
    files: tuple[Path, ...]
    """One SQL file a version, oldest first."""


MEMORY = Schema("mindchat.memory", 0x4D494E44, (_SCHEMA / "memory_001_init.sql", _SCHEMA / "memory_002_passages.sql"))
CHATS = Schema("mindchat.chats", 0x4D494E43, (_SCHEMA / "chats_001_init.sql",))


def statements(sql: str) -> list[str]:
    """The script's statements. executescript() would commit and so break the migration's transaction."""
    found, held = [], ""
    for line in sql.splitlines(keepends=True):
        held += line
        if ";" in line and sqlite3.complete_statement(held):
            found.append(held.strip())
            held = ""
    if re.sub(r"--[^\n]*", "", held).strip():
        raise ValueError(f"unfinished SQL: {held.strip()[:80]}")
    return found


def objects(schema: Schema) -> frozenset[str]:
    """Names of every table, index, trigger and view that a current file has."""
    store = Store(None)
    _apply(store, schema)
    names = frozenset(_names(store))
    store.close()
    return names


def _names(store: Store) -> list[str]:
    return [
        row[0]
        for row in store.rows(
            "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' AND name NOT LIKE '_sqlite_%'"
        )
    ]


def _apply(store: Store, schema: Schema) -> None:
    from sqlite_utils import Database
    from sqlite_utils.migrations import Migrations

    migrations = Migrations(schema.name)
    for file in schema.files:

        def run(db: Any, text: str = file.read_text(encoding="utf-8")) -> None:
            for statement in statements(text):
                db.conn.execute(statement)

        migrations(name=file.stem)(run)
    with (
        store.write() as connection
    ):  # BEGIN IMMEDIATE before apply() looks at what is pending: two starts at once must not both run
        migrations.apply(Database(connection))
        connection.execute(f"PRAGMA application_id={schema.application_id}")
        connection.execute(f"PRAGMA user_version={len(schema.files)}")


def open_store(path: Path | None, schema: Schema, *, guarded: bool | None = None) -> Store:
    """The file at the current version; a newer one read only, with a notice; path None: a fresh database in RAM.

    Raises MemoryStoreError if the file is no database of ours, or is damaged and no backup is sound.
    """
    store = Store(path, guarded=guarded)
    if path is None:
        _apply(store, schema)
        return store
    try:
        version = _inspect(store, schema)
        if version == len(schema.files):
            _check_daily(store)
    except sqlite3.OperationalError as error:  # locked, or no room: nothing is wrong with the file
        raise MemoryStoreError(
            f"{path} cannot be read: {error}.", "Try again when no other MindChat is busy."
        ) from error
    except sqlite3.DatabaseError as error:
        return _restore(store, schema, str(error))
    if version > len(schema.files):
        store.close()
        store.readonly = True
        store.notices.append(f"{path.name} was written by a newer MindChat; it is open read only.")
    elif version < len(schema.files):
        _migrate(store, schema)
    finish(store)
    store.before_close = lambda: keep_backup(store)
    return store


def _inspect(store: Store, schema: Schema) -> int:
    """The file's version; raises if it is another program's."""
    connection = store.connection
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    owner = int(connection.execute("PRAGMA application_id").fetchone()[0])
    if owner not in (0, schema.application_id) or (
        owner == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    ):
        raise MemoryStoreError(
            f"{store.path} is not MindChat's database.", "Move it away, or set MINDCHAT_HOME to another folder."
        )
    return version


def _migrate(store: Store, schema: Schema) -> None:
    assert store.path is not None
    with store.locked():
        version = _inspect(store, schema)  # another process may have been faster
        if version >= len(schema.files):
            return
        mode = "TRUNCATE" if network_filesystem(store.path.parent.resolve()) else "WAL"
        store.connection.execute(f"PRAGMA journal_mode={mode}")
        if version:
            backup(store, f"v{version}")
        _apply(store, schema)
        stamp_of(store.path).touch(
            mode=0o600
        )  # just made or migrated: the first check, with its backup, comes tomorrow
        missing = objects(schema) - set(_names(store))
    if missing:  # table.transform() of a migration can drop FTS triggers
        raise MemoryStoreError(
            f"{store.label} lacks {', '.join(sorted(missing))} after its migration.",
            f"Restore {store.path.parent / 'backups'}.",
        )


def _check_daily(store: Store) -> None:
    """PRAGMA quick_check, at most once a day: it reads the whole file."""
    assert store.path is not None
    stamp = stamp_of(store.path)
    with suppress(OSError):
        if time.time() - stamp.stat().st_mtime < _CHECK_SECONDS:
            return
    if (found := store.connection.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
        raise sqlite3.DatabaseError(str(found))
    stamp.touch(mode=0o600)
    keep_backup(store)


def _restore(store: Store, schema: Schema, reason: str) -> Store:
    """Set the damaged file aside and continue from the newest sound backup; never continue with an empty file."""
    assert store.path is not None
    path = store.path
    store.close()
    good = newest_sound(path)
    if good is None:
        raise MemoryStoreError(
            f"{path} is damaged ({reason}) and there is no sound backup.",
            f"Move {path.name} and its -wal and -shm away together to start afresh; nothing was changed.",
        )
    with store.locked():
        aside = f"{path}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S}"
        for suffix in ("", "-wal", "-shm"):  # together: a WAL beside another file's database would corrupt that one too
            with suppress(FileNotFoundError):
                os.replace(f"{path}{suffix}", f"{aside}{suffix}")
        source, target = sqlite3.connect(str(good)), sqlite3.connect(str(path))
        try:
            source.backup(target)
        finally:
            source.close()
            target.close()
        os.chmod(path, 0o600)
    restored = open_store(path, schema, guarded=store.guarded)
    restored.notices.append(
        f"{path.name} was damaged; {good.name} was restored, the damaged file is {Path(aside).name}."
    )
    return restored
