"""`mindchat eval` over a scripted session: arms from flags, records, reports, continuing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .board import Board, Run


@pytest.fixture
def questions(tmp_path: Path) -> str:
    rows = [
        {"id": f"q{n}", "question": f"Who directed film {n}?", "answers": ["Fritz Lang"], "context": [{"title": "Film", "text": "By Fritz Lang."}]}
        for n in range(3)
    ]
    (tmp_path / "questions.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    return "questions.jsonl"


def records(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "questions.jsonl").read_text().splitlines()]


def test_commas_make_arms_and_every_question_is_asked_of_each(run: Run, board: Board, questions: str, tmp_path: Path) -> None:
    result = run("eval", questions, "--policy", "none,once", "--repeat", "0,1", "--set", "retrieve.k=3,5", "--out", "out", "--n", "2", "--seed", "1")
    assert result.code == 0, result.err
    found = records(tmp_path / "out")
    assert len(found) == 2 * 2 * 2 * 2
    assert len({record["arm"] for record in found}) == 8
    assert {"run.json", "report.md", "report.json", "report.svg", "questions.jsonl"} <= {path.name for path in (tmp_path / "out").iterdir()}
    assert result.out == "out/report.md\n"
    assert "16 answers, 0 failures" in result.err
    assert {opened["config"].engine.seed for opened in board.opened} == {1}


def test_a_finished_folder_is_only_continued_when_asked(run: Run, board: Board, questions: str, tmp_path: Path) -> None:
    arguments = ["eval", questions, "--policy", "none", "--out", "out"]
    assert run(*arguments, "--n", "2").code == 0
    assert run(*arguments, "--n", "2").code == 2
    asked = len(board.opened)
    assert run(*arguments, "--n", "2", "--resume").code == 0
    assert len(board.opened) == asked
    assert len(records(tmp_path / "out")) == 2


def test_report_merges_runs(run: Run, board: Board, questions: str) -> None:
    run("eval", questions, "--policy", "none", "--out", "a")
    run("eval", questions, "--policy", "once", "--out", "b")
    merged = run("eval", "report", "a", "b")
    assert merged.code == 0, merged.err
    assert merged.out.startswith("# Evaluation report")
    as_json = run("eval", "report", "a", "b", "--json", "--out", "both")
    assert {arm["arm"] for arm in as_json.json["datasets"][0]["arms"]} == {"none", "once"}


@pytest.mark.parametrize(
    "more",
    [
        ["--policy", "nonne"],
        ["--repeat", "99"],
        ["--set", "retrieve"],
        ["--set", "retrieve.q=1"],
        ["--context", "some"],
        ["--shard", "5"],
        ["--shard", "3/2"],
    ],
)
def test_wrong_usage_is_two_before_anything_is_asked(run: Run, board: Board, questions: str, more: list[str]) -> None:
    assert run("eval", questions, "--out", "out", *more).code == 2
    assert board.opened == []
