"""`mindchat bench`: the report's form; speed itself is never a gate here."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from mindchat import bench

from .board import Board, Run


def test_startup_compares_with_a_bare_interpreter(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: started.append(command[1:]))
    report = run("bench", "startup", "-n", "2", "--json").json
    assert report["startup"]["bare interpreter"]["times_bare"] == 1.0
    assert set(report["startup"]["mindchat --version"]) == {"seconds", "times_bare"}
    assert len(started) == 2 * len(report["startup"])


def test_decode_measures_what_a_question_would_use(run: Run, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def measure(model: object, text: str, **rest: Any) -> dict[str, Any]:
        asked.update(rest, model=model, text=text)
        return {"rows": []}

    monkeypatch.setattr(board, "load_model", lambda config, progress: config.model.name, raising=False)
    monkeypatch.setattr(bench, "bench_decode", measure)
    assert run("bench", "decode", "-m", "smollm2-135m", "--lengths", "10,20", "--tokens", "4", "--json").json == {"rows": []}
    assert (asked["model"], asked["lengths"], asked["tokens"], asked["repeats"]) == ("smollm2-135m", [10, 20], 4, 3)
    assert len(asked["text"]) > 1000
    assert run("bench", "decode", "--lengths", "some").code == 2
