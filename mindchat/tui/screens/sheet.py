"""What all screens over the chat share: a framed, scrolling sheet that Esc closes."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Footer

from mindchat.tui.drawable import TITLE, Part, line


class Sheet(ModalScreen[None]):
    """A frame with a title; subclasses yield its inside from body()."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close_sheet", "Close", id="sheet.close")]
    NAME = ""

    def compose(self) -> ComposeResult:
        """Frame, body, keys."""
        with Vertical(classes="sheet"):
            yield from self.body()
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """The title."""
        self.entitle((self.NAME, TITLE))

    def entitle(self, *parts: Part) -> None:
        """Another title."""
        self.query_one(".sheet").border_title = line(*parts)

    def body(self) -> ComposeResult:
        """What stands in the frame."""
        raise NotImplementedError

    def action_close_sheet(self) -> None:
        """Back to the chat."""
        self.dismiss()
