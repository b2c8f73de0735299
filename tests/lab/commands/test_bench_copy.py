"""`mindchat bench cache --only-copy`: the second copy's measurement alone, over the demo's passages."""

from __future__ import annotations

from typing import Any

import pytest

from mindchat.lab.bench import repetition
from mindchat.prompts.core import AssistantRole, UserRole

from ...cli.board import Board, Run


def test_only_the_second_copy(run: Run, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(model: object, composer: Any, hop: Any, repeats: int) -> dict[str, Any]:
        return {"model": model, "role": type(composer).__name__, "documents": len(hop.passages), "repeats": repeats}

    monkeypatch.setattr(board, "load_model", lambda config, progress: config.model.name, raising=False)
    roles = {"assistant": AssistantRole, "user": UserRole}
    monkeypatch.setattr(board, "plug", lambda table, name, setting: roles[name], raising=False)
    monkeypatch.setattr(repetition, "bench_repetition", measure)
    asked = (
        "bench",
        "cache",
        "--only-copy",
        "-m",
        "smollm2-135m",
        "--repeats",
        "3",
        "--set",
        "layout.role=assistant",
        "--json",
    )
    report = run(*asked).json
    assert report == {
        "cache": {"a second copy": {"model": "smollm2-135m", "role": "AssistantRole", "documents": 6, "repeats": 3}}
    }
