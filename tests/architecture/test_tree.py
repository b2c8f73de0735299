"""The tree itself: what stands at its top, nothing of anybody's machine in it, no file too large to read."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOP = {"README.md", "pyproject.toml", "config.toml", "corpora", "tests", "mindchat"}
FOREIGN = re.compile(
    r"/home/(?!user\b|me\b)[a-z]\w*/|/Users/(?!me\b)[A-Za-z]\w*/|/root/|/work" r"/|\.\./sh" r"ared|C:\\Users\\[A-Za-z]"
)
"""Paths of a particular machine; written in pieces so that this file does not match itself."""
TEXT = {".py", ".toml", ".md", ".tcss", ".yaml", ".yml", ".sql", ".txt", ".cfg", ".ini", ".sh", ""}


@cache
def tracked() -> tuple[Path, ...]:
    """Files that git tracks."""
    run = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=False, cwd=ROOT)
    if run.returncode != 0:
        pytest.skip("this tree is no git checkout")
    return tuple(ROOT / name for name in run.stdout.split("\0") if name and (ROOT / name).is_file())


def test_the_top_level_is_closed() -> None:
    top = {path.relative_to(ROOT).parts[0] for path in tracked()}
    assert {name for name in top if not name.startswith(".")} <= TOP


def test_no_path_of_a_particular_machine() -> None:
    found = []
    for path in tracked():
        if path.suffix in TEXT and path != Path(__file__):
            for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
                if FOREIGN.search(line):
                    found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}")
    assert found == []


def test_no_file_is_too_large_to_read() -> None:
    sizes = {
        str(path.relative_to(ROOT)): len(path.read_bytes().splitlines()) for path in tracked() if path.suffix == ".py"
    }
    assert {name: lines for name, lines in sizes.items() if lines > 600} == {}


def test_every_module_says_what_it_owns() -> None:
    silent = []
    for path in tracked():
        if path.suffix == ".py" and path.is_relative_to(ROOT / "mindchat"):
            head = path.read_text(encoding="utf-8")[:1500]
            if not head.startswith('"""'):
                silent.append(str(path.relative_to(ROOT)))
    assert silent == []


def test_the_package_is_typed_and_licensed() -> None:
    names = {str(path.relative_to(ROOT)) for path in tracked()}
    assert {"mindchat/py.typed", "mindchat/LICENSE"} <= names
