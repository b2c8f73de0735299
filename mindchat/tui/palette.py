"""Entries of the command palette (Ctrl+P).

Owns: the entries made of screen actions and of the slash commands. A command with arguments is put into the prompt, one
without runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from textual.app import SystemCommand

from mindchat.commands import COMMANDS

if TYPE_CHECKING:
    from mindchat.tui.app import MindChatApp

SCREENS = (
    ("Uncertainty pane", "Each word by how unsure the model was", "pane('uncertainty')"),
    ("Hops pane", "Sub-queries, entities, passages", "pane('hops')"),
    ("Context pane", "Exactly what was sent", "pane('context')"),
    ("Memory pane", "Facts recalled and learned", "pane('memory')"),
    ("Sessions", "Search, resume, rename, export, delete", "sessions"),
    ("New session", "Start afresh with the same settings", "new"),
    ("Copy answer", "The newest answer", "copy_answer"),
    ("Reasoning", "Open or fold all reasoning", "reasoning"),
)


def entries(app: MindChatApp) -> Iterator[SystemCommand]:
    """All entries."""
    from mindchat.tui.screens.chat import ChatScreen

    chat = app.screen_stack[0]
    if not isinstance(chat, ChatScreen):
        return
    for title, text, action in SCREENS:
        yield SystemCommand(title, text, partial(chat.run_action, action))
    for command in COMMANDS.values():
        needs = len(re.sub(r"\[[^\]]*\]", "", command.usage).split()) > 1
        yield SystemCommand(f"/{command.name}", command.help, partial(chat.offer, command.name, needs))
