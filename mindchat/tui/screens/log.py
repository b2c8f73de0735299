"""The log screen (Ctrl+L): the end of the log file; and the debug screen (F12): what one needs to report a problem.

Owns: reading the file's tail, collecting the debug facts. Does not own: logging.
"""

from __future__ import annotations

import os
import platform
import re
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from textual import __version__ as textual_version
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from mindchat import __version__
from mindchat.tui.bridge import SessionView
from mindchat.tui.drawable import FAINT, MUTED, block, line, lines
from mindchat.tui.screens.sheet import Sheet

TAIL = 64_000
"""Bytes of the log's end that are shown."""


def tail(path: Path) -> str:
    """The end of a text file, from a line's beginning; a missing file has none."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            cut = max(0, file.tell() - TAIL)
            file.seek(cut)
            text = file.read().decode("utf-8", errors="replace")
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    return text.partition("\n")[2] if cut else text


class TextSheet(Sheet):
    """A text to read and copy."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "copy_all", "Copy all", id="sheet.copy")]

    def __init__(self, name: str, text: str, content: Content | None = None, note: str = "") -> None:
        super().__init__(id=name.lower())
        self.NAME, self._plain, self._content, self._note = name, text, content, note

    def body(self) -> ComposeResult:
        """The text, at its end."""
        with VerticalScroll(classes="sheet-scroll"):
            yield Static(self._content if self._content is not None else block(self._plain), markup=False)

    def on_mount(self) -> None:
        """A log is read from its end."""
        super().on_mount()
        self.query_one(".sheet").border_subtitle = line((self._note, FAINT))
        scroll = self.query_one(".sheet-scroll")
        scroll.focus()
        if self._content is None:
            scroll.scroll_end(animate=False)

    def action_copy_all(self) -> None:
        """Copy everything."""
        self.app.copy_text(self._plain)  # type: ignore[attr-defined]


def log_sheet(view: SessionView) -> TextSheet:
    """The log."""
    text = tail(Path(view.log_file)) if view.log_file else ""
    return TextSheet("Log", text or "The log is empty.", note=view.log_file)


def debug_facts(app: App[int], view: SessionView, environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Versions, terminal, session; no text of the user's."""
    return [
        ("mindchat", __version__),
        ("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        ("textual", textual_version),
        (
            "terminal",
            (
                f"{app.size.width}×{app.size.height}, TERM {environ.get('TERM', '–')}, colours"
                f" {app.console.color_system}, theme {app.theme}"
            ),
        ),
        ("remote", "ssh" if environ.get("SSH_CONNECTION") else "tmux" if environ.get("TMUX") else "no"),
        ("torch", "loaded" if "torch" in sys.modules else "not loaded"),
        ("threads", _threads()),
        ("model", f"{view.model}, {'ready' if view.model_ready else 'not ready'}, window {view.window}"),
        ("method", f"policy {view.policy}, filter {view.filter}, repeat {view.repeat}, memory {view.memory}"),
        ("library", ", ".join(f"{key} {value}" for key, value in view.library.items() if isinstance(value, int | str))),
        ("settings", view.home),
        ("log", view.log_file),
    ]


def debug_sheet(app: App[int], view: SessionView) -> TextSheet:
    """The debug facts."""
    facts = debug_facts(app, view, os.environ)
    return TextSheet(
        "Debug",
        "\n".join(f"{name}: {value}" for name, value in facts),
        lines([line((f"{name:<10}", MUTED), value) for name, value in facts]),
        "y copies",
    )


def _threads() -> str:
    """How many run, and of what kinds: numbered names are one kind."""
    running = [thread.name for thread in threading.enumerate()]
    kinds = sorted({re.sub(r"[-_ ]?\d.*$", "", name) for name in running})
    return f"{len(running)}: {', '.join(kinds)}"
