"""`mindchat` and `mindchat chat`: the screens, or the line mode where there is no screen.

Owns: choosing between the two, and what session they are given. Does not own: either of them (tui room).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from mindchat.cli import options
from mindchat.cli.app import command_app
from mindchat.cli.ask import choose_session, open_session
from mindchat.cli.command_runner import Reported
from mindchat.cli.load_settings import Setup, for_people, load
from mindchat.cli.output import is_terminal
from mindchat.errors import Interrupted
from mindchat.session import Session

app = command_app()


@app.command()
def chat(
    plain: Annotated[
        bool, typer.Option("--plain", help="A line mode without boxes, for pipes, screen readers and TERM=dumb.")
    ] = False,
    model: options.ModelName = None,
    session: options.SessionId = None,
    continue_: options.Continue = False,
    incognito: options.Incognito = False,
    no_memory: Annotated[bool, typer.Option("--no-memory", help="Neither use nor learn facts.")] = False,
    no_mouse: Annotated[bool, typer.Option("--no-mouse", help="Leave the mouse to the terminal.")] = False,
    sets: options.Sets = None,
) -> None:
    """Chat with your documents."""
    setup = for_people(load(sets or [], {"model.name": model, "ui.mouse": False if no_mouse else None}))
    options.check_names(setup)
    wanted = choose_session(setup, session, continue_, incognito)

    def make() -> Session:
        return open_session(setup, wanted, incognito, not no_memory, [])

    screen = (
        not plain and is_terminal(sys.stdout) and sys.stdin.isatty() and sys.stderr.isatty()
    )  # Textual draws on stderr
    code = _screens(make, setup, incognito) if screen else _lines(make)
    if code:
        # A screen that a signal ended says 128 + its number, as shells do; here every interruption is 130.
        raise Reported(Interrupted.exit_code if code > 128 else code)


def _screens(make: Callable[[], Session], setup: Setup, incognito: bool) -> int:
    from mindchat.tui.app import run

    ui = setup.config.ui
    return run(
        make,
        theme=ui.theme,
        mouse=ui.mouse,
        fps=ui.updates_per_second,
        state=None if incognito else setup.paths.state,
        keymap=ui.keys,
    )


def _lines(make: Callable[[], Session]) -> int:
    from mindchat.tui.line_mode import run

    return run(make)
