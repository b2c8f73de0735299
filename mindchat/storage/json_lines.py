"""Files of JSON lines that grow while work is done: a kill -9 leaves whole lines and at most one torn one, which is
dropped.

Owns: appending (one fsync a line, one process a file), reading, cutting a torn last line. Does not own: what a line
says or what its file is called (evaluations, probes, calibrations).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec
from filelock import FileLock, Timeout

from mindchat.errors import IndexLockedError, ResourceError, UsageError
from mindchat.text.foreign_json import decode_json

T = TypeVar("T")


class Lines:
    """A file that takes one more line at a time; each is on disk before the next piece of work starts."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file = file
        self._path = path

    @property
    def empty(self) -> bool:
        """Whether nothing has been written yet."""
        return self._file.tell() == 0

    def append(self, value: Any) -> None:
        """One line, flushed and synced. Raises ResourceError if the disk refuses it."""
        try:
            self._file.write(msgspec.json.encode(value) + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise _unwritable(self._path, error) from error


@contextlib.contextmanager
def appending(path: Path, busy: str) -> Iterator[Lines]:
    """The file, without a torn last line, opened for appending by this process alone.

    Raises IndexLockedError if another process has it (`busy` says what to do then), ResourceError if it cannot be
    written.
    """
    try:
        held = FileLock(path.with_name(f".{path.stem}.lock")).acquire(timeout=0)
    except Timeout as error:
        raise IndexLockedError(f"Another process is filling {path}.", busy) from error
    with held:
        try:
            drop_torn_line(path)
            file = path.open("ab")
        except OSError as error:
            raise _unwritable(path, error) from error
        with file:
            yield Lines(file, path)


def _unwritable(path: Path, error: OSError) -> ResourceError:
    return ResourceError(
        f"{path} cannot be written: {error.strerror}.", "Free space or give another place, then --resume."
    )


def drop_torn_line(path: Path) -> None:
    """Cut what a kill left after the last newline, so that the next line starts on its own; a file that is not there
    stays so.
    """
    if not path.exists():
        return
    body = path.read_bytes()
    end = body.rfind(b"\n") + 1
    if end < len(body):
        with path.open("r+b") as file:
            file.truncate(end)


def read(path: Path, kind: type[T], what: str, hint: str) -> Iterator[T]:
    """Every line as a `kind`, in file order; a torn last one is left out, a file that is not there has none.

    Raises UsageError for any other broken line, naming it: it is no `what`, and `hint` says what to do.
    """
    if not path.is_file():
        return
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield decode_json(line, type=kind)
        except msgspec.DecodeError as error:
            if number < len(lines):  # the last one has no newline after it: the write was cut
                raise UsageError(f"{path}:{number} is not {what}: {error}.", hint) from error
