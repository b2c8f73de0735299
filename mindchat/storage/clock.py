"""Times as text and short ids: what every table of memory.db and chats.db shares.

Owns: now(), ages, ids shown to people. Does not own: what they mark.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta

from mindchat.errors import UsageError

_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def now() -> str:
    """UTC, ISO 8601 with milliseconds: sorts as text, and equals SQLite's strftime('%Y-%m-%dT%H:%M:%fZ')."""
    return stamp(datetime.now(UTC))


def stamp(moment: datetime) -> str:
    """A moment in the form of now()."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def ago(age: str) -> str:
    """The time `age` ago: 30m, 2h, 7d, 3w. Raises UsageError for anything else."""
    match = re.fullmatch(r"(\d{1,5})([mhdw])", age.strip())
    if not match:
        raise UsageError(f"{age!r} is no age.", "Write 30m, 2h, 7d or 3w.")
    return stamp(datetime.now(UTC) - timedelta(**{_UNITS[match[2]]: int(match[1])}))


def short_id(prefix: str, *parts: str, attempt: int = 0) -> str:
    """Seven characters: the prefix and Crockford base 32 of a hash. The same parts give the same id, so that equal runs
    are equal.
    """
    digest = hashlib.sha256("\x1f".join([*parts, str(attempt)]).encode()).digest()
    number = int.from_bytes(digest[:8], "big")
    return prefix + "".join(_CROCKFORD[(number >> (5 * i)) & 31] for i in range(7 - len(prefix)))
