"""The compare screen: one question under two (or more) settings, side by side, with counts.

Owns: drawing traces in columns. Does not own: running them (tui.trial).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from mindchat.events import Event
from mindchat.trace import Trace, counts, fold
from mindchat.tui.drawable import (
    ACCENT,
    BAD,
    FAINT,
    GOOD,
    MUTED,
    STRUCK,
    TITLE,
    block,
    grouped,
    line,
    lines,
    seconds,
    short,
)
from mindchat.tui.screens.sheet import Sheet

COUNTS = (
    ("retrievals", "retrievals"),
    ("memory_hits", "from memory"),
    ("triggers", "triggers"),
    ("prompt_tokens_new", "prompt tokens new"),
    ("prompt_tokens_cached", "prompt tokens cached"),
    ("generated_kept", "tokens kept"),
    ("generated_discarded", "tokens withdrawn"),
)
"""Key of trace.counts → words."""


FINISHED = ("answered", "failed", "cancelled")


def short_answer(trace: Trace) -> str:
    """What the side says."""
    return (
        trace.answer.short or trace.answer.text
        if trace.answer is not None
        else trace.failed.message
        if trace.failed is not None
        else "stopped"
    )


def painted_counts(trace: Trace, others: Sequence[Trace]) -> Content:
    """Counts; the lowest of a row is marked, if they differ."""
    rows = []
    for key, words in COUNTS:
        value, values = counts(trace)[key], [counts(other)[key] for other in (trace, *others)]
        best = value == min(values) and len(set(values)) > 1 and all(other.state in FINISHED for other in others)
        rows.append(
            line(
                (f"{words:<22}", MUTED),
                (f"{grouped(value):>9}", "bold" if best else ""),
                (" ◂ fewest" if best else "", GOOD),
            )
        )
    calls = sum(counts(trace)["model_calls"].values())
    return lines(
        [
            *rows,
            line((f"{'model calls':<22}", MUTED), f"{calls:>9}"),
            line((f"{'time':<22}", MUTED), f"{seconds(trace.seconds):>9}"),
        ]
    )


def painted_running(trace: Trace) -> Content:
    """A side that is still being made."""
    return lines(
        [line(("… ", ACCENT), (trace.phase or "waiting", MUTED)), block((trace.reasoning + trace.draft_text, MUTED))]
    )


def painted_side(trace: Trace, others: Sequence[Trace]) -> Content:
    """Answer, counts, sub-queries, reasoning."""
    same = all(short_answer(other).casefold() == short_answer(trace).casefold() for other in others)
    done = all(other.state in FINISHED for other in others)
    agree = (
        line(("= same answer", GOOD) if same else ("≠ answers differ", BAD))
        if done
        else line(("… the other side is still running", FAINT))
    )
    hops = [line((f"{hop.n}. ", ACCENT), hop.subquery) for hop in trace.hops if hop.subquery]
    gone = [line(("withdrew ", MUTED), (view.retracted.strip(), STRUCK)) for view in trace.sentences if view.retracted]
    asked = [line(("Looked up", TITLE)), *hops] if hops else [line(("Nothing looked up", FAINT))]
    return lines(
        [
            line((short(short_answer(trace), 200), "bold")),
            agree,
            line(""),
            painted_counts(trace, others),
            line(""),
            *asked,
            *gone,
            line(""),
            line(("Reasoning", TITLE)),
            block((trace.reasoning.strip() or "none", MUTED)),
        ]
    )


class CompareScreen(Sheet):
    """Columns; the last side may still be running."""

    NAME = "Compare"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "app.focus_next", "Next column")]

    def __init__(self, sides: Sequence[tuple[str, Trace]], cancel: Callable[[], None]) -> None:
        super().__init__(id="compare")
        self._sides = list(sides)
        self._stop = cancel

    def body(self) -> ComposeResult:
        """The question, then one column a side."""
        yield Static(line((self._sides[0][1].question, "bold")), markup=False, classes="compare-question")
        with Horizontal(classes="compare-columns"):
            for label, _ in self._sides:
                column = VerticalScroll(Static(markup=False, classes="compare-text"), classes="compare-column")
                column.border_title = line((label, TITLE))
                yield column

    def on_mount(self) -> None:
        """Draw what is known."""
        super().on_mount()
        self._draw()

    def take(self, news: Iterable[Event]) -> None:
        """News of the last side."""
        label, trace = self._sides[-1]
        for event in news:
            trace = fold(trace, event)
        self._sides[-1] = (label, trace)
        if self.is_mounted:
            self._draw()

    def _draw(self) -> None:
        finished = all(trace.state in FINISHED for _, trace in self._sides)
        for at, (widget, (_, trace)) in enumerate(
            zip(self.query(".compare-text").results(Static), self._sides, strict=True)
        ):
            others = [other for place, (_, other) in enumerate(self._sides) if place != at]
            widget.update(
                painted_side(trace, others) if finished or trace.state in FINISHED else painted_running(trace)
            )

    def action_close_sheet(self) -> None:
        """Closing stops a side that still runs."""
        if self._sides[-1][1].state not in FINISHED:
            self._stop()
        self.dismiss()
