"""Erasing for good: the deleted rows' bytes leave the file, its WAL and its backups, also if that cannot be finished at
once.

Owns: erase(), finish(), and the mark that says that something is left to do. Does not own: which rows go (forgetting,
chats).
Source: SQLite, "PRAGMA wal_checkpoint": while another connection reads an older state, the checkpoint reports busy and
the old pages stay.
"""

from __future__ import annotations

from pathlib import Path

from mindchat.storage.atomic import write_atomic
from mindchat.storage.backups import backups
from mindchat.storage.sqlite_file import Store


def erase(store: Store, *tables: str) -> bool:
    """Leave no deleted byte behind; `tables`: full-text tables to merge. Not inside a transaction. Raises
    MemoryStoreError.

    False: another process reads the file just now, so that bytes are still there; finish() removes them when the file
    is next opened. The caller tells it (left_words).
    """
    if store.path is None:
        return store.compact(*tables)
    mark = _mark(store.path)
    write_atomic(mark, "\n".join(tables))  # before the work: a kill in the middle leaves it to the next start
    return _work(store, mark, tables)


def finish(store: Store) -> None:
    """Finish what an earlier erase() could not, without waiting for anyone."""
    if store.path is None or store.readonly or not (mark := _mark(store.path)).exists():
        return
    tables = tuple(name for name in mark.read_text(encoding="utf-8").split() if name.isidentifier())
    with store.impatient():
        if not _work(store, mark, tables):
            store.notices.append(left_words(store.label))


def left_words(name: str) -> str:
    """What the user should know of an erase() that could not finish."""
    return (
        f"Another program reads {name} just now, so what was erased is still in that file; MindChat finishes when it"
        " next opens it alone."
    )


def left_over(path: Path | None) -> list[str]:
    """Files that may still hold what was erased from a database, one sentence each; [] if there are none."""
    if path is None:
        return []
    aside = [
        f"{file.name} was set aside as damaged and is not touched; delete it if it may hold what you erased."
        for file in set_aside(path)
    ]
    return [left_words(path.name)] * _mark(path).exists() + aside


def set_aside(path: Path) -> list[Path]:
    """What migrations kept of damaged files: databases and their WALs."""
    return sorted(path.parent.glob(f"{path.name}.damaged-*"))


def _mark(path: Path) -> Path:
    return path.with_name(f"{path.name}.unerased")


def _work(store: Store, mark: Path, tables: tuple[str, ...]) -> bool:
    assert store.path is not None
    for copy in backups(store.path):  # they hold the old text
        copy.unlink(missing_ok=True)
    done = store.compact(*tables)
    if done:
        mark.unlink(missing_ok=True)
    return done
