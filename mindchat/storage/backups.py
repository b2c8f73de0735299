"""Backups of memory.db and chats.db: made while the file is sound, so that there is one before the first damage.

Owns: making, listing and checking backups, and when a new one is due. Does not own: restoring one (migrations), erasing
them (erasing). A backup is a compact copy (VACUUM INTO) under backups/: one before each migration, and one of what was
written lately.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from mindchat.errors import MemoryStoreError
from mindchat.paths import private
from mindchat.storage.atomic import PRIVATE, replacing
from mindchat.storage.sqlite_file import Store, sqlite3

log = logging.getLogger(__name__)
LATEST = "latest"
"""Label of the backups that are made by the clock; of these only the newest is kept."""
SMALL = 20_000_000
"""Bytes: up to this size a copy takes well under a second."""
SOON, LATER = 600.0, 24 * 3600.0
"""Seconds between two such backups of a small and of a large file."""
_KEPT = 3


def backups(path: Path) -> list[Path]:
    """Backups of this file, newest first."""
    return sorted(
        (path.parent / "backups").glob(f"{path.stem}-*.db"),
        key=lambda file: (file.stat().st_mtime_ns, file.name),
        reverse=True,
    )


def backup(store: Store, label: str) -> Path:
    """A compact copy under backups/, of which three are kept. Must not run inside a transaction. Raises sqlite3.Error,
    OSError.
    """
    assert store.path is not None
    folder = private(store.path.parent / "backups")
    target = folder / f"{store.path.stem}-{label}-{datetime.now(UTC):%Y%m%dT%H%M%S%f}.db"
    with replacing(target) as part:  # a kill in the middle leaves nothing that looks like a backup
        store.connection.execute("VACUUM INTO ?", (str(part),))
        os.chmod(part, PRIVATE)
    kept = [
        file for file in backups(store.path) if file == target or not (label == LATEST and _is_latest(file, store.path))
    ]
    for old in {*backups(store.path)} - {*kept[:_KEPT]}:
        old.unlink(missing_ok=True)  # another process may have been faster
    return target


def _is_latest(file: Path, path: Path) -> bool:
    return file.name.startswith(f"{path.stem}-{LATEST}-")


def keep_backup(store: Store) -> None:
    """A backup of a sound file, if one is due. That none could be made is told by a notice and the log: the work itself
    is done.
    """
    if store.path is None or store.readonly or not _due(store.path):
        return
    try:
        with store.locked():
            if not _due(store.path):  # another process was faster
                return
            size = store.bytes()
            if shutil.disk_usage(store.path.parent).free < 2 * size:
                raise OSError(f"{size / 1e6:,.0f} MB are needed twice, and there is less room")
            backup(store, LATEST)
    except (OSError, sqlite3.Error, MemoryStoreError) as error:
        log.warning("no backup of %s: %s", store.label, error)
        store.notices.append(f"No backup of {store.label} could be made: {error}.")


def _due(path: Path) -> bool:
    size = path.stat().st_size
    newest = next(iter(backups(path)), None)
    return newest is None or time.time() - newest.stat().st_mtime > (SOON if size <= SMALL else LATER)


def complaint(path: Path) -> str:
    """What is wrong with a database file, in SQLite's words; "" if it is sound. It is not changed."""
    try:
        with closing(sqlite3.connect(str(path))) as connection:
            connection.execute("PRAGMA query_only=ON")
            answer = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if answer == "ok" else answer


def newest_sound(path: Path) -> Path | None:
    """The newest backup of this file that is sound; None if there is none."""
    with suppress(OSError):
        return next((file for file in backups(path) if not complaint(file)), None)
    return None
