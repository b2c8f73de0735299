"""`mindchat eval chains`: a run, going on with it, and the end that a broken gate makes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindchat.lab import workbench

from ...cli.board import Run


@pytest.fixture
def wiki(tmp_path: Path) -> Path:
    rows = []
    for n in range(12):
        film, person, town = f"Film Nr{n}", f"Director Nr{n // 2}", f"Town Nr{n // 2}"
        texts = ((film, f"{film} is a film directed by {person}."), (person, f"{person} was born in {town}."))
        context = [{"title": title, "text": text, "pid": title, "is_supporting": True} for title, text in texts]
        evidences = [[film, "director", person], [person, "place of birth", town]]
        question = f"Where was the director of {film} born?"
        rows.append(
            {
                "id": f"w{n}",
                "question": question,
                "answers": [town],
                "type": "x",
                "context": context,
                "meta": {"evidences": evidences},
            }
        )
        rows[-1]["dataset"] = "2wikimultihopqa"
    path = tmp_path / "wiki.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


@pytest.fixture
def tape(tmp_path: Path) -> str:
    path = tmp_path / "tape.toml"
    path.write_text('[[reply]]\ntext = " Director Nr1"\n' * 200, encoding="utf-8")
    return f"scripted:{path}"


def command(wiki: Path, tape: str, out: Path, *more: str) -> list[str]:
    common = ["--policy", "once", "--n", "7", "--seed", "1", "--set", "layout.repeat=0", "--set", "answer.short=free"]
    return ["eval", "chains", str(wiki), "-m", tape, "--out", str(out), *common, *more]


def test_a_run_and_going_on_with_it(run: Run, wiki: Path, tape: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(*command(wiki, tape, out))
    assert done.code == 0, done.err
    assert "# Memory over chains" in done.out
    assert "Hard gates: stale facts served 0" in done.out
    assert (out / "chains.md").read_text().strip() == done.out.strip()
    again = run(*command(wiki, tape, out, "--resume", "--json"))
    assert again.code == 0, again.err
    assert set(again.json["gates"].values()) == {0}
    assert [arm["chains"] for arm in again.json["arms"] if arm["kind"] == "all"] == [7, 7]
    assert len((out / "chains.jsonl").read_bytes().splitlines()) == 14, "nothing was asked again"
    assert "already holds" in run(*command(wiki, tape, out)).err
    assert "other chains" in run(*command(wiki, tape, out, "--resume", "--n", "8")).err


def test_a_gate_that_breaks_is_an_error(
    run: Run, wiki: Path, tape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workbench.Workbench, "holds", lambda self, memory, text: True)
    done = run(*command(wiki, tape, tmp_path / "out"))
    assert done.code != 0
    assert "Not zero: secrets stored" in done.err
    assert (tmp_path / "out" / "chains.md").exists()


def test_what_cannot_be_run_is_refused(run: Run, wiki: Path, tape: str, tmp_path: Path) -> None:
    assert "only" in run(*command(wiki, tape, tmp_path / "a", "--n", "99")).err
    assert "regime" in run(*command(wiki, tape, tmp_path / "b", "--regime", "week")).err
    (tmp_path / "fit.json").write_text("{}")
    assert (
        "cannot be read" in run(*command(wiki, tape, tmp_path / "c", "--calibration", str(tmp_path / "fit.json"))).err
    )
