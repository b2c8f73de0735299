"""Reading one file after the other, whatever is in them.

Owns: choosing the reader; the worker process with its limits of time and memory; turning everything that goes wrong
into complaints.
Does not own: formats (readers), the worker's own side (worker).
"""

from __future__ import annotations

import contextlib
import queue
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from msgspec import Struct

from mindchat import child_process
from mindchat.config import IndexSection
from mindchat.corpus.reading.encoding import check_regular
from mindchat.corpus.reading.readers import reader_for
from mindchat.corpus.reading.worker import Answer, Ask, Ended, Got, receive_answer, send
from mindchat.errors import DocumentError
from mindchat.ports import Cancel
from mindchat.text.clean import clean_line
from mindchat.values import Chunk, Document

WORKER_BYTES = 1_200_000_000
"""Address space of the worker."""
_POLL = 0.1
"""Seconds between two looks at the cancel token while waiting."""
_START_SECONDS = 30.0
"""Added to the first file's limit: the worker's start on a cold disk."""


class Entry(Struct, frozen=True):
    """One document of a file."""

    document: Document
    chunks: Sequence[Chunk] | None
    whole: bool
    """Whether `chunks` are passages already."""


class Complaint(Struct, frozen=True):
    """A part of a file that cannot be read; the rest goes on."""

    reason: str


class Reading:
    """A context in which files are read one by one; it owns at most one worker."""

    def __init__(self, section: IndexSection, cancel: Cancel) -> None:
        self.section, self.cancel = section, cancel
        self._worker: _Worker | None = None

    def __enter__(self) -> Reading:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def read(self, path: Path) -> Iterator[Entry | Complaint]:
        """Documents and complaints of one file, in order. Raises DocumentError if nothing more can be read of it,
        Interrupted if cancelled.
        """
        reader = _reader(path)
        check_regular(path)
        if reader.simple:
            yield from read_here(path)
            return
        finished = False
        try:
            yield from self._read_there(path, bool(reader.streams))
            finished = True
        except DocumentError:
            finished = self._worker is not None
            raise
        finally:
            if not finished:  # abandoned in the middle: what the worker still sends belongs to no one
                self._stop()

    def _read_there(self, path: Path, streams: bool) -> Iterator[Entry | Complaint]:
        fresh = self._worker is None
        worker = self._worker = self._worker or _Worker()
        worker.ask(path)
        deadline = time.monotonic() + self.section.read_seconds + fresh * _START_SECONDS
        while True:
            answer = self._await(worker, deadline, path)
            if isinstance(answer, Ended):
                if answer.failure:
                    raise DocumentError(clean_line(answer.failure, 300))
                return
            if streams:  # a mailbox may be long; each message has the whole time
                deadline = time.monotonic() + self.section.read_seconds
            if isinstance(answer, Got):
                yield Entry(answer.document, answer.chunks, answer.whole)
            else:
                yield Complaint(answer.reason)

    def _await(self, worker: _Worker, deadline: float, path: Path) -> Answer:
        while True:
            self.cancel.check()
            try:
                answer = worker.answers.get(timeout=_POLL)
            except queue.Empty:
                if time.monotonic() > deadline:
                    self._stop()
                    reason = f"took longer than index.read_seconds ({self.section.read_seconds} s) to read"
                    raise DocumentError(f"{path.name}: {reason}") from None
                continue
            if answer is None:
                self._stop()
                raise DocumentError(f"{path.name}: made the reader crash (malformed, or too much memory)")
            return answer

    def _stop(self) -> None:
        if self._worker is not None:
            self._worker.kill()
            self._worker = None


class _Worker:
    """The child process and a thread that takes its frames."""

    def __init__(self) -> None:
        arguments = ["-m", "mindchat.corpus.reading.worker", str(WORKER_BYTES)]
        pipe = subprocess.PIPE
        self._process = child_process.start(arguments, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        self.answers: queue.Queue[Answer | None] = queue.Queue(maxsize=16)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._take, name="mindchat-reading", daemon=True)
        self._thread.start()

    def ask(self, path: Path) -> None:
        """Send a path; a worker that has died meanwhile is noticed when its answer is awaited."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            send(self._process.stdin, Ask(str(path)))

    def _take(self) -> None:
        assert self._process.stdout is not None
        while not self._closed.is_set():
            try:
                answer = receive_answer(self._process.stdout)
            except (OSError, ValueError):
                answer = None
            while not self._closed.is_set():
                try:
                    self.answers.put(answer, timeout=_POLL)
                    break
                except queue.Full:
                    continue
            if answer is None:
                return

    def kill(self) -> None:
        """End it at once; it holds nothing that would need saving."""
        self._closed.set()
        self._process.kill()
        self._process.wait()
        self._thread.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what was not flushed to a dead child is of no use
                    pipe.close()


def _reader(path: Path) -> Any:
    reader = reader_for(path)
    if reader is None:
        raise DocumentError(f"{path.name}: its type is not supported.")
    return reader


def read_here(path: Path) -> Iterator[Entry | Complaint]:
    """Read in this process. Complaints come before the document after them. Raises DocumentError."""
    reader = _reader(path)
    waiting: list[str] = []
    documents = reader.read(path, complain=waiting.append)
    while True:
        try:
            found = next(documents, None)
        except (DocumentError, OSError) as error:
            yield from _complaints(waiting)
            if isinstance(error, OSError):  # it was there when the folder was looked through
                raise DocumentError(f"{path.name}: cannot be read ({error.strerror or error})") from error
            raise
        yield from _complaints(waiting)
        if found is None:
            return
        document, chunks = found
        yield Entry(document, chunks, reader.whole)


def _complaints(waiting: list[str]) -> Iterator[Complaint]:
    yield from [Complaint(clean_line(reason, 300)) for reason in waiting]
    waiting.clear()
