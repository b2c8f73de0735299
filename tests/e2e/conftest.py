"""A home with the small model and an indexed folder of notes, made once; and the command that starts the real program in a terminal."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from .terminal import Terminal

NOTES = {
    "rivers.md": "# Rivers\n\nThe Isar flows through Munich. The Isar rises in the Karwendel mountains in Austria.\n",
    "people.md": "# People\n\nMarta Lindqvist was born in Uppsala in 1931. She founded the Lindqvist Observatory.\n",
    "long.md": "# Long\n\n"
    + "\n\n".join(f"Paragraph {n} tells of lighthouse number {n} and of the keeper who lived there for {n} years." for n in range(60)),
}
QUESTION = "Which mountains does the Isar rise in?"
AFTER = '; code=$?; echo; echo "left with $code"; stty -a | tr " " "\\n" | grep -E -x -c "icanon|isig|echo"; sleep 600'
"""What the shell does after the program: the exit status, and how many lines of a sane terminal's flags it sees."""


class Desk(Struct, frozen=True):
    """A folder to work in, its environment, and ways to run the program there."""

    folder: Path
    environment: Mapping[str, str]

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """The command line, without a terminal."""
        return subprocess.run(
            [sys.executable, "-m", "mindchat", *arguments],
            env={**self._base(), **self.environment},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=check,
            timeout=300,
            stdin=subprocess.DEVNULL,
        )

    def json(self, *arguments: str) -> Any:
        """The command line's one JSON object."""
        return json.loads(self.run(*arguments, "--json").stdout)

    def open(self, *arguments: str, size: tuple[int, int] = (80, 24), tmux: bool | None = None, after: str = AFTER, **extra: str) -> Terminal:
        """The real program in a terminal."""
        command = " ".join([sys.executable, "-m", "mindchat", *arguments]) + after
        return Terminal(command, {**self.environment, **extra}, self.folder, size, tmux=tmux)

    @staticmethod
    def _base() -> dict[str, str]:
        return {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}


@pytest.fixture(scope="session")
def settled(smollm_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose index holds the notes; copied by each test that writes."""
    root = tmp_path_factory.mktemp("e2e")
    notes = root / "notes"
    notes.mkdir()
    for name, text in NOTES.items():
        (notes / name).write_text(text, encoding="utf-8")
    desk = Desk(root, environment(root, smollm_folder))
    desk.run("index", "add", str(notes))
    desk.run("ask", "--quiet", "--incognito", QUESTION)  # what is measured once per machine is measured here, not while a screen is watched
    return root


def environment(root: Path, model: Path) -> dict[str, str]:
    """Quick answers by the small model; everything written stays under `root`."""
    return {
        "MINDCHAT_HOME": str(root / "home"),
        "MINDCHAT_PATHS__MODELS": str(model.parent),
        "MINDCHAT_MODEL__NAME": model.name,
        "MINDCHAT_ENGINE__POLICY": "once",
        "MINDCHAT_LAYOUT__REPEAT": "0",
        "OMP_NUM_THREADS": "1",
    }


@pytest.fixture
def desk(settled: Path, smollm_folder: Path, tmp_path: Path) -> Desk:
    """A desk of one's own with the notes indexed."""
    root = tmp_path / "desk"
    shutil.copytree(settled, root)
    return Desk(root, environment(root, smollm_folder))


@pytest.fixture
def bare(smollm_folder: Path, tmp_path: Path) -> Callable[[], Desk]:
    """A desk where nothing was ever started."""

    def make() -> Desk:
        root = tmp_path / "bare"
        (root / "notes").mkdir(parents=True)
        for name, text in NOTES.items():
            (root / "notes" / name).write_text(text, encoding="utf-8")
        return Desk(root, environment(root, smollm_folder))

    return make
