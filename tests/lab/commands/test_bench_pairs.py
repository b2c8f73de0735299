"""`mindchat bench pairs`: what it loads, where it writes, how memory is read."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mindchat.lab.bench import memory
from mindchat.prompts.core import UserRole
from mindchat.values import Finish, Finished, Prefilled, StreamItem, Token

from ...cli.board import Board, Run

pytestmark = pytest.mark.slow

PASSAGE = {"title": "A", "text": "A is in Rome.", "is_supporting": True, "pid": "a"}
ROW = {
    "id": "q",
    "question": "Where is A?",
    "answers": ["Rome"],
    "type": "bridge",
    "dataset": "hotpotqa",
    "meta": {},
    "context": [PASSAGE],
}


class Fake:
    id = "fake"

    def __init__(self, arithmetic: str) -> None:
        self.backbone = SimpleNamespace(arithmetic=arithmetic, prefill="bf16" if arithmetic == "int8" else "")

    def forget_prefixes(self) -> None:
        return

    def count(self, prompt: Any) -> int:
        return 1

    def stream(self, prompt: Any, **rest: Any) -> Iterator[StreamItem]:
        yield Prefilled(10, 10, 0, 0.5)
        yield Token(0, 1, " Rome", -0.1, 0.2)
        yield Finished(Finish.EOS)


@pytest.fixture
def questions(tmp_path: Path, board: Board, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(board, "load_model", lambda config, progress: Fake(config.model.arithmetic), raising=False)
    monkeypatch.setattr(board, "plug", lambda table, name, kind: UserRole, raising=False)
    file = tmp_path / "questions.jsonl"
    file.write_text(json.dumps(ROW) + "\n", encoding="utf-8")
    return file


def test_pairs_hold_full_precision_against_what_is_named(run: Run, questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    ran = run(
        "bench",
        "pairs",
        str(questions),
        "--out",
        str(out),
        "-m",
        "smollm2-135m",
        "--arithmetic",
        "int8",
        "--no-peak",
        "--json",
    )
    assert ran.code == 0, ran.err
    report = ran.json
    assert report["computes"]["int8"] == {"steps": "int8", "prefill": "bf16"}
    assert report["computes"]["fp32"]["steps"] == "fp32"
    assert report["identical_short_answers"] == 1.0
    assert "peak_resident_mb" not in report
    assert len(out.read_text(encoding="utf-8").splitlines()) == 2
    assert run("bench", "pairs", str(questions), "--out", str(out), "--arithmetic", "int4").code == 2


def test_memory_is_read_in_a_process_of_its_own(
    run: Run, questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []

    def start(command: list[str], **rest: Any) -> Any:
        started.append(command)
        assert b"Rome" in rest["input"]
        return SimpleNamespace(returncode=0, stdout=b"123")

    monkeypatch.setattr(subprocess, "run", start)
    report = run(
        "bench",
        "pairs",
        str(questions),
        "--out",
        str(tmp_path / "p.jsonl"),
        "-m",
        "smollm2-135m",
        "--arithmetic",
        "int8",
        "--json",
    ).json
    assert report["peak_resident_mb"] == {"fp32": 123, "int8": 123}
    assert [next(part for part in command if part.startswith("model.arithmetic=")) for command in started] == [
        "model.arithmetic=fp32",
        "model.arithmetic=int8",
    ]
    monkeypatch.setattr(subprocess, "run", lambda command, **rest: SimpleNamespace(returncode=1, stdout=b""))
    assert (
        run(
            "bench",
            "pairs",
            str(questions),
            "--out",
            str(tmp_path / "p.jsonl"),
            "-m",
            "smollm2-135m",
            "--arithmetic",
            "int8",
        ).code
        == 3
    )


def test_the_peak_grows_with_what_is_touched() -> None:
    before = memory.peak_resident_mb()
    held = bytearray(64 << 20)
    held[::4096] = b"x" * len(held[::4096])
    assert memory.peak_resident_mb() >= max(before, 64)
