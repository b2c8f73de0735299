"""Slash commands, headless: a table of name, usage, help and function over a Session.

Owns: COMMANDS, Command, Reply, nearest. Does not own: screens (a command that needs one returns an `action` for it), asking questions.
"""

from __future__ import annotations

from mindchat.commands import conversation, documents, facts, inspecting, settings
from mindchat.commands.reply import Command, Reply
from mindchat.text import nearest_name

COMMANDS: dict[str, Command] = {
    command.name: command
    for command in sorted(
        [*conversation.COMMANDS, *documents.COMMANDS, *facts.COMMANDS, *inspecting.COMMANDS, *settings.COMMANDS], key=lambda command: command.name
    )
}
"""Name without slash → command."""


def nearest(name: str) -> str:
    """The known command closest to a mistyped one, or ""."""
    return nearest_name.nearest(name, COMMANDS)


__all__ = ["COMMANDS", "Command", "Reply", "nearest"]
