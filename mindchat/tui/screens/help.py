"""Help (F1): the keys of what is focused, all commands from the table, all keys.

Owns: its words come from HELP of the focused widget, COMMANDS and the bindings; nothing is written twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Markdown, Static

from mindchat.commands import COMMANDS
from mindchat.tui import keys
from mindchat.tui.drawable import ACCENT, FAINT, TITLE, line, lines
from mindchat.tui.widgets.transcript import parser

KEY_WORDS = {
    "Copy answer": "copy the newest answer",
    "Reasoning": "open or fold the reasoning",
    "Follow": "follow the newest text",
    "Ask as typed": "ask a rewritten question as it was typed",
    "Answer anyway": "ask the model though your documents do not seem to say",
}


def key_name(key: str) -> str:
    """ctrl+q → Ctrl+Q."""
    return "+".join(part.capitalize() if len(part) > 1 else part.upper() for part in key.split("+"))


def about(focused: DOMNode | None) -> str:
    """What the focused widget says of itself, as Markdown of our own words."""
    nodes = focused.ancestors_with_self if focused is not None else ()
    return "\n".join(text for node in nodes if isinstance(text := getattr(node, "HELP", None), str))


def table(title: str, rows: Iterable[tuple[str, str]]) -> Content:
    """Two columns under a title."""
    rows = list(rows)
    wide = min(30, max((len(left) for left, _ in rows), default=0))
    return lines(
        [line((title, TITLE)), *(line((f"{left:<{wide}}", ACCENT), "  ", right) for left, right in rows), line("")]
    )


def painted_keys(keymap: Mapping[str, str]) -> Content:
    """Every key of chat and app, remapped ones as they are now."""
    bindings = (*keys.CHAT, *keys.APP)
    return table(
        "Keys",
        [(key_name(keymap.get(b.id or "", b.key)), KEY_WORDS.get(b.description, b.description)) for b in bindings],
    )


def painted_commands() -> Content:
    """The command table."""
    return table("Commands", [(command.usage or f"/{command.name}", command.help) for command in COMMANDS.values()])


class HelpScreen(ModalScreen[None]):
    """Help over the chat; Esc closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape,q,question_mark", "dismiss_help", "Close")]

    def __init__(self, focused: Widget | None, keymap: Mapping[str, str]) -> None:
        super().__init__(id="help")
        self._about, self._keymap_shown = focused, keymap

    def compose(self) -> ComposeResult:
        """A framed, scrolling page."""
        with VerticalScroll(classes="sheet") as sheet:
            sheet.border_title = line(("Help", TITLE))
            sheet.border_subtitle = line(("Esc closes", FAINT))
            if text := about(self._about):
                yield Markdown(text, parser_factory=parser, open_links=False)
            yield Static(painted_keys(self._keymap_shown), markup=False)
            yield Static(painted_commands(), markup=False)

    def action_dismiss_help(self) -> None:
        """Back to where we were."""
        self.dismiss()
