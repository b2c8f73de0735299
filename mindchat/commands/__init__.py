"""Slash commands, headless: a table of name, usage, help and function over a Session.

Owns: COMMANDS, Command, Reply, nearest. Does not own: screens (a command that needs one returns an `action` for it),
asking questions.
"""

from __future__ import annotations

import logging

from mindchat.commands import conversation, documents, facts, inspecting, settings
from mindchat.commands.reply import Command, Reply
from mindchat.plugins import Table, resolve
from mindchat.text import nearest_name

_OWN = [*conversation.COMMANDS, *documents.COMMANDS, *facts.COMMANDS, *inspecting.COMMANDS, *settings.COMMANDS]
PLUGGED = Table("mindchat.commands", {command.name: "" for command in _OWN})
"""Names of commands; a plug-in's entry point is a function () -> Command."""


def _plugged() -> list[Command]:
    found = []
    for name in PLUGGED:
        if name not in PLUGGED.own:
            try:
                found.append(resolve(PLUGGED[name])())
            except Exception as error:  # noqa: BLE001 - a foreign module may raise anything; the other commands stay
                logging.getLogger(__name__).warning("the command /%s of a plug-in is left out: %s", name, error)
    return [command for command in found if isinstance(command, Command)]


COMMANDS: dict[str, Command] = {
    command.name: command for command in sorted([*_OWN, *_plugged()], key=lambda command: command.name)
}
"""Name without slash → command."""


def nearest(name: str) -> str:
    """The known command closest to a mistyped one, or ""."""
    return nearest_name.nearest(name, COMMANDS)


__all__ = ["COMMANDS", "Command", "Reply", "nearest"]
