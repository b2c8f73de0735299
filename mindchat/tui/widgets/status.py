"""The status line: model, what happens now with progress and ETA, window, hops, memory.

Owns: how State is drawn in one row at any width. Does not own: measuring (Trace and SessionView have the numbers).
"""

from __future__ import annotations

from msgspec import Struct
from textual.content import Content
from textual.widgets import Static

from mindchat.pace import LONG, about
from mindchat.trace import Trace, phase_words
from mindchat.tui.bridge import SessionView
from mindchat.tui.drawable import ACCENT, BAD, FAINT, GOOD, MUTED, WARN, bar, grouped, line, seconds, short


class Status(Struct, frozen=True):
    """What the line knows."""

    view: SessionView = SessionView()
    trace: Trace = Trace()
    loading: Trace = Trace()
    busy: bool = False
    command: str = ""
    elapsed: float = 0.0
    queued: int = 0
    broken: str = ""
    watch: str = ""
    """What the watch over the documents says."""


def remaining(done: int, total: int, spent: float) -> float | None:
    """Seconds to go at the pace so far; None before there is a pace."""
    return spent * (total - done) / done if done > 0 and total > done and spent > 0.5 else None


def painted_progress(done: int, total: int, spent: float) -> Content:
    """Bar, share and ETA."""
    if total <= 0:
        return line("")
    left = remaining(done, total, spent)
    to_go = f", {seconds(left)} left" if left is not None and left >= 1 else ""
    return line((" " + bar(done / total, 8), ACCENT), f" {100 * done // total} %", (to_go, MUTED))


def painted_now(status: Status) -> Content:
    """What happens now."""
    trace, loading = status.trace, status.loading.loading
    if status.broken:
        return line(("✗ " + short(status.broken, 40), BAD))
    if status.command:
        return line(("● ", ACCENT), f"/{status.command} ", (seconds(status.elapsed), MUTED))
    if not status.view.model_ready and loading is not None and not (status.busy and trace.state == "running"):
        return line(
            ("● ", WARN),
            f"model: {short(loading.phase, 24)}",
            painted_progress(loading.done, loading.total, loading.seconds),
        )
    foreseen = about(status.view.expected) if status.view.expected > LONG else ""
    if not status.busy:
        ready = line(("● ", GOOD), "ready", (f", {foreseen} a question" if foreseen else "", MUTED))
        return ready if status.view.model_ready else line(("○ ", WARN), "starting")
    words = phase_words(trace.phase) or short(trace.phase, 24) or "waiting"
    now = line(("● ", ACCENT), words)
    prefill = trace.prefill
    if prefill is not None and prefill.done < prefill.total:
        now = line(now, painted_progress(prefill.done, prefill.total, prefill.seconds))
    spent = f" · {seconds(status.elapsed)}" + (f" of {foreseen}" if foreseen else "")
    return line(now, (spent, MUTED), (f" +{status.queued} queued" if status.queued else "", MUTED))


def painted_status(status: Status, width: int) -> Content:
    """One row; the least needed pieces go first when it is narrow."""
    view, built = status.view, status.trace.context
    method = (
        f"{view.policy}/{view.filter} ×{view.repeat + 1 if isinstance(view.repeat, int) else view.repeat}"
        if view.policy
        else ""
    )
    dropped = len(status.trace.dropped)
    context = (
        f"ctx {grouped(built.tokens)}/{grouped(built.window)}" + (f", {dropped} left out" if dropped else "")
        if built
        else ""
    )
    hops = sum(1 for hop in status.trace.hops if hop.subquery)
    memory = "incognito" if view.incognito else f"memory {view.memory}" if view.memory else ""
    pieces: list[tuple[int, Content]] = [(0, painted_now(status))]
    for weight, text, style in (
        (1, short(view.model, 28) if view.model else "", ""),
        (4, method, MUTED),
        (2, context, MUTED),
        (3, f"{hops} hop{'s' * (hops != 1)}" if hops else "", MUTED),
        (2, memory, WARN if view.incognito else MUTED),
        (5, short(status.watch, 60), MUTED),
    ):
        if text:
            pieces.append((weight, line((text, style))))
    while len(pieces) > 1 and sum(content.cell_length + 3 for _, content in pieces) > width:
        pieces.remove(max(reversed(pieces), key=lambda piece: piece[0]))
    return (
        line(("  │  ", FAINT)).join([content for _, content in pieces])
        if width > 90
        else line((" │ ", FAINT)).join([content for _, content in pieces])
    )


class StatusLine(Static):
    """The row itself."""

    def __init__(self) -> None:
        super().__init__(id="status", markup=False)
        self.status = Status()

    def say(self, status: Status) -> None:
        """Draw a newer state."""
        self.status = status
        self.update(painted_status(status, max(20, self.size.width - 2)))

    def on_resize(self) -> None:
        """What fits depends on the width."""
        self.say(self.status)
