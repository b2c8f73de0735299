"""One thread that owns a session, so that the main thread stays free for signals, time limits and the progress line.

Owns: Desk. Does not own: cancelling inside the work (ports.Cancel does), what is done with the items. A Session is
opened, used and left on the desk's thread only; a load or a forward pass that does not look at Cancel is left behind.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from mindchat.ports import Cancel
from mindchat.session import Session

POLL_SECONDS = 0.1
GRACE_SECONDS = 1.5
"""How long cancelled work may take to write down what it has."""

log = logging.getLogger(__name__)
T = TypeVar("T")
Job = Callable[[Session], Iterator[T]]


class Desk:
    """Runs jobs over one session, one after the other."""

    def __init__(self, open_session: Callable[[], Session]) -> None:
        self._open = open_session
        self._jobs: queue.Queue[Callable[[], None] | None] = queue.Queue()
        self._session: Session | None = None
        self._thread = threading.Thread(target=self._work, name="mindchat-desk", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
        if self._session is not None:
            try:
                self._session.close()
            except Exception:  # the thread's edge: the answer is out, and stores are whole after every transaction
                log.exception("closing the session failed")

    def run(self, job: Job[T], cancel: Cancel) -> Iterator[T]:
        """The job's items as they come; what it raises is raised here. If it overstays a cancel, Interrupted or
        DeadlineError is.
        """
        items: queue.Queue[tuple[str, T | BaseException | None]] = queue.Queue()

        def work() -> None:
            try:
                if self._session is None:
                    self._session = self._open()
                for item in job(self._session):
                    items.put(("item", item))
                items.put(("end", None))
            except BaseException as error:  # noqa: BLE001 - carried over to the calling thread and raised there
                items.put(("error", error))

        self._jobs.put(work)
        overdue: float | None = None
        while True:
            try:
                kind, item = items.get(timeout=POLL_SECONDS)
            except queue.Empty:
                if cancel.cancelled:
                    overdue = overdue or time.monotonic() + GRACE_SECONDS
                    if time.monotonic() > overdue:
                        cancel.check()
                continue
            if kind == "end":
                return
            if isinstance(item, BaseException):
                raise item
            yield item  # type: ignore[misc]

    def close(self) -> None:
        """Let the thread end; it is not waited for longer than the grace time."""
        self._jobs.put(None)
        self._thread.join(GRACE_SECONDS)
