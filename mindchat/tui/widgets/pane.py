"""The common ground of the four panes.

Owns: when a pane paints (only while it is seen, only when its trace changed) and its empty text. Does not own: what it
paints.
"""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from mindchat.trace import Trace
from mindchat.tui.drawable import FAINT, line

MINIMUM_WIDTH = 24


class Pane(VerticalScroll, can_focus=True):
    """A scrolling view of the newest turn's Trace."""

    NAME = ""
    KEY = ""
    EMPTY = ""
    FOLLOWS = False
    """Whether new content scrolls into view, until the user scrolls away."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, classes="pane")
        self._trace = Trace()
        self._fresh = False
        self._painted_width = 0
        self.border_title = line(self.NAME)
        self.border_subtitle = line((self.KEY, FAINT))

    def compose(self) -> ComposeResult:
        """One body; long texts are cheap in a single Static."""
        yield Static(markup=False, classes="pane-body")

    def on_mount(self) -> None:
        """Follow the tail if this pane grows at its end."""
        if self.FOLLOWS:
            self.anchor()
        self.repaint()

    @property
    def trace(self) -> Trace:
        """What is shown."""
        return self._trace

    def show(self, trace: Trace) -> None:
        """Take a newer trace; painted at once if the pane is seen, else when it appears."""
        if trace is self._trace:
            return
        self._trace, self._fresh = trace, False
        if self.seen:
            self.repaint()

    @property
    def seen(self) -> bool:
        """Whether the pane has any cells on screen."""
        return (
            self.is_mounted
            and self.size.width > 0
            and all(node.display for node in self.ancestors_with_self if hasattr(node, "display"))
        )

    def on_show(self) -> None:
        """Catch up."""
        if not self._fresh:
            self.repaint()

    def on_resize(self) -> None:
        """Bars and sparklines depend on the width."""
        if not self._fresh or self.body_width != self._painted_width:
            self.repaint()

    @property
    def body_width(self) -> int:
        """Cells of one row of content."""
        return max(MINIMUM_WIDTH, self.scrollable_content_region.width - 2)

    def repaint(self) -> None:
        """Draw the trace now."""
        if not self.is_mounted:
            return
        self._fresh, self._painted_width = True, self.body_width
        self.query_one(".pane-body", Static).update(self.painted() or line((self.EMPTY, FAINT)))

    def painted(self) -> Content | None:
        """The content; None if there is nothing to show yet."""
        raise NotImplementedError
