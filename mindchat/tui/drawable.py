"""Ink: where text becomes something a screen may draw.

Owns: the styles by role, line() and block() (every string passes mindchat.text.clean and none is parsed as markup),
bars, sparklines, ETA words.
Does not own: layout and colours (mindchat.tcss and the theme: styles here name theme variables only).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from textual.content import Content
from textual.style import Style

from mindchat.text.clean import clean, clean_line

MUTED = "$foreground-muted"
FAINT = "$foreground-disabled"
TITLE = "bold $text-primary"
ACCENT = "$text-accent"
GOOD = "$text-success"
WARN = "$text-warning"
BAD = "$text-error"
STRUCK = "strike $foreground-muted"

Part = str | Content | tuple[str, str]
"""A piece of a line: plain words, finished content, or (words, style)."""

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"


def block(*parts: Part) -> Content:
    """Content of several pieces; newlines stay."""
    return Content.assemble(*(_clean(part) for part in parts))


def _clean(part: Part) -> Content | tuple[str, str]:
    if isinstance(part, Content):
        return part
    text, style = (part, "") if isinstance(part, str) else part
    return clean(text), style


def line(*parts: Part) -> Content:
    """Content on one line: newlines inside a piece become spaces."""
    flat: list[Part] = []
    for part in parts:
        if isinstance(part, Content):
            flat.append(part)
        else:
            text, style = (part, "") if isinstance(part, str) else part
            flat.append((clean(text).replace("\n", " ").replace("\t", " "), style))
    return block(*flat)


def short(text: str, limit: int) -> str:
    """One clean line of at most `limit` characters."""
    return clean_line(text, max(2, limit))


def lines(rows: Iterable[Content]) -> Content:
    """Rows under one another."""
    return Content("\n").join(rows)


def clickable(text: str, style: str, action: str) -> Content:
    """Words that run an action of ours when clicked. `action` is never built from dynamic text."""
    return Content.styled(clean(text), style).stylize(Style.from_meta({"@click": action}))


def bar(share: float, width: int) -> str:
    """A bar of `width` cells filled to `share` (0–1), in eighths of a cell."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    full, rest = divmod(eighths, 8)
    drawn = "█" * full + (_EIGHTHS[rest] if rest else "")
    return drawn + "·" * (width - len(drawn))


def level(share: float) -> str:
    """One character, ▁ (0) to █ (1 and more)."""
    return _LEVELS[max(0, min(7, int(share * 8)))]


def spark(values: Sequence[float], width: int, top: float = 0.0) -> str:
    """A sparkline; more values than cells are joined by their maximum. `top` is the value of a full cell (0: the
    largest).
    """
    if not values or width < 1:
        return ""
    top = top or max(values) or 1.0
    if len(values) > width:
        edges = [round(i * len(values) / width) for i in range(width + 1)]
        values = [max(values[a:b]) for a, b in itertools.pairwise(edges)]
    return "".join(level(value / top) for value in values)


def seconds(value: float) -> str:
    """A duration for people: 0.8 s, 12 s, 3 min 05 s."""
    if value < 10:
        return f"{value:.1f}\u00a0s"
    return f"{value:.0f}\u00a0s" if value < 60 else f"{int(value // 60)}\u00a0min\u00a0{int(value % 60):02d}\u00a0s"


def size(count: int) -> str:
    """A number of bytes for people."""
    value, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def grouped(number: int) -> str:
    """12345 → 12 345 (a no-break space, so that a number is never split over lines)."""
    return f"{number:,}".replace(",", "\u00a0")
