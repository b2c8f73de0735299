"""The command line in-process: a scripted session behind a plug board of our own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import mindchat
from mindchat.cli import command_runner
from mindchat.lab import workbench

from .board import Board, Result, Run


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command in-process, in a folder of its own, with nothing on standard input."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Result:
        code = command_runner.run(list(arguments))
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> Board:
    """The plug board, replaced."""
    fake = Board()
    monkeypatch.setitem(sys.modules, "mindchat.wiring", fake)
    monkeypatch.setattr(mindchat, "wiring", fake, raising=False)
    monkeypatch.setattr(workbench, "open_evaluation", fake.open_evaluation)
    return fake
