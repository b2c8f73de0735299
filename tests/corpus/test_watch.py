from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from mindchat.config import IndexSection
from mindchat.corpus.ingest_report import IngestDone, IngestReport
from mindchat.corpus.watch import Scanned, Tally, watch
from mindchat.errors import IndexLockedError
from mindchat.library import DocumentLibrary
from mindchat.ports import Cancel
from mindchat.storage.document_registry import DocumentRegistry
from mindchat.values import Query


@pytest.fixture
def library(tmp_path):
    registry = DocumentRegistry(tmp_path / "memory.db")
    library = DocumentLibrary(tmp_path / "index", IndexSection(), registry)
    yield library
    library.close()
    registry.close()


def reports(events: list[object]) -> list[IngestReport]:
    return [event.report for event in events if isinstance(event, IngestDone)]


class Watched:
    """A watch in a thread of its own, as the screens run it."""

    def __init__(self, library: DocumentLibrary) -> None:
        self.events: list[object] = []
        self.cancel = Cancel()
        self.thread = threading.Thread(target=self._run, args=(library,))
        self.thread.start()

    def _run(self, library: DocumentLibrary) -> None:
        for event in library.watch(0.05, self.cancel):
            self.events.append(event)

    def until(self, what, seconds: float = 20.0) -> None:
        end = time.monotonic() + seconds
        while not what(self.events):
            assert time.monotonic() < end, self.events
            time.sleep(0.02)

    def stop(self) -> None:
        self.cancel.set()
        self.thread.join(10)
        assert not self.thread.is_alive()


def test_changes_are_found_while_watching_and_those_from_before(library, tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("A river.")
    list(library.add([docs]))
    (docs / "closed.txt").write_text("A castle, built while the app was closed.")
    watched = Watched(library)
    try:
        watched.until(lambda events: any(report.added for report in reports(events)))
        (docs / "b.txt").write_text("A violin.")
        (docs / "a.txt").unlink()
        watched.until(lambda events: any(report.removed for report in reports(events)))
        watched.until(lambda events: sum(len(report.added) for report in reports(events)) == 2)
        syncs = len(reports(watched.events))
        scans = sum(isinstance(event, Scanned) for event in watched.events)
        watched.until(lambda events: sum(isinstance(event, Scanned) for event in events) > scans + 3)
        assert len(reports(watched.events)) == syncs, "nothing changed, so nothing was synced"
    finally:
        watched.stop()
    assert [Path(passage.document).name for passage in library.search(Query("violin"), 3)] == ["b.txt"]
    assert library.search(Query("river"), 3) == []


def test_a_file_that_is_still_being_written_waits_until_two_looks_agree():
    looks = iter([{"a": (1, 1)}, {"a": (2, 2)}, {"a": (3, 3)}, {"a": (3, 3)}, {"a": (3, 3)}])
    syncs: list[int] = []
    cancel = Cancel()

    def look(_):
        try:
            return next(looks)
        except StopIteration:
            cancel.set()
            return {"a": (3, 3)}

    def sync():
        syncs.append(1)
        return iter(())

    scans = [event.changed for event in watch(lambda: [], sync, look, 0.0, cancel)]
    assert scans[:5] == [True, False, False, True, False]
    assert len(syncs) == 2


def test_a_busy_index_is_told_and_tried_again():
    cancel, tries = Cancel(), []

    def sync():
        tries.append(1)
        if len(tries) == 1:
            raise IndexLockedError("Another process writes.", "")
        cancel.set()
        return iter(())

    scans = list(watch(lambda: ["a"], sync, lambda roots: {"a": (1, 1)}, 0.0, cancel))
    assert [(scan.changed, scan.waiting) for scan in scans] == [(False, "Another process writes."), (True, "")]


def test_the_line():
    tally = Tally()
    assert tally.line(0.0) == "auto: on, first scan"
    tally.feed(Scanned(3, False, 100.0))
    assert tally.line(112.4) == "auto: on, last scan 12 s ago"
    tally.feed(IngestDone(IngestReport(added=("a",), removed=("b", "c"))))
    tally.feed(IngestDone(IngestReport(unchanged=3)))
    tally.feed(Scanned(2, True, 120.0))
    assert tally.line(121.0) == "auto: on, last scan 1 s ago, +1 −2"
    tally.feed(Scanned(2, False, 130.0, "Another process writes."))
    assert tally.line(130.0).endswith(", Another process writes.")


def test_a_look_costs_little(library, tmp_path):
    from mindchat.corpus.watch import look

    for n in range(500):
        (tmp_path / f"{n}.txt").write_text("x")
    os.sync()
    before = time.process_time()
    assert len(look([str(tmp_path)], 10_000_000, tmp_path / "none")) >= 500
    assert time.process_time() - before < 1.0
