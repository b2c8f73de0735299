"""Help (F1): the keys of what is focused, all commands from the table, all keys.

Owns: its words come from HELP of the focused widget, COMMANDS and the bindings; nothing is written twice.
"""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.dom import DOMNode
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Markdown, Static

from mindchat.commands import COMMANDS
from mindchat.tui import keys
from mindchat.tui.ink import FAINT, TITLE, line
from mindchat.tui.widgets.transcript import parser

KEY_WORDS = {"Copy answer": "copy the newest answer", "Reasoning": "open or fold the reasoning", "Follow": "follow the newest text"}


def key_name(key: str) -> str:
    """ctrl+q → Ctrl+Q."""
    return "+".join(part.capitalize() if len(part) > 1 else part.upper() for part in key.split("+"))


def help_text(focused: DOMNode | None, remapped: dict[str, str]) -> str:
    """The page as Markdown of our own words."""
    about = [node.HELP for node in (focused.ancestors_with_self if focused is not None else ()) if isinstance(getattr(node, "HELP", None), str)]
    rows = [f"| {key_name(remapped.get(b.id or '', b.key))} | {KEY_WORDS.get(b.description, b.description)} |" for b in (*keys.CHAT, *keys.APP)]
    commands = [f"| `{command.usage or '/' + command.name}` | {command.help} |".replace("/|", "/\\|") for command in COMMANDS.values()]
    escape = [row if row.count("|") == 3 else _escaped(row) for row in commands]
    return "\n".join(
        [
            *(text for text in about if text),
            "# Keys",
            "| key | does |",
            "|---|---|",
            *rows,
            "",
            "# Commands",
            "| command | does |",
            "|---|---|",
            *escape,
        ]
    )


def _escaped(row: str) -> str:
    inner = row.strip("| ").rsplit(" | ", 1)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in inner) + " |"


class HelpScreen(ModalScreen[None]):
    """Help over the chat; Esc closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape,q,question_mark", "dismiss_help", "Close")]

    def __init__(self, focused: Widget | None) -> None:
        super().__init__(id="help")
        self._about = focused

    def compose(self) -> ComposeResult:
        """A framed, scrolling page."""
        with VerticalScroll(classes="sheet") as sheet:
            sheet.border_title = line(("Help", TITLE))
            sheet.border_subtitle = line(("Esc closes", FAINT))
            yield Markdown(
                help_text(self._about, self.app._keymap if isinstance(self.app._keymap, dict) else {}), parser_factory=parser, open_links=False
            )
            yield Static("", markup=False)

    def action_dismiss_help(self) -> None:
        """Back to where we were."""
        self.dismiss()
