"""A terminal for the real program: start it, send keys, read the screen. tmux where it is installed, else a pty with pyte as the terminal.

Owns: processes, keys, the screen as text, waiting. Does not own: what is expected of the screen (the tests).
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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

PATIENCE = 40.0
"""Seconds to wait for anything on a slow, busy machine; nothing is asserted about time here."""
_BYTES = {"Enter": "\r", "Escape": "\x1b", "Tab": "\t", "C-c": "\x03", "C-q": "\x11", "C-r": "\x12", "Up": "\x1b[A", "Down": "\x1b[B"}
_BYTES |= {"F1": "\x1bOP", "F2": "\x1bOQ", "F3": "\x1bOR", "F4": "\x1bOS", "F5": "\x1b[15~"}


class Backend(Protocol):
    """What a terminal can do."""

    pid: int

    def send(self, keys: Sequence[str], literal: bool) -> None:
        """Press keys by tmux's names, or type text as it is."""

    def text(self) -> str:
        """The visible screen, rows joined by line breaks."""

    def close(self) -> None:
        """End the terminal and what still runs in it."""


class Tmux:
    """A private tmux server with one window; the shell that starts the program prints its exit status and terminal settings when it ends."""

    def __init__(self, command: str, environment: Mapping[str, str], folder: Path, size: tuple[int, int]) -> None:
        self._socket = f"mindchat-{uuid.uuid4().hex[:12]}"
        width, height = size
        clean = {"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        self._run("-f", "/dev/null", "new-session", "-d", "-s", "s", "-x", str(width), "-y", str(height), "-c", str(folder), "cat", environment=clean)
        self._run("set-option", "-g", "remain-on-exit", "on")
        inner = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
        self._run("respawn-pane", "-k", "-t", "s", "-c", str(folder), f"exec env {inner} sh -c {shlex.quote(command)}")
        self.pid = int(self._run("display-message", "-p", "-t", "s", "#{pane_pid}").strip())

    def _run(self, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
        return subprocess.run(
            ["tmux", "-L", self._socket, *arguments], check=True, capture_output=True, text=True, timeout=60, env=environment or os.environ
        ).stdout

    def send(self, keys: Sequence[str], literal: bool) -> None:
        self._run("send-keys", "-t", "s", *(["-l"] if literal else []), "--", *keys)

    def text(self) -> str:
        return self._run("capture-pane", "-p", "-t", "s")

    def close(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self._run("kill-server")


class Pty:
    """The same over a pseudo-terminal that pyte interprets."""

    def __init__(self, command: str, environment: Mapping[str, str], folder: Path, size: tuple[int, int]) -> None:
        import pyte

        width, height = size
        self._screen = pyte.Screen(width, height)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            clean = {"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
            os.execvpe("sh", ["sh", "-c", command], {**clean, **environment})
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(self._fd, 65536):
                with self._lock:
                    self._stream.feed(data)

    def send(self, keys: Sequence[str], literal: bool) -> None:
        os.write(self._fd, "".join(key if literal else _BYTES.get(key, key) for key in keys).encode())

    def text(self) -> str:
        with self._lock:
            return "\n".join(line.rstrip() for line in self._screen.display)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(OSError, ChildProcessError):
            os.waitpid(self.pid, 0)
        with contextlib.suppress(OSError):
            os.close(self._fd)


class Terminal:
    """One program in one terminal. Use as a context manager."""

    def __init__(
        self, command: str, environment: Mapping[str, str], folder: Path, size: tuple[int, int] = (80, 24), *, tmux: bool | None = None
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
        """Keys by name: Enter, Escape, C-q, F5, or one character."""
        for key in keys:
            self._backend.send([key], False)

    def type(self, text: str) -> None:
        """Text as it is; no Enter."""
        self._backend.send([text], True)

    def line(self, text: str) -> None:
        """Text and Enter, once the prompt shows the text: a key that overtakes its text would send half of it."""
        self.type(text)
        tail = text[-16:]
        self.wait(lambda screen: tail in screen.replace("\n", ""))
        self.press("Enter")

    def text(self) -> str:
        """The screen."""
        return self._backend.text()

    def wait(self, expected: str | Callable[[str], object], patience: float = PATIENCE) -> str:
        """The screen once it shows `expected` (or satisfies it); fails with the last screen."""
        found = (lambda screen: expected in screen) if isinstance(expected, str) else expected
        end = time.monotonic() + patience
        while True:
            screen = self.text()
            if found(screen):
                return screen
            if time.monotonic() > end:
                raise AssertionError(f"The screen never showed {expected!r}:\n{screen}")
            time.sleep(0.1)
