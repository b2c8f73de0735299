"""The two streams: data on standard output, narration and progress on standard error.

Owns: how JSON, lines, notes and the progress line are written, and when colour and cursor movement are allowed.
Does not own: what is said. Every text that did not come from us is passed through mindchat.text.clean before it is
written here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

import msgspec

from mindchat.text.clean import clean, clean_line

_OBEYED = re.compile("[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff]")
"""Characters that JSON lets through as they are and that a terminal might obey: escaped, so that the value stays and
the effect goes.
"""

PROGRESS_SECONDS = 0.1
"""Shortest time between two redraws of the progress line."""


def prepare_streams() -> None:
    """No character can make writing fail: what the stream's encoding lacks is written as a backslash escape."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _is_utf8(stream: TextIO) -> bool:
    return (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "").replace("_", "") in (
        "utf8",
        "utf8sig",
    )


def json_line(text: str) -> str:
    """One line of JSON, the same value in a form that is harmless to a terminal and fits the encoding of standard
    output.
    """
    if not _is_utf8(sys.stdout):
        return json.dumps(json.loads(text), ensure_ascii=True)
    return _OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def write_json(value: object) -> None:
    """One JSON value on its own line of standard output, at once."""
    sys.stdout.write(json_line(msgspec.json.encode(value).decode()) + "\n")
    sys.stdout.flush()


def write(text: str = "") -> None:
    """Lines of data on standard output."""
    sys.stdout.write(clean(text) + "\n")


def write_table(rows: Iterable[Sequence[Any]], header: Sequence[str] = ()) -> None:
    """Columns padded with spaces; nothing else, so that the output can be cut and sorted."""
    cells = [[clean_line(str(cell)) for cell in row] for row in ([header, *rows] if header else rows)]
    if not cells:
        return
    widths = [max(len(row[n]) for row in cells) for n in range(len(cells[0]))]
    for row in cells:
        write("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def is_terminal(stream: TextIO) -> bool:
    """Whether cursor movement may be written to the stream."""
    return stream.isatty() and os.environ.get("TERM", "") != "dumb"


def has_colour(stream: TextIO) -> bool:
    """Whether colour may be written to the stream (no-color.org)."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


class Narrator:
    """Notes and one progress line on standard error (or another stream); the line exists on a terminal only."""

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._live = is_terminal(self._stream) and not quiet
        self._dim = has_colour(self._stream)
        self._quiet = quiet
        self._shown = False
        self._drawn = 0.0

    def note(self, text: str) -> None:
        """One line of narration; silent if quiet."""
        if not self._quiet:
            self.warn(text)

    def warn(self, text: str) -> None:
        """One line that is always said."""
        self.clear()
        for line in clean(text).split("\n"):
            self._stream.write(f"\x1b[2m{line}\x1b[22m\n" if self._dim else f"{line}\n")
        self._stream.flush()

    def progress(self, text: str) -> None:
        """Replace the progress line, at most ten times a second."""
        now = time.monotonic()
        if not self._live or (self._shown and now - self._drawn < PROGRESS_SECONDS):
            return
        room = max(20, shutil.get_terminal_size().columns - 1)
        self._stream.write(f"\r\x1b[K{clean_line(text, room)}")
        self._stream.flush()
        self._shown, self._drawn = True, now

    def clear(self) -> None:
        """Take the progress line away."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False


def megabytes(count: int) -> str:
    """A number of bytes for people: 0.4 MB, 98 MB, 1.1 GB."""
    if count >= 1_000_000_000:
        return f"{count / 1_000_000_000:.1f} GB"
    return f"{count / 1_000_000:.1f} MB" if count < 10_000_000 else f"{count / 1_000_000:.0f} MB"


def plural(count: int, noun: str) -> str:
    """`1 turn`, `2 turns`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def meter(done: int, total: int, started: float, unit: str = "") -> str:
    """`34 % · 12/98 MB · 9 s left`, as far as it is known; `started` is a time.monotonic()."""
    if total <= 0:
        return f"{done:,}{unit}" if done else ""
    counts = f"{megabytes(done)} of {megabytes(total)}" if unit == "B" else f"{done:,} of {total:,}{unit}"
    parts = [f"{100 * done / total:.0f} %", counts]
    elapsed = time.monotonic() - started
    if 0 < done < total and elapsed > 1:
        parts.append(f"{duration(elapsed / done * (total - done))} left")
    return " · ".join(parts)
