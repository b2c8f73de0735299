"""The real program in processes of its own, for the soak: started, bounded, measured, killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

import mindchat

COMMAND = (sys.executable, "-P", "-m", "mindchat")
SECONDS = 120.0
"""No command may take longer, whatever it is given."""
TAPE = '[[reply]]\ntext = " Paris"\n[[reply]]\n'


class Ended(Struct, frozen=True):
    """How a command ended."""

    code: int
    out: str
    err: str
    seconds: float
    peak_mb: float

    @property
    def told(self) -> dict[str, Any]:
        """What --json printed."""
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def faults(self) -> list[str]:
        """What no command may show: a traceback, a wish for a report, an escape sequence, the end of a limit."""
        both = self.out + self.err
        signs = {"Traceback (most": "traceback", "report them": "asks for a report", "\x1b": "escape sequence"}
        found = [name for sign, name in signs.items() if sign in both]
        return [*found, *(["ended by a signal"] if self.code < 0 or self.code > 128 else [])]


def start(home: Path, cwd: Path, *arguments: str, **pipes: Any) -> subprocess.Popen[bytes]:
    """A command in a process and a process group of its own."""
    own = {"PYTHONPATH": str(Path(mindchat.__file__).parents[1]), "MINDCHAT_HOME": str(home), "NO_COLOR": "1"}
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **pipes}
    return subprocess.Popen(
        [*COMMAND, *arguments], cwd=cwd, env={**os.environ, **own}, start_new_session=True, **options
    )


def run(home: Path, cwd: Path, *arguments: str, seconds: float = SECONDS) -> Ended:
    """A command from beginning to end; one that takes too long is killed, with its children."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = start(home, cwd, *arguments, stdout=out, stderr=err)
        usage, code = _wait(process, seconds)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
    return Ended(code, *texts, time.monotonic() - began, usage)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> tuple[float, int]:
    """(peak in MB, exit code)."""
    end = time.monotonic() + seconds
    while True:
        found, status, usage = os.wait4(process.pid, os.WNOHANG)
        if found:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3), process.returncode
        if time.monotonic() > end:
            kill(process)
            raise AssertionError(f"still running after {seconds:g} s: {process.args}")
        time.sleep(0.02)


def kill(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to the process and what it started."""
    os.killpg(process.pid, 9)
    process.wait()


def together(home: Path, cwd: Path, commands: Sequence[Sequence[str]]) -> list[int]:
    """Exit codes of commands that run at the same time."""
    processes = [start(home, cwd, *arguments) for arguments in commands]
    return [process.wait(timeout=SECONDS) for process in processes]


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Text files by name."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
