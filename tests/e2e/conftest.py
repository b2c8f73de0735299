"""Homes with the small model and a folder of notes, and the command that starts the real program in a terminal."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from msgspec import Struct

if TYPE_CHECKING:
    from .terminal import Terminal

collect_ignore_glob = (
    ["test_*.py"] if sys.platform == "win32" else []
)  # no pseudo-terminals there; the screens have tests of their own

NOTES = {
    "rivers.md": "# Rivers\n\nThe Isar flows through Munich. The Isar rises in the Karwendel mountains in Austria.\n",
    "people.md": "# People\n\nMarta Lindqvist was born in Uppsala in 1931. She founded the Lindqvist Observatory.\n",
    "long.md": (
        "# Lighthouses\n\n"
        + "\n\n".join(
            f"Paragraph {n} tells of lighthouse number {n} and of the keeper who lived there for {n} years."
            for n in range(60)
        )
    ),
}
QUESTION = "Where does the Isar rise?"
TALE = "Tell me a very long story about every lighthouse and its keeper, one after another."
STREAMING = {"MINDCHAT_LAYOUT__COT": "true", "MINDCHAT_ENGINE__REASONING_TOKENS": "2000"}
"""Settings under which TALE is written until somebody stops it: thinking has no end but the model's own and this count.
"""
SHELL = f"""
( while kill -0 {os.getpid()}; do sleep 5; done; kill -KILL 0 ) >/dev/null 2>&1 &
before=$(stty -g)
PROGRAM
code=$?
echo; echo "left with $code"
[ "$before" = "$(stty -g)" ] && echo "settings as before"
sleep 900
"""
"""Runs the program, then says its exit status and whether the terminal's settings are what they were. Nothing outlives
the tests.
"""


class Desk(Struct, frozen=True):
    """A folder to work in, the environment there, and ways to run the program."""

    folder: Path
    environment: Mapping[str, str]

    @property
    def notes(self) -> Path:
        """The folder of notes."""
        return self.folder / "notes"

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """The command line, without a terminal."""
        done = subprocess.run(
            [sys.executable, "-m", "mindchat", *arguments],
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder), **self.environment},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=300,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0 or not check, (
            f"{arguments} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        )
        return done

    def json(self, *arguments: str, check: bool = True) -> Any:
        """The command line's one JSON object."""
        return json.loads(self.run(*arguments, "--json", check=check).stdout)

    @contextmanager
    def open(
        self, *arguments: str, size: tuple[int, int] = (80, 24), tmux: bool | None = None, **extra: str
    ) -> Iterator[Terminal]:
        """The real program in a terminal; `extra` joins its environment."""
        from .terminal import Terminal

        command = shlex.join([sys.executable, "-m", "mindchat", *arguments])
        with Terminal(
            SHELL.replace("PROGRAM", command), {**self.environment, **extra}, self.folder, size, tmux=tmux
        ) as terminal:
            yield terminal


def at_a_desk(root: Path, model: Path) -> Desk:
    """Quick answers by the small model; everything written stays under `root`."""
    environment = {
        "MINDCHAT_HOME": str(root / "home"),
        "MINDCHAT_PATHS__MODELS": str(model.parent),
        "MINDCHAT_MODEL__NAME": model.name,
        "MINDCHAT_ENGINE__POLICY": "once",
        "MINDCHAT_LAYOUT__REPEAT": "0",
        "MINDCHAT_ANSWER__REFUSE": "off",  # the tale that a turn is stopped in stands in no document
        "OMP_NUM_THREADS": "1",
    }
    kept = {
        name: os.environ[name] for name in ("PYTHONPATH", "LANG", "TMPDIR", "OMP_WAIT_POLICY") if name in os.environ
    }
    return Desk(root, {**kept, **environment})


def write_notes(root: Path) -> None:
    """The notes, not yet indexed."""
    (root / "notes").mkdir(parents=True)
    for name, text in NOTES.items():
        (root / "notes" / name).write_text(text, encoding="utf-8")


def program(terminal: Terminal) -> psutil.Process:
    """MindChat's own process under the terminal's shell."""
    shell = psutil.Process(terminal.pid)
    return next(process for process in [shell, *shell.children(recursive=True)] if "mindchat" in process.cmdline())


def share_of_a_core(process: psutil.Process, seconds: float) -> float:
    """Processor time that a process takes in the next `seconds`, per second; other work on the machine does not count."""
    before, started = process.cpu_times(), time.monotonic()
    time.sleep(seconds)
    after, passed = process.cpu_times(), time.monotonic() - started
    return (after.user + after.system - before.user - before.system) / passed


@pytest.fixture(scope="session")
def settled(smollm_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A desk whose notes are indexed, with what is measured once per machine already measured."""
    root = tmp_path_factory.mktemp("settled")
    write_notes(root)
    desk = at_a_desk(root, smollm_folder)
    desk.run("index", "add", str(desk.notes))
    desk.run("ask", "--quiet", "--incognito", QUESTION)
    return root


@pytest.fixture
def desk(settled: Path, smollm_folder: Path, tmp_path: Path) -> Desk:
    """A desk of one's own with the notes indexed."""
    shutil.copytree(settled, tmp_path / "desk")
    return at_a_desk(tmp_path / "desk", smollm_folder)


@pytest.fixture
def bare(smollm_folder: Path, tmp_path: Path) -> Desk:
    """A desk with notes where MindChat was never started."""
    write_notes(tmp_path / "bare")
    return at_a_desk(tmp_path / "bare", smollm_folder)
