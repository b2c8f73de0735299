"""The layout as an executable contract, and what must not be loaded for small things."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "transformers", "textual", "whoosh", "bm25s", "numpy.linalg", "sqlite3", "typer", "rich")
LIGHT = {
    "mindchat": HEAVY,
    "mindchat.cli": HEAVY,
    "mindchat.__main__": HEAVY,
    "mindchat.values": HEAVY,
    "mindchat.events": HEAVY,
    "mindchat.trace": HEAVY,
    "mindchat.config": HEAVY,
    "mindchat.session": HEAVY,
    "mindchat.commands": ("torch", "transformers", "textual", "whoosh", "bm25s"),
    "mindchat.engine": ("torch", "transformers", "textual", "whoosh", "bm25s"),
    "mindchat.policies": ("torch", "transformers", "textual", "whoosh", "bm25s"),
    "mindchat.models": ("torch", "transformers", "textual", "whoosh", "bm25s"),
    "mindchat.corpus": ("torch", "transformers", "textual", "whoosh", "bm25s"),
    "mindchat.wiring": ("torch", "transformers", "textual", "whoosh", "bm25s"),
    "mindchat.tui": ("torch", "transformers", "textual", "whoosh", "bm25s"),
    "mindchat.cli.app": ("torch", "transformers", "textual", "whoosh", "bm25s", "sqlite3"),
    "mindchat.cli.ask": ("torch", "transformers", "textual", "whoosh", "bm25s", "sqlite3"),
}
"""Module → what importing it must not load."""


def loaded_by(statement: str) -> set[str]:
    """Names of all modules that a fresh interpreter holds after the statement."""
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT)
    return set(run.stdout.split())


@pytest.mark.parametrize("module", LIGHT)
def test_importing_loads_nothing_heavy(module: str) -> None:
    assert sorted(loaded_by(f"import {module}") & set(LIGHT[module])) == []


def test_version_needs_next_to_nothing() -> None:
    loaded = loaded_by("import mindchat.cli\nassert mindchat.cli.main(['--version']) == 0")
    assert sorted(loaded & {*HEAVY, "msgspec", "logging", "json", "pathlib", "typing"}) == []


def test_every_arrow_points_down() -> None:
    run = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=ROOT,
    )
    assert run.returncode == 0, run.stdout + run.stderr
