"""Copying: a local clipboard tool, OSC 52 through ssh and tmux, or a file; and it says which.

Owns: copy(). Does not own: what is copied. OSC 52 gives no receipt, so it is used only where no local tool can reach
the user's clipboard.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from mindchat.child_process import find_program
from mindchat.paths import private
from mindchat.storage.atomic import write_atomic

TOOLS = (
    ("pbcopy", ("pbcopy",), "darwin"),
    ("clip", ("clip.exe",), "win32"),
    ("wl-copy", ("wl-copy",), "WAYLAND_DISPLAY"),
    ("xclip", ("xclip", "-selection", "clipboard"), "DISPLAY"),
    ("xsel", ("xsel", "--clipboard", "--input"), "DISPLAY"),
)
"""(name, command, platform or the environment variable that must be set)."""
OSC52_LIMIT = 74_994
"""Longest text (bytes before base64) that common terminals take."""


def local_tool(
    environ: Mapping[str, str], platform: str = sys.platform, which: Callable[[str], str | None] = shutil.which
) -> tuple[str, ...] | None:
    """The command of this desktop's clipboard, never one of the current folder; None in a remote shell, where it would
    reach the wrong machine.
    """
    if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        return None
    for _, command, needs in TOOLS:
        if (platform == needs or environ.get(needs)) and (program := find_program(command[0], which)):
            return (program, *command[1:])
    return None


def copy(
    text: str, *, osc52: Callable[[str], None] | None, folder: Path | None, environ: Mapping[str, str] | None = None
) -> str:
    """Copy a text; the sentence that says where it went. `folder` is the state folder; None: nothing may be kept, so no
    file is written.

    Raises OSError if not even the file can be written.
    """
    environ = os.environ if environ is None else environ
    command = local_tool(environ)
    if command is not None:
        try:
            tool = os.path.basename(command[0])
            encoding = "utf-16-le" if tool.lower() == "clip.exe" else "utf-8"
            subprocess.run(
                command,
                input=text.encode(encoding),
                check=True,
                timeout=2,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            return f"Copied {len(text)} characters with {tool}."
        except (OSError, subprocess.SubprocessError):
            pass  # the next way is tried, and named
    remote = environ.get("SSH_CONNECTION") or environ.get("SSH_TTY") or environ.get("TMUX")
    if osc52 is not None and remote and len(text.encode()) <= OSC52_LIMIT:
        osc52(text)
        return f"Sent {len(text)} characters to the terminal's clipboard (OSC 52)."
    if (
        folder is None
    ):  # the working folder is no place for it: it may be shared, and what is incognito would stay there
        return (
            "No clipboard tool was found, and nothing of this chat is kept in a file; mark the text with the terminal's"
            " own selection."
        )
    target = private(folder) / "last-copy.txt"
    write_atomic(target, text)
    return f"No clipboard tool was found; the text is in {target}."
