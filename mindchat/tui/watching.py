"""The thread that keeps the documents up to date while the screens are open.

Owns: that thread, and telling the screens of each look. Does not own: looking and syncing (corpus.watch through the
library). It is a daemon beside the engine thread: a sync may take minutes, and questions go on meanwhile over the index
as it was.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from textual.message import Message

from mindchat.ports import Cancel

if TYPE_CHECKING:
    from mindchat.corpus.watch import Tally

log = logging.getLogger(__name__)


class Watched(Message):
    """One look at the files is over; `changed`: the documents are others now. `off`: why there will be no further look."""

    def __init__(self, tally: Tally, changed: bool, off: str = "") -> None:
        super().__init__()
        self.tally, self.changed, self.off = tally, changed, off

    def line(self, now: float) -> str:
        """For the status line; "" while nothing is indexed. `now`: time.monotonic()."""
        return f"auto: off ({self.off})" if self.off else self.tally.line(now)


class Watching:
    """Runs library.watch() until stopped."""

    def __init__(self, library: Any, seconds: float, tell: Callable[[Watched], object]) -> None:
        self._library, self._seconds, self._tell = library, seconds, tell
        self._cancel = Cancel()
        self._thread = threading.Thread(target=self._work, name="mindchat-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end; returns at once. What a sync has stored stays, the next one resumes."""
        self._cancel.set()

    def join(self, seconds: float) -> bool:
        """Wait for its end; False if it is still busy."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _work(self) -> None:
        from mindchat.corpus.watch import Scanned, Tally

        tally = Tally()
        try:
            for event in self._library.watch(self._seconds, self._cancel):
                tally.feed(event)
                if isinstance(event, Scanned) and event.files:
                    self._tell(Watched(tally, event.changed))
        except Exception as error:  # the thread's edge: told, and logged with its traceback
            log.error("watching the documents ended", exc_info=error)
            self._tell(Watched(tally, False, getattr(error, "message", type(error).__name__)))
