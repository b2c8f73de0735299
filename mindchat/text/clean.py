"""The boundary: text from models, documents, file names and memory becomes harmless to a terminal, once.

Owns: which characters never pass. Does not own: markup (the screens never parse dynamic text as markup). Dropped: C0
controls but newline and tab, DEL, C1, escape sequences (CSI, OSC, DCS, APC, PM, SOS and two-byte ones), lone carriage
returns, bidirectional overrides and isolates. CRLF becomes LF.
"""

from __future__ import annotations

import re

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    # OSC, DCS, SOS, PM, APC with their string, which opens no other one:
    r"|\x1b[\]PX^_][^\x07\x1b\x90\x98\x9b-\x9f]*(?:\x07|\x1b\\|\x9c)"
    r"|\x9b[0-?]*[ -/]*[@-~]"  # C1 CSI
    # so scanning is linear, however many are left open
    r"|[\x9d\x90\x98\x9e\x9f][^\x07\x1b\x90\x98\x9b-\x9f]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]",  # two-byte escapes
    re.DOTALL,
)
_OPEN = re.compile(
    r"(?:\x1b(?:[\]PX^_][^\x07\x9c]*|\[[0-?]*[ -/]*|[ -/]*)?|\x9b[0-?]*[ -/]*|[\x9d\x90\x98\x9e\x9f][^\x07\x9c]*|\r)\Z",
    re.DOTALL,
)
_DROPPED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\ufeff\ud800-\udfff]")
MAX_OPEN = 4096
"""Longest unfinished sequence that is waited for; a longer one is no sequence but an attempt to hide text."""


def clean(text: str) -> str:
    """The text without anything that a terminal would obey."""
    return _DROPPED.sub("", _SEQUENCE.sub("", text.replace("\r\n", "\n")))


def clean_line(text: str, limit: int = 0) -> str:
    """clean() on one line: newlines and tabs become spaces; cut to `limit` characters with an ellipsis if limit > 0."""
    line = " ".join(clean(text).split())
    return line if not limit or len(line) <= limit else line[: limit - 1] + "…"


class Cleaner:
    """clean() over a stream: a sequence that is split between two pieces is held back until it is complete."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """What of the stream so far can be shown and has not been returned yet."""
        text = self._held + piece
        match = _OPEN.search(text)
        cut = match.start() if match and match.end() - match.start() <= MAX_OPEN else len(text)
        self._held = text[cut:]
        return clean(text[:cut])

    def close(self) -> str:
        """The rest, when the stream has ended."""
        rest, self._held = self._held, ""
        return clean(rest)
