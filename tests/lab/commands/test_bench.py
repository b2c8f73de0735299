"""`mindchat bench`: the report's form; speed itself is never a gate here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mindchat.events import PromptBuilt, to_json
from mindchat.lab import bench
from mindchat.lab.commands.bench import LOADS
from mindchat.values import Message, Prompt, Text

from ...cli.board import Board, Run


def test_startup_compares_with_a_bare_interpreter(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: started.append(command[2:]))
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
    monkeypatch.delenv("MINDCHAT_LLAMA_GGUF", raising=False)
    report = run("bench", "decode", "-m", "smollm2-135m", "--lengths", "10,20", "--tokens", "4", "--json").json
    assert report["rows"] == []
    assert "--gguf" in report["llama_cpp"]["absent"]
    assert (asked["model"], asked["lengths"], asked["tokens"], asked["repeats"]) == ("smollm2-135m", [10, 20], 4, 3)
    assert len(asked["text"]) > 1000
    assert run("bench", "decode", "--lengths", "some").code == 2


def test_decode_runs_llama_on_the_file_that_is_named(
    run: Run, board: Board, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "llama_cpp.py").write_text(
        '__version__ = "9.9"\nclass Llama:\n    def __init__(self, file, **rest):\n        assert rest["n_ctx"] > 24\n',
        encoding="utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    file = tmp_path / "small.gguf"
    file.write_bytes(b"GGUF")
    monkeypatch.setattr(board, "load_model", lambda config, progress: SimpleNamespace(id="smollm2-135m"), raising=False)
    monkeypatch.setattr(bench, "bench_decode", lambda model, text, *, llama, **rest: {"rows": [llama.version]})
    report = run(
        "bench", "decode", "-m", "smollm2-135m", "--lengths", "10,20", "--tokens", "4", "--gguf", str(file), "--json"
    ).json
    assert report == {"rows": ["9.9"], "llama_cpp": {"version": "9.9", "file": "small.gguf", "same_weights": None}}
    assert run("bench", "decode", "-m", "smollm2-135m", "--gguf", str(tmp_path / "none.gguf")).code == 2


def test_arithmetic_always_begins_from_full_precision(run: Run, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "load_model", lambda config, progress: config.model.arithmetic, raising=False)
    monkeypatch.setattr(bench, "bench_arithmetic", lambda model, text, tokens: {"model": model, "tokens": tokens})
    sets = ("--set", "model.arithmetic=int8", "-m", "smollm2-135m")
    assert run("bench", "arithmetic", *sets, "--tokens", "64", "--json").json == {"model": "fp32", "tokens": 64}


def test_cache_takes_a_recording(run: Run, board: Board, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    prompt = Prompt((Message("user", (Text("Where is Rome?", "question"),)),))
    turns = tmp_path / "turns.jsonl"
    turns.write_text(to_json(PromptBuilt(prompt, "", (), 5, 512, "reasoning")) + "\n", encoding="utf-8")
    monkeypatch.setattr(board, "load_model", lambda config, progress: "loaded", raising=False)
    monkeypatch.setattr(
        bench, "bench_cache", lambda model, prompts, tokens, fixed: {"model": model, "same": list(prompts) == [prompt]}
    )
    report = run("bench", "cache", "-m", "smollm2-135m", "--turns", str(turns), "--json").json
    assert report == {"cache": {"recorded": {"model": "loaded", "same": True}}}
    assert run("bench", "cache", "--turns", str(tmp_path / "none.jsonl")).code == 2


def test_startup_can_load_the_model_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: started.append(command[2:]))
    report = run(
        "bench", "startup", "-n", "1", "--load", "-m", "smollm2-135m", "--set", "model.arithmetic=int8", "--json"
    ).json
    assert set(LOADS) <= set(report["startup"])
    assert started[-1][-2:] == ["model.arithmetic=int8", "model.name=smollm2-135m"]
    done: list[str] = []

    class Reader:
        def __init__(self, name: str) -> None:
            done.append(name)

        def warm(self, prompt: Prompt) -> int:
            done.append("read")
            return 3

    monkeypatch.setattr("mindchat.wiring.load_model", lambda config, progress: Reader(config.model.name))
    monkeypatch.setattr(os, "_exit", lambda code: done.append(f"left with {code}"))
    for command, expected in zip(
        started[-2:], (["smollm2-135m", "left with 0"], ["smollm2-135m", "read", "left with 0"]), strict=True
    ):
        done.clear()
        monkeypatch.setattr("sys.argv", ["-c", *command[2:]])
        exec(compile(command[1], "load", "exec"), {})
        assert done == expected
