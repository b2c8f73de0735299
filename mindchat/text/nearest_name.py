"""Names that people type: the nearest known one, and the refusal that offers it.

Owns: nearest, unknown. Does not own: any table of names.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from mindchat.errors import UsageError
from mindchat.text.clean import clean_line


def nearest(name: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """The known name closest to a mistyped one; "" if none is close (similarity 0 to 1 below `cutoff`)."""
    return next(iter(difflib.get_close_matches(name, list(known), 1, cutoff)), "")


def unknown(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """The refusal of a name: what there is none of, the nearest one, and all that are known."""
    names = list(known)
    near = nearest(name, names, 0.4)
    offer = f" Did you mean {near}?" if near else ""
    return UsageError(f"There is no {kind} {clean_line(name, 40)}.{offer}", f"Known: {', '.join(names)}.")
