"""Every bad answer of a server at the whole program: `mindchat ask` in a process of its own, at connect and at the
question. Outside the default run.

Prints one line: how many ended as a sentence with a hint, how many as an answer, how many unexpectedly, and the
slowest.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

import mindchat

from .fake_server import Served
from .hostile_server import MODES, answer

pytestmark = pytest.mark.soak
Writer = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]
SECONDS = 20.0
"""--timeout of each question."""
COMMAND = (
    sys.executable,
    "-m",
    "mindchat",
    "ask",
    "Where is Paris?",
    "--json",
    "--model",
    "served",
    "--timeout",
    f"{SECONDS:g}",
    "--policy",
    "none",
)


def ask(url: str, folder: Path) -> tuple[dict[str, Any], float]:
    """What the program prints, and its seconds. No failure but one that it reports."""
    own = {
        "PYTHONPATH": str(Path(mindchat.__file__).parents[1]),
        "MINDCHAT_HOME": str(folder / "home"),
        "MINDCHAT_SERVER__URL": url,
        "MINDCHAT_SERVER__TIMEOUT": "1",
        "NO_PROXY": "127.0.0.1",
    }
    began = time.monotonic()
    found = subprocess.run(
        COMMAND, capture_output=True, cwd=folder, env={**os.environ, **own}, timeout=120, check=False
    )
    return dict(json.loads(found.stdout.decode() or "{}")), time.monotonic() - began


def after_connect(mode: Writer) -> Writer:
    """Good answers until the question is asked."""

    def write(handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        if "Where is Paris?" in json.dumps(body):
            return mode(handler, body)
        return handler.replay(body) if body else handler.about()  # type: ignore[attr-defined,no-any-return]

    return write


def kind_of(told: dict[str, Any]) -> str:
    """A sentence with a hint that asks for no report, an answer, or neither."""
    error = told.get("error")
    if error is not None:
        return "sentence" if error["hint"] and "report them" not in error["hint"] else "unexpected"
    return "answer" if "answer" in told else "unexpected"


@pytest.mark.parametrize("when", ["connect", "question"])
def test_every_mode_ends_as_a_sentence_or_an_answer(
    when: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[tuple[str, str, float]] = []
    for at, (name, mode) in enumerate(MODES.items()):
        served, folder = Served(), tmp_path / str(at)
        folder.mkdir()
        served.fake.hostile = answer(mode) if when == "connect" else after_connect(answer(mode))
        try:
            told, seconds = ask(served.fake.url, folder)
        finally:
            served.close()
        rows.append((name, kind_of(told), seconds))
    kinds = {kind: sum(row[1] == kind for row in rows) for kind in ("sentence", "answer", "unexpected")}
    slowest = max(rows, key=lambda row: row[2])
    with capsys.disabled():
        sys.stdout.write(f"\n{when}: n={len(rows)} {kinds} slowest {slowest[0]} {slowest[2]:.1f} s\n")
    assert [row for row in rows if row[1] == "unexpected"] == []
    assert slowest[2] < SECONDS + 5.0
