"""A terminal for the real program: start it, send keys, read the screen. tmux where it is installed, else a pty with
pyte as the terminal.

Owns: processes, keys, the screen as text, the modes that a program may leave on, waiting. Does not own: what is
expected of the screen (tests).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import shlex
import shutil
import signal
import struct
import subprocess
import termios
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

PATIENCE = 180.0
"""Seconds to wait for anything on a slow, busy machine; nothing is asserted about time here."""
KEYS = {
    "Enter": "\r",
    "Escape": "\x1b",
    "Tab": "\t",
    "Up": "\x1b[A",
    "Down": "\x1b[B",
    "F4": "\x1bOS",
    "F5": "\x1b[15~",
    "F6": "\x1b[17~",
}
KEYS |= {f"C-{letter}": chr(ord(letter) - 96) for letter in "abcdefghijklmnopqrstuvwxyz"}
"""tmux's names of keys → what a terminal sends."""
MODES = {
    1049: "alternate screen",
    1000: "mouse",
    1002: "mouse drag",
    1003: "mouse motion",
    1006: "mouse reports",
    2004: "bracketed paste",
}
"""Private modes that a program must switch off when it ends (the cursor, mode 25, on)."""
BASE = {"TERM": "xterm-256color", "LANG": "C.UTF-8"}


class Backend(Protocol):
    """What a terminal can do."""

    pid: int

    def press(self, key: str) -> None:
        """A key by tmux's name, or one character."""

    def type(self, text: str) -> None:
        """Text as it is."""

    def text(self) -> str:
        """The visible screen, rows joined by line breaks."""

    def left_on(self) -> set[str]:
        """Modes that differ from a fresh terminal's."""

    def close(self) -> None:
        """End the terminal and what still runs in it."""


class Tmux:
    """A private tmux server with one window."""

    def __init__(self, command: str, environment: Mapping[str, str], folder: Path, size: tuple[int, int]) -> None:
        self._socket = f"mindchat-{uuid.uuid4().hex[:12]}"
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **BASE}
        width, height = size
        # The first command only keeps the server alive until the option stands that keeps a window whose program has
        # ended.
        self._run(
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-s",
            "s",
            "-x",
            str(width),
            "-y",
            str(height),
            "-c",
            str(folder),
            "cat",
        )
        self._run("set-option", "-g", "remain-on-exit", "on")
        words = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
        self._run("respawn-pane", "-k", "-t", "s", "-c", str(folder), f"exec env {words} sh -c {shlex.quote(command)}")
        self.pid = int(self._ask("#{pane_pid}"))

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._socket, *arguments],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=self._environment,
        )
        assert done.returncode == 0, f"tmux {arguments[0]}: {done.stderr}"
        return done.stdout

    def _ask(self, form: str) -> str:
        return self._run("display-message", "-p", "-t", "s", form).strip()

    def press(self, key: str) -> None:
        self._run("send-keys", "-t", "s", "--", key)

    def type(self, text: str) -> None:
        self._run("send-keys", "-t", "s", "-l", "--", text)

    def text(self) -> str:
        return self._run("capture-pane", "-p", "-t", "s")

    def left_on(self) -> set[str]:
        alternate, mouse, cursor = self._ask("#{alternate_on} #{mouse_any_flag} #{cursor_flag}").split()
        return {
            name
            for name, on in (
                ("alternate screen", alternate == "1"),
                ("mouse", mouse == "1"),
                ("cursor hidden", cursor == "0"),
            )
            if on
        }

    def close(self) -> None:
        with contextlib.suppress(AssertionError):  # the server ended by itself
            self._run("kill-server")


class Pty:
    """The same over a pseudo-terminal that pyte interprets."""

    def __init__(self, command: str, environment: Mapping[str, str], folder: Path, size: tuple[int, int]) -> None:
        import pyte

        width, height = size
        self._screen = pyte.Screen(width, height)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        self._fd, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        name = shlex.quote(os.ttyname(side))
        # The leader of a new session gets the first terminal that it opens as its controlling one; forking in Python is
        # not safe beside threads.
        self._process = subprocess.Popen(
            ["sh", "-c", f"exec <{name} >{name} 2>&1; {command}"],
            env={"PATH": os.environ["PATH"], "HOME": str(folder), **BASE, **environment},
            cwd=folder,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
        )
        self._keeps_it_open = side
        self.pid = self._process.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(self._fd, 65536):
                with self._lock:
                    self._stream.feed(data)

    def press(self, key: str) -> None:
        self.type(KEYS.get(key, key))

    def type(self, text: str) -> None:
        data = text.encode()
        while data:
            data = data[os.write(self._fd, data) :]

    def text(self) -> str:
        with self._lock:
            return "\n".join(line.rstrip() for line in self._screen.display)

    def left_on(self) -> set[str]:
        with self._lock:
            modes = {mode >> 5 for mode in self._screen.mode if mode >= 32}  # pyte keeps private modes shifted
        return {name for mode, name in MODES.items() if mode in modes} | (set() if 25 in modes else {"cursor hidden"})

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._keeps_it_open)
        self._reader.join(5)
        os.close(self._fd)


class Terminal:
    """One program in one terminal. Use as a context manager."""

    def __init__(
        self,
        command: str,
        environment: Mapping[str, str],
        folder: Path,
        size: tuple[int, int],
        *,
        tmux: bool | None = None,
    ) -> None:
        kind = Tmux if (shutil.which("tmux") is not None if tmux is None else tmux) else Pty
        self._backend: Backend = kind(command, environment, folder, size)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self._backend.close()

    @property
    def pid(self) -> int:
        """Of the shell that runs the program."""
        return self._backend.pid

    def press(self, *keys: str) -> None:
        """Keys by name (Enter, Escape, C-q, F5), or single characters."""
        for key in keys:
            self._backend.press(key)

    def type(self, text: str) -> None:
        """Text as it is; no Enter."""
        self._backend.type(text)

    def line(self, text: str) -> None:
        """Text, and Enter once the screen shows the text: a key that overtakes it would send half of it."""
        self.type(text)
        tail = squeezed(text)[-12:]
        self.wait(lambda screen: tail in squeezed(screen))
        self.press("Enter")

    def text(self) -> str:
        """The screen."""
        return self._backend.text()

    def left_on(self) -> set[str]:
        """Modes that a program switched and did not switch back."""
        return self._backend.left_on()

    def wait(self, expected: str | Callable[[str], object], patience: float = PATIENCE) -> str:
        """The screen once it shows `expected` (or satisfies it); fails with the last screen."""
        found = (lambda screen: expected in screen) if isinstance(expected, str) else expected
        end = time.monotonic() + patience
        while not found(screen := self.text()):
            if time.monotonic() > end:
                raise AssertionError(f"The screen never showed {expected!r}:\n{screen}")
            time.sleep(0.1)
        return screen


def squeezed(text: str) -> str:
    """Letters and digits only: the same words compare equal however they are wrapped and framed."""
    return "".join(character for character in text if character.isalnum())
