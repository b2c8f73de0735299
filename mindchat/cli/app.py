"""The table of commands and what `mindchat` does without one.

Owns: COMMANDS (name → module and help line), the root options. Does not own: what a command does (its module) or how it
fails (command_runner.py). A module is imported when its command is called, completed or explained: `mindchat paths`
does not pay for `mindchat eval`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup


class Entry(NamedTuple):
    """One line of the table."""

    home: str
    """module:attribute of the command's typer app."""
    help: str


COMMANDS: dict[str, Entry] = {
    "chat": Entry("mindchat.cli.chat:app", "The chat screen (also: mindchat alone); --plain for a line mode."),
    "ask": Entry("mindchat.cli.ask:app", "Answer one question and leave."),
    "index": Entry("mindchat.cli.index:app", "Add, refresh, search and remove documents."),
    "memory": Entry("mindchat.cli.memory:app", "Read and change what MindChat remembers."),
    "sessions": Entry("mindchat.cli.sessions:app", "List, search, export and erase past conversations."),
    "models": Entry("mindchat.cli.models:app", "List, fetch, explain and remove language models."),
    "eval": Entry("mindchat.lab.commands.evaluate:app", "Measure answers over a data set; eval report merges runs."),
    "bench": Entry("mindchat.lab.commands.bench:app", "Measure speed, each time beside a reference."),
    "probe": Entry("mindchat.lab.commands.probe:app", "Measure how a model reads: order, noise, position, repetition."),
    "calibrate": Entry(
        "mindchat.lab.commands.calibrate:app", "Fit thresholds to a model on questions whose answers are known."
    ),
    "trace": Entry("mindchat.cli.trace:app", "Replay a recorded turn."),
    "config": Entry("mindchat.cli.config:app", "Show, check and explain settings."),
    "plugins": Entry("mindchat.cli.plugins:app", "List what installed packages add, and whether it can be used."),
    "paths": Entry("mindchat.cli.doctor:paths_app", "Where everything is kept."),
    "doctor": Entry("mindchat.cli.doctor:doctor_app", "Check this installation and say what to do."),
}
"""In the order in which --help lists them."""


class LazyGroup(TyperGroup):
    """A group whose commands stand in COMMANDS."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All names."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, imported now; None if there is none of this name."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.home.partition(":")
        command = typer.main.get_command(getattr(import_module(module), attribute))
        command.name, command.short_help = cmd_name, entry.help
        return command


def sub_app(about: str, *, bare: bool = False) -> typer.Typer:
    """An app for a group of verbs, with the habits that all of them share; `bare`: without a verb it does something by
    itself.
    """
    return typer.Typer(
        help=about, no_args_is_help=not bare, add_completion=False, rich_markup_mode=None, context_settings=CONTEXT
    )


def command_app() -> typer.Typer:
    """An app for a single command."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=CONTEXT)


CONTEXT = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    cls=LazyGroup,
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=CONTEXT,
    help="Multi-hop answers over your own documents with a local model. Without a command: the chat screen.",
)


def _version(wanted: bool) -> None:
    if wanted:
        from mindchat import __version__

        typer.echo(f"mindchat {__version__}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Multi-hop answers over your own documents with a local model. Without a command: the chat screen."""
    if context.invoked_subcommand is None:
        from mindchat.cli.chat import chat

        chat()
