"""One SQLite file: connections, the only way to write, and the guard against the WAL-reset bug.

Owns: the import of the SQLite driver, PRAGMAs, one connection a thread, write transactions, locking, compaction.
Does not own: the schema and its versions (migrations.py), or what stands in the tables.
Source: SQLite "Write-Ahead Logging" (the WAL-reset bug is in 3.7.0 to 3.51.2; fixed in 3.51.3, 3.50.7 and 3.44.6);
measurements in MEASUREMENTS.md.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from mindchat.errors import MemoryStoreError
from mindchat.paths import private

if TYPE_CHECKING:
    import sqlite3 as sqlite3
else:
    try:  # a newer SQLite than the interpreter's; sqlite-utils makes the same choice, so exception classes agree
        import pysqlite3.dbapi2 as sqlite3
    except ImportError:
        import sqlite3

LOCK_SECONDS = 10.0
"""How long a writer waits for another one."""
_WAL_CHECKPOINT_BYTES = 4 * 1024 * 1024
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs"}


def wal_reset_bug(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> bool:
    """Whether this SQLite may lose acknowledged writes when one process checkpoints while another writes."""
    if version < (3, 7, 0) or version >= (3, 51, 3):
        return False
    return not ((3, 44, 6) <= version < (3, 45, 0) or (3, 50, 7) <= version < (3, 51, 0))


def network_filesystem(folder: Path, mounts: str = "/proc/self/mounts") -> bool:
    """Whether the folder is on a network file system, where WAL's shared memory does not work. False if unknown."""
    try:
        lines = Path(mounts).read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    best, kind = "", ""
    for line in lines:
        point, name = line.split()[1:3]
        inside = str(folder) == point or str(folder).startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, name
    return kind in _NETWORK


def _connect(path: Path | None, readonly: bool, guarded: bool) -> sqlite3.Connection:
    # No autocommit=…: sqlite-utils refuses such connections. check_same_thread off: close() is called by one thread for
    # all.
    connection = sqlite3.connect(str(path) if path else ":memory:", timeout=LOCK_SECONDS, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    connection.isolation_level = None
    settings = [
        "foreign_keys=ON",
        "recursive_triggers=ON",
        f"busy_timeout={int(LOCK_SECONDS * 1000)}",
        "synchronous=FULL",
        "secure_delete=ON",
    ]
    settings += ["temp_store=MEMORY", "journal_size_limit=16777216"]
    if guarded:
        settings.append("wal_autocheckpoint=0")
    if readonly:
        settings.append("query_only=ON")
    try:
        for setting in settings:
            connection.execute(f"PRAGMA {setting}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


class Store:
    """A database file (or, with path None, one in RAM that lives as long as the object). Safe to use from several
    threads.
    """

    def __init__(self, path: Path | None, *, guarded: bool | None = None) -> None:
        self.path = path
        self.readonly = False
        self.notices: list[str] = []
        """What the user should be told about this file, one sentence each."""
        self._local = threading.local()
        self._open: dict[int, tuple[threading.Thread, sqlite3.Connection]] = {}
        self._told = 0
        """How many of them take_notices() has given."""
        self.wrote = False
        """Whether something was written through this object."""
        self.before_close: Callable[[], None] | None = None
        """Called by close() while the file is still open, if something was written."""
        self._mutex = threading.RLock()
        self._lock: FileLock | None = None
        self.guarded = path is not None and (wal_reset_bug() if guarded is None else guarded)
        self._memory = None if path else _connect(None, False, False)
        if path is not None:
            private(path.parent)
            self._lock = FileLock(f"{path}.lock", timeout=LOCK_SECONDS, mode=0o600)

    def take_notices(self) -> list[str]:
        """The notices since the last call; the list itself stays."""
        told, self._told = self._told, len(self.notices)
        return self.notices[told:]

    @property
    def label(self) -> str:
        """The file's name, for messages."""
        return self.path.name if self.path else "memory in RAM"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """The file lock that migrations, VACUUM and restore hold; re-entrant within a thread. Raises MemoryStoreError
        after 10 s.
        """
        if self._lock is None:
            with self._mutex:
                yield
            return
        try:
            self._lock.acquire(poll_interval=0.002)
        except Timeout as error:
            raise MemoryStoreError(
                f"{self.label} is locked by another MindChat.", "Try again when it has finished."
            ) from error
        try:
            yield
        finally:
            self._lock.release()

    @property
    def connection(self) -> sqlite3.Connection:
        """This thread's connection."""
        if self._memory is not None:
            return self._memory
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = self._new()
            self._local.connection = found
        return found

    def _new(self) -> sqlite3.Connection:
        assert self.path is not None
        fresh = not self.path.exists()
        try:
            if fresh:  # created by us with the right mode, before SQLite can create it with the umask's
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            connection = _connect(self.path, self.readonly, self.guarded)
        except (
            OSError,
            sqlite3.OperationalError,
        ) as error:  # damage is another DatabaseError and passes: open_store() restores
            raise MemoryStoreError(
                f"{self.path} cannot be opened: {error}.", "Check the folder's permissions and free space."
            ) from error
        with self._mutex:
            dead = [key for key, (thread, _) in self._open.items() if not thread.is_alive()]
            for key in dead:
                self._close(self._open.pop(key)[1])
            self._open[threading.get_ident()] = (threading.current_thread(), connection)
        return connection

    def _close(self, connection: sqlite3.Connection) -> None:
        with self.locked() if self.guarded else nullcontext(), suppress(sqlite3.Error):
            connection.close()  # the last close checkpoints, hence the lock

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """The only way to write: BEGIN IMMEDIATE … COMMIT, rolled back on any exception; nested use joins the outer
        transaction.

        A deferred BEGIN that becomes a writer fails at once with SQLITE_BUSY_SNAPSHOT instead of waiting.
        Raises MemoryStoreError if the file is read only, locked for 10 s, full or damaged.
        """
        if self.readonly:
            raise MemoryStoreError(
                f"{self.label} was written by a newer MindChat.",
                "It is open read only; update MindChat to write to it.",
            )
        guard = self.locked() if self.guarded else (self._mutex if self._memory is not None else nullcontext())
        with guard:
            with self._explained():
                connection = self.connection
            if connection.in_transaction:
                yield connection
                return
            with self._explained():
                connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException as error:
                connection.rollback()
                if isinstance(error, sqlite3.OperationalError | sqlite3.DatabaseError) and not isinstance(
                    error, sqlite3.IntegrityError
                ):
                    raise self._explain(error) from error
                raise
            with self._explained():
                connection.execute("COMMIT")
            self.wrote = True
            if self.guarded and self.path is not None and _size(Path(f"{self.path}-wal")) > _WAL_CHECKPOINT_BYTES:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._explain(error) from error

    def _explain(self, error: sqlite3.Error) -> MemoryStoreError:
        if _is_busy(error):
            return MemoryStoreError(f"{self.label} is locked by another MindChat.", "Try again when it has finished.")
        if self.path is not None and _is_damage(error):
            stamp_of(self.path).unlink(missing_ok=True)  # the next start checks the file, and restores a backup
            return MemoryStoreError(f"{self.label} is damaged: {error}.", "Start MindChat again: it restores a backup.")
        return MemoryStoreError(
            f"{self.label} cannot be written: {error}.", "mindchat doctor says what is wrong with it."
        )

    def rows(self, sql: str, parameters: Any = ()) -> list[sqlite3.Row]:
        """All rows of a read. Raises MemoryStoreError if the file is damaged or locked."""
        with self._explained():
            if self._memory is not None:
                with self._mutex:
                    return self._memory.execute(sql, parameters).fetchall()
            return self.connection.execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Any = ()) -> sqlite3.Row | None:
        """The first row of a read, or None."""
        found = self.rows(sql, parameters)
        return found[0] if found else None

    def value(self, sql: str, parameters: Any = ()) -> Any:
        """The first column of the first row, or None."""
        found = self.row(sql, parameters)
        return None if found is None else found[0]

    def bytes(self) -> int:
        """Size of the file and its WAL."""
        return 0 if self.path is None else _size(self.path) + _size(Path(f"{self.path}-wal"))

    def compact(self, *tables: str) -> bool:
        """Leave no deleted byte behind: FTS postings merged, WAL truncated, pages rebuilt. Cannot run inside a
        transaction.

        False: another connection reads or writes, so that old pages are still in the file or its WAL.
        """
        with self.locked(), self._explained():
            connection = self.connection
            try:
                for table in tables:
                    connection.execute(f"INSERT INTO {table}({table}) VALUES('optimize')")
                connection.execute("VACUUM")
            except sqlite3.OperationalError as error:
                if not _is_busy(error):
                    raise
                return False
            if self.path is None:
                return True
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not busy

    @contextmanager
    def impatient(self) -> Iterator[None]:
        """Inside, this thread's connection waits for nobody."""
        self.connection.execute("PRAGMA busy_timeout=0")
        try:
            yield
        finally:
            self.connection.execute(f"PRAGMA busy_timeout={int(LOCK_SECONDS * 1000)}")

    def close(self) -> None:
        """Close every thread's connection."""
        if self.wrote and self.before_close is not None:
            self.before_close()
        with self._mutex:
            for _, connection in self._open.values():
                self._close(connection)
            self._open.clear()
            self._local = threading.local()
            if self._memory is not None:
                self._memory.close()


def stamp_of(path: Path) -> Path:
    """The file whose age tells when a database was last found sound (migrations)."""
    return path.with_name(f"{path.name}.checked")


def _is_busy(error: sqlite3.Error) -> bool:
    return "locked" in str(error) or "busy" in str(error)


def _is_damage(error: sqlite3.Error) -> bool:
    return "malformed" in str(error) or "not a database" in str(error)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
