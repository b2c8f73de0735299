"""Watching the indexed files: look every few seconds, bring the index up to date when something differs.

Owns: when to look, what counts as a difference, news of each look. Does not own: what sync does (ingest), threads,
showing it. Only names, sizes and times are compared (one stat a file), so a look costs little; a file that is still
being written is left until two looks agree. The first look always syncs, for what happened while nobody watched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from mindchat.corpus.ingest_report import IngestDone, IngestEvent, IngestReport
from mindchat.corpus.reading.walk import Found, walk
from mindchat.errors import DeadlineError, Interrupted, ResourceError
from mindchat.ports import Cancel

State = dict[str, tuple[int, int]]
"""File → (time of change in ns, size)."""


class Scanned(Struct, frozen=True, tag_field="type"):
    """One look is over."""

    files: int
    changed: bool
    """Whether a sync followed; its events came before this one."""
    at: float
    """time.monotonic()."""
    waiting: str = ""
    """Why a sync that is due was put off: another process writes, the store is busy."""


WatchEvent = IngestEvent | Scanned


def look(roots: Sequence[str], max_bytes: int, own: Path, follow_links: bool = False) -> State:
    """Every file that is a document now, and every root that is there."""
    state: State = {root: (0, 0) for root in roots if Path(root).exists()}
    for root in roots:
        for item in walk(Path(root), max_bytes, own, follow_links=follow_links):
            if isinstance(item, Found):
                state[str(item.path)] = (item.mtime_ns, item.size)
    return state


def watch(
    roots: Callable[[], Sequence[str]],
    sync: Callable[[], Iterator[IngestEvent]],
    look: Callable[[Sequence[str]], State],
    interval: float,
    cancel: Cancel,
) -> Iterator[WatchEvent]:
    """Look every `interval` seconds until cancelled, then end quietly; yields the events of each sync, then Scanned.

    Nothing is synced while there are no roots.
    """
    known: State | None = None
    before: State | None = None
    while not cancel.cancelled:
        waiting, due = "", False
        try:
            state = look(roots())
        except ResourceError as error:  # the list of roots cannot be read now
            yield Scanned(len(known or ()), False, time.monotonic(), error.message)
            cancel.rest(interval)
            continue
        if state != known and (known is None or state == before) and (state or known):
            due = True
            try:
                yield from sync()
                known = state
            except (Interrupted, DeadlineError):
                return
            except ResourceError as error:  # the next look tries again
                waiting = error.message
        before = state
        yield Scanned(len(state), due and not waiting, time.monotonic(), waiting)
        cancel.rest(interval if state == known or waiting else min(interval, 1.0))


class Tally:
    """What a status line says of a watch: fed with its events, asked for one line."""

    def __init__(self) -> None:
        self._at: float | None = None
        self._last: IngestReport | None = None
        self._waiting = ""

    def feed(self, event: WatchEvent) -> None:
        """Take the next event."""
        if isinstance(event, Scanned):
            self._at, self._waiting = event.at, event.waiting
        elif isinstance(event, IngestDone) and _moved(event.report):
            self._last = event.report

    def line(self, now: float) -> str:
        """For example: auto: on, last scan 12 s ago, +1 −2. `now`: time.monotonic(). The numbers are those of the last
        sync that changed anything.
        """
        if self._at is None:
            return "auto: on, first scan"
        parts = [f"auto: on, last scan {max(0, now - self._at):.0f} s ago"]
        if self._last is not None:
            counts = (("+", self._last.added), ("~", self._last.updated + self._last.moved), ("−", self._last.removed))
            parts.append(" ".join(f"{sign}{len(paths)}" for sign, paths in counts if paths))
        return ", ".join(parts + [self._waiting] * bool(self._waiting))


def _moved(report: IngestReport) -> bool:
    return bool(report.added or report.updated or report.moved or report.removed)
