"""The passage screen: a citation or passage in its document, highlighted, with its score and what to know about the
file.

Owns: drawing a Source and moving between the sources of one answer. Does not own: finding it (tui.sources).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from mindchat.errors import MindChatError
from mindchat.tui.drawable import ACCENT, FAINT, MUTED, TITLE, WARN, block, grouped, line, lines, short
from mindchat.tui.screens.sheet import Sheet
from mindchat.tui.sources import Source
from mindchat.values import Citation, Passage

AROUND = 6_000
"""Characters of the document shown on either side of the passage; a whole book would be slow to draw and no easier to
read.
"""

Place = tuple[str, Passage | None, Citation | None]
"""(label such as "[2]", passage, citation)."""


def painted_head(source: Source) -> Content:
    """File, place, score, warnings."""
    rows = [line((short(source.document, 100), MUTED))]
    words = [f"characters {grouped(source.start)}–{grouped(source.end)}"]
    words += [f"page {source.page}"] if source.page is not None else []
    words += [source.heading] if source.heading else []
    words += [f"score {source.score:.2f}, rank {source.rank}"] if source.rank else []
    words += [source.why] if source.why else []
    rows.append(line((" · ".join(words), FAINT)))
    rows += [line((f"also in {short(uri, 100)}", FAINT)) for uri in source.also]
    rows += [line(("! ", WARN), (warning, WARN)) for warning in source.warnings]
    return lines(rows)


def painted_document(source: Source) -> tuple[Content, str]:
    """The document around the passage, and the plain text before the passage (to scroll there)."""
    text = source.text or ""
    first, last = max(0, source.start - AROUND), min(len(text), source.end + AROUND)
    before = ("…\n" if first else "") + text[first : source.start]
    inside = text[source.start : source.end]
    at, to = source.quote_start - source.start, source.quote_end - source.start
    quoted = 0 <= at < to <= len(inside)
    middle = (
        [(inside[:at], "$foreground"), (inside[at:to], f"bold reverse {ACCENT}"), (inside[to:], "$foreground")]
        if quoted
        else [(inside, "$foreground")]
    )
    shown = block(
        (before, FAINT),
        ("▐ ", ACCENT),
        *middle,
        (" ▌", ACCENT),
        (text[source.end : last] + ("\n…" if last < len(text) else ""), FAINT),
    )
    return shown, before


class PassageScreen(Sheet):
    """One source at a time."""

    NAME = "Passage"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n,right", "step(1)", "Next source", id="passage.next"),
        Binding("p,left", "step(-1)", "Previous", id="passage.previous"),
        Binding("y", "copy_quote", "Copy quote", id="passage.copy"),
    ]

    def __init__(
        self, places: Sequence[Place], at: int, find: Callable[[Passage | None, Citation | None], Awaitable[Source]]
    ) -> None:
        super().__init__(id="passage")
        self._places, self._at, self._find = list(places), at, find
        self._source: Source | None = None

    def body(self) -> ComposeResult:
        """Head and text."""
        yield Static(line(("…", FAINT)), id="passage-head", markup=False)
        with VerticalScroll(id="passage-scroll"):
            yield Static(markup=False, id="passage-text")

    def on_mount(self) -> None:
        """Show the first."""
        super().on_mount()
        passage = self._places[self._at][1]
        if passage is not None:  # the words themselves are at hand; the rest of the document is fetched
            self._draw(
                Source(
                    passage.document,
                    passage.title,
                    passage.text,
                    0,
                    len(passage.text),
                    score=passage.score,
                    rank=passage.rank,
                )
            )
        self._look()

    def action_step(self, by: int) -> None:
        """Another source of the same answer."""
        if len(self._places) > 1:
            self._at = (self._at + by) % len(self._places)
            self._look()

    def _look(self) -> None:
        self.run_worker(self._load(), exclusive=True, exit_on_error=False)

    async def _load(self) -> None:
        label, passage, citation = self._places[self._at]
        try:
            source = await self._find(passage, citation)
        except MindChatError as error:
            self.query_one("#passage-head", Static).update(line((error.message, WARN)))
            return
        self.entitle((f"{label} " if label else "", ACCENT), (short(source.title, 70), TITLE))
        self._draw(source)

    def _draw(self, source: Source) -> None:
        self._source = source
        self.query_one("#passage-head", Static).update(painted_head(source))
        shown, before = painted_document(source)
        self.query_one("#passage-text", Static).update(shown)
        self.call_after_refresh(self._bring_into_view, before)

    def _bring_into_view(self, before: str) -> None:
        scroll = self.query_one("#passage-scroll")
        width = max(10, scroll.scrollable_content_region.width)
        row = len(block(before).wrap(width)) if before else 0
        scroll.scroll_to(y=max(0, row - 3), animate=False)

    def action_copy_quote(self) -> None:
        """Copy the quoted words, or the passage."""
        source = self._source
        if source is not None and source.text:
            quote = source.text[source.quote_start : source.quote_end] or source.text[source.start : source.end]
            self.app.copy_text(quote)  # type: ignore[attr-defined]
