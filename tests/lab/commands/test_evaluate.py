"""`mindchat eval` over a scripted session: arms from flags, records, reports, continuing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ...cli.board import Board, Run


@pytest.fixture
def questions(tmp_path: Path) -> str:
    rows = [
        {
            "id": f"q{n}",
            "question": f"Who directed film {n}?",
            "answers": ["Fritz Lang"],
            "context": [{"title": "Film", "text": "By Fritz Lang."}],
        }
        for n in range(3)
    ]
    (tmp_path / "questions.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    return "questions.jsonl"


def records(folder: Path, name: str = "questions.jsonl") -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def test_commas_make_arms_and_every_question_is_asked_of_each(
    run: Run, board: Board, questions: str, tmp_path: Path
) -> None:
    result = run(
        "eval",
        questions,
        "--policy",
        "none,once",
        "--repeat",
        "0,1",
        "--set",
        "retrieve.k=3,5",
        "--out",
        "out",
        "--n",
        "2",
        "--seed",
        "1",
    )
    assert result.code == 0, result.err
    found = records(tmp_path / "out")
    assert len(found) == 2 * 2 * 2 * 2
    assert len({record["arm"] for record in found}) == 8
    assert {"run.json", "report.md", "report.json", "report.svg", "questions.jsonl"} <= {
        path.name for path in (tmp_path / "out").iterdir()
    }
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


def test_a_finished_run_is_kept_and_its_table_put_into_a_document(
    run: Run, board: Board, questions: str, tmp_path: Path
) -> None:
    assert run("eval", questions, "--policy", "none,once", "--out", "out").code == 0
    results = tmp_path / "results"
    kept = run("eval", "keep", "out", "first", "--results", str(results))
    assert kept.code == 0, kept.err
    assert "first: " in kept.out
    (results / "study.toml").write_text('[[table]]\nid = "a"\ntitle = "A"\nruns = ["first"]\nfigure = "a.svg"\n')
    assert "| once " in run("eval", "study", "--results", str(results)).out
    document = tmp_path / "doc.md"
    document.write_text("<!-- table: a -->\n<!-- /table -->\n")
    stale = run("eval", "study", str(document), "--check", "--results", str(results))
    assert (stale.code, document.read_text().count("once")) == (1, 0)
    assert "a.svg, doc.md" in stale.err
    written = run("eval", "study", str(document), "--results", str(results))
    assert written.code == 0, written.err
    assert "| once " in document.read_text()
    assert run("eval", "study", str(document), "--check", "--results", str(results)).code == 0
    document.write_text(document.read_text().replace("| once ", "| twice "))
    assert run("eval", "study", str(document), "--check", "--results", str(results)).code == 1


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden"])
def test_a_kept_run_gets_a_plain_name(run: Run, board: Board, questions: str, name: str) -> None:
    assert run("eval", questions, "--policy", "none", "--out", "out").code == 0
    assert run("eval", "keep", "out", name, "--results", "results").code == 2


def test_ray_runs_the_same_command_as_shards(
    run: Run, board: Board, questions: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mindchat.lab.evals import cluster

    seen: list[list[str]] = []

    def on_ray(arguments: list[str], shards: int, **rest: object) -> Iterator[cluster.ShardEnded]:
        seen.append(arguments)
        assert rest["folder"] == str(tmp_path)
        for shard in range(1, shards + 1):
            words = cluster.command(arguments, shard, shards)[4:]
            yield cluster.ShardEnded(shard, shards, run(*words).code, "")

    monkeypatch.setattr(cluster, "run_on_ray", on_ray)
    done = run("eval", questions, "--policy", "none", "--ray", "2", "--out", "out")
    assert done.code == 0, done.err
    assert seen == [[questions, "--policy", "none", "--out", "out"]]
    assert (
        len(records(tmp_path / "out", "questions-1.jsonl")) + len(records(tmp_path / "out", "questions-2.jsonl")) == 3
    )
    assert "shard 2 of 2 ended" in done.err
    assert done.out.endswith("out/report.md\n")

    monkeypatch.setattr(cluster, "run_on_ray", lambda *_, **__: iter([cluster.ShardEnded(1, 1, 3, "no space left")]))
    broken = run("eval", "run", questions, "--policy", "none", "--ray=1", "--out", "out", "--resume")
    assert broken.code == 1
    assert "no space left" in broken.err


def test_progress_says_how_much_is_left_and_failures_are_named() -> None:
    from mindchat.lab.commands.shared import tell
    from mindchat.lab.evals.runner import Asking, Finished, Planned, Scored

    class Lines:
        def __init__(self) -> None:
            self.said: list[tuple[str, str]] = []

        def __getattr__(self, kind: str) -> Callable[[str], None]:
            return lambda text: self.said.append((kind, text))

    lines = Lines()
    tell(Planned(10, 2, ("none", "mind"), ("an oracle",)), lines)  # type: ignore[arg-type]
    tell(Asking("mind", "q1", "Who?"), lines)  # type: ignore[arg-type]
    tell(Scored("mind", "q1", 3, 10, {}, "no end", 2.0, 125.0), lines)  # type: ignore[arg-type]
    tell(Finished(10, 1), lines)  # type: ignore[arg-type]
    assert lines.said == [
        ("note", "2 arms, 10 answers, 2 of them there already"),
        ("warn", "an oracle"),
        ("progress", "mind: Who?"),
        ("warn", "mind q1 failed: no end"),
        ("progress", "3 of 10 · 2.0 s · 2 min left"),
        ("note", "10 answers, 1 failures"),
    ]
