"""The documents are watched while the screens are open, and the status line says so."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mindchat.corpus.ingest_report import IngestDone, IngestReport
from mindchat.corpus.watch import Scanned, Tally
from mindchat.errors import ResourceError
from mindchat.ports import Cancel
from mindchat.tui.bridge import SessionView
from mindchat.tui.watching import Watched, Watching
from mindchat.tui.widgets.status import Status, painted_status


class Library:
    """Yields what it is given, then looks on until it is cancelled."""

    def __init__(self, *events: Any) -> None:
        self.events, self.cancelled = events, threading.Event()

    def watch(self, interval: float, cancel: Cancel) -> Iterator[Any]:
        for event in self.events:
            if isinstance(event, Exception):
                raise event
            yield event
        while not cancel.cancelled:
            time.sleep(0.005)
        self.cancelled.set()


async def test_the_status_line_tells_of_the_watch_and_the_counts_follow(stage: Any) -> None:
    report = IngestReport(added=("/docs/a.txt",), removed=("/docs/b.txt", "/docs/c.txt"))
    async with stage(size=(160, 40)) as s:
        await s.ready()
        library = Library(IngestDone(report), Scanned(3, True, time.monotonic() - 12))
        library.status = s.session.rooms.library.status
        s.session.rooms.library.documents = 4711
        s.app.bridge._watching = Watching(library, 15.0, s.app.bridge._watched)
        await s.until(lambda: re.search(r"auto: on, last scan (1[2-9]|[2-9]\d) s ago, \+1 −2", s.text()))
        await s.until(lambda: s.chat.view.library["documents"] == 4711)
    assert library.cancelled.wait(5), "leaving stops the watch"


def test_a_look_over_nothing_is_not_told_and_stop_ends_the_thread() -> None:
    told: list[Watched] = []
    watching = Watching(Library(Scanned(0, False, 1.0), Scanned(2, False, 2.0)), 15.0, told.append)
    end = time.monotonic() + 5
    while not told and time.monotonic() < end:
        time.sleep(0.01)
    watching.stop()
    assert watching.join(5)
    assert [news.line(3.0) for news in told] == ["auto: on, last scan 1 s ago"]


def test_a_watch_that_fails_says_why() -> None:
    told: list[Watched] = []
    assert Watching(Library(ResourceError("The store cannot be read.", "")), 15.0, told.append).join(5)
    assert [news.line(0.0) for news in told] == ["auto: off (The store cannot be read.)"]


def test_a_narrow_line_drops_the_watch_first() -> None:
    status = Status(
        SessionView(model="m", model_ready=True, policy="mind", filter="auto", memory="on"),
        watch="auto: on, last scan 3 s ago",
    )
    assert "auto: on" in painted_status(status, 120).plain
    assert "auto: on" not in painted_status(status, 50).plain
    assert "mind/auto" in painted_status(status, 50).plain


def test_a_real_library_is_watched_from_the_start(tmp_path: Path) -> None:
    from mindchat.config import IndexSection
    from mindchat.library import DocumentLibrary
    from mindchat.storage.document_registry import DocumentRegistry

    docs = tmp_path / "watched"
    docs.mkdir()
    (docs / "a.txt").write_text("A river.")
    registry = DocumentRegistry(tmp_path / "memory.db")
    library = DocumentLibrary(tmp_path / "index", IndexSection(), registry)
    list(library.add([docs]))
    (docs / "b.txt").write_text("Written while the app was closed.")
    told: list[Watched] = []
    watching = Watching(library, 0.05, told.append)
    end = time.monotonic() + 20
    while not any(news.changed for news in told) and time.monotonic() < end:
        time.sleep(0.02)
    watching.stop()
    assert watching.join(10)
    assert told[-1].line(time.monotonic()).endswith("+1")
    assert registry.count("user") == (2, 2)
    library.close()
    registry.close()


def test_a_tally_starts_empty() -> None:
    assert Watched(Tally(), False).line(0.0) == "auto: on, first scan"
