"""The application: theme, keys, the bridge, and leaving cleanly.

Owns: run(), MindChatApp. Does not own: the chat itself (screens.chat), the session (injected).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.notifications import SeverityLevel
from textual.screen import Screen

from mindchat.session import Session
from mindchat.text.clean import clean
from mindchat.tui import keys
from mindchat.tui.bridge import Bridge, SessionView
from mindchat.tui.history import PromptHistory

log = logging.getLogger(__name__)
LEAVE_SECONDS = 1.0
"""Longest wait for the engine thread when the screen has closed; it is a daemon, so it never outlives the process."""


class MindChatApp(App[int]):
    """The chat over an injected session."""

    CSS_PATH = "mindchat.tcss"
    TITLE = "MindChat"
    BINDINGS: ClassVar[list[BindingType]] = [*keys.APP]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide"), (120, "-very-wide")]  # noqa: RUF012 - an instance variable to Textual
    VERTICAL_BREAKPOINTS = [(0, "-low"), (20, "-middle"), (34, "-high")]  # noqa: RUF012 - an instance variable to Textual
    ENABLE_COMMAND_PALETTE = True

    def __init__(
        self,
        make_session: Callable[[], Session],
        *,
        theme: str = "textual-dark",
        fps: float = 10.0,
        state: Path | None = None,
        keymap: Mapping[str, str] | None = None,
        load: bool = True,
    ) -> None:
        super().__init__()
        self._wanted_theme, self._remapped = theme, dict(keymap or {})
        self.state = state
        self.prompts = PromptHistory(state)
        self.bridge = Bridge(make_session, self._deliver, fps=fps, load=load)
        self.exit_status = 0

    def _deliver(self, message: object) -> None:
        from textual.message import Message

        from mindchat.tui.screens.chat import ChatScreen

        assert isinstance(message, Message)
        for screen in self.screen_stack if self.is_running else ():
            if isinstance(screen, ChatScreen):
                screen.post_message(message)

    def get_default_screen(self) -> Screen[Any]:
        """The chat is at the bottom of the stack."""
        from mindchat.tui.screens.chat import ChatScreen

        return ChatScreen(self.bridge, self.prompts)

    def on_mount(self) -> None:
        """Theme, keys, signals."""
        self.set_keymap(self._remapped)
        if self._wanted_theme in self.available_themes:
            self.theme = self._wanted_theme
        else:
            self.notify(f"There is no theme {self._wanted_theme}; see the palette (Ctrl+P).", severity="warning")
        loop = asyncio.get_running_loop()
        for name in ("SIGTERM", "SIGHUP"):
            with contextlib.suppress(
                NotImplementedError, ValueError, RuntimeError, AttributeError
            ):  # Windows, or not the main thread
                loop.add_signal_handler(getattr(signal, name), self._told_to_end)

    def on_ready(self) -> None:
        """The first frame is drawn: now the session may be made."""
        self.bridge.start()

    def _told_to_end(self) -> None:
        self.exit_status = 143
        self.leave()

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """A toast; never parsed as markup, whoever asks."""
        super().notify(clean(message), title=clean(title), severity=severity, timeout=timeout, markup=False)

    # ── actions ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def leave(self) -> None:
        """Stop what runs and close."""
        from mindchat.tui.screens.chat import ChatScreen

        for screen in self.screen_stack:
            if isinstance(screen, ChatScreen):
                screen.keep_draft()
        self.bridge.stop()
        self.exit(self.exit_status)

    async def action_quit(self) -> None:
        """Ctrl+Q."""
        self.leave()

    def action_interrupt(self) -> None:
        """Ctrl+C: copy a selection, else stop what runs, else say how to quit; it never throws away a draft."""
        from mindchat.tui.screens.chat import ChatScreen

        selected = self.screen.get_selected_text()
        focused = self.focused
        if not selected and focused is not None:
            selected = getattr(focused, "selected_text", None)
        if selected:
            self.copy_text(selected)
            self.screen.clear_selection()
            return
        chat = self.screen_stack[0]
        if isinstance(chat, ChatScreen) and chat.busy:
            chat.action_cancel()
        else:
            self.notify("Ctrl+Q quits.")

    def copy_text(self, text: str) -> None:
        """Copy, and say which way."""
        from mindchat.tui.clipboard import copy
        from mindchat.tui.screens.chat import ChatScreen

        chat = self.screen_stack[0]
        keeps = isinstance(chat, ChatScreen) and chat.keeps
        try:
            said = copy(clean(text), osc52=self.copy_to_clipboard, folder=self.state if keeps else None)
        except OSError as error:
            self.notify(f"Could not copy: {error}", severity="error")
        else:
            self.notify(said)

    def action_help(self) -> None:
        """F1."""
        from mindchat.tui.screens.help import HelpScreen

        if isinstance(self.screen, HelpScreen):
            self.pop_screen()
        else:
            self.push_screen(HelpScreen(self.focused, self._remapped))

    @property
    def view(self) -> SessionView:
        """The session as the chat shows it."""
        from mindchat.tui.screens.chat import ChatScreen

        chat = self.screen_stack[0]
        return chat.view if isinstance(chat, ChatScreen) else SessionView()

    def open_sheet(self, screen: Screen[Any], done: Callable[[Any], None] | None = None) -> None:
        """Show a screen over the chat, unless the same one is open."""
        if all((type(other), other.id) != (type(screen), screen.id) for other in self.screen_stack):
            self.push_screen(screen, done)

    def action_log(self) -> None:
        """Ctrl+L."""
        from mindchat.tui.screens.log import log_sheet

        self.open_sheet(log_sheet(self.view))

    def action_debug(self) -> None:
        """F12."""
        from mindchat.tui.screens.log import debug_sheet

        self.open_sheet(debug_sheet(self, self.view))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The palette: Textual's own entries that make sense here, then ours."""
        kept = ("theme", "quit", "maximize", "minimize", "screenshot")
        yield from (
            command for command in super().get_system_commands(screen) if command.title.lower().startswith(kept)
        )
        from mindchat.tui.palette import entries

        yield from entries(self)


def run(
    make_session: Callable[[], Session],
    *,
    theme: str = "textual-dark",
    mouse: bool = True,
    fps: float = 10.0,
    state: Path | None = None,
    keymap: Mapping[str, str] | None = None,
) -> int:
    """Show the chat until the user leaves; the exit code (errors.py).

    `make_session` runs in the engine thread after the first frame. `state`: folder of prompt history, draft and
    last-copy.txt; None: nothing is written. `keymap`: binding id → keys.
    """
    app = MindChatApp(make_session, theme=theme, fps=fps, state=state, keymap=keymap)
    try:
        status = app.run(mouse=mouse)
    finally:
        app.bridge.stop()
        app.bridge.join(LEAVE_SECONDS)
    return status if status is not None else app.return_code or 0
