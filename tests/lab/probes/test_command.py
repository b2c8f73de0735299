"""`mindchat probe` from flags to files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mindchat import wiring
from mindchat.cli import command_runner

from .conftest import Reader

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Run `mindchat probe …` over the reader."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(wiring, "load_model", lambda config, progress: Reader())

    def call(*arguments: str) -> tuple[int, str, str]:
        code = command_runner.run(["probe", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_tables_for_people_and_files_for_later(command: Command, tmp_path: Path) -> None:
    code, out, err = command("lists", "--n", "2", "--lists", "3,1", "--repeat", "0,1", "--out", "o")
    assert code == 0, err
    assert "# Probe lists: reader" in out
    assert "8 measurements" in out
    assert {"run.json", "measurements.jsonl", "report.json", "report.md", "report.svg"} <= {
        path.name for path in (tmp_path / "o").iterdir()
    }
    assert str(tmp_path) not in (tmp_path / "o" / "run.json").read_text(encoding="utf-8")


def test_json_is_the_report(command: Command, questions: Path) -> None:
    code, out, _ = command(
        "order", "--n", "1", "--documents", "3", "--questions", str(questions), "--out", "o", "--json"
    )
    assert code == 0
    found = json.loads(out)
    assert found["probe"] == "order"
    assert found["options"] == {"n": 1, "seed": 0, "repeats": [0, 1, 2], "role": "user", "documents": 3}
    assert found["data"]["file"] == "questions.jsonl"
    assert found["measurements"] == 18


def test_resume_adds_what_is_missing(command: Command) -> None:
    assert command("lists", "--n", "1", "--lists", "1", "--repeat", "0", "--out", "o")[0] == 0
    code, _, err = command("lists", "--n", "1", "--lists", "1", "--repeat", "0", "--out", "o")
    assert code == 2
    assert "--resume" in err
    code, out, err = command("lists", "--n", "2", "--lists", "1", "--repeat", "0,1", "--out", "o", "--resume")
    assert code == 0
    assert "1 of them there already" in err
    assert "4 measurements" in out


def test_without_a_folder_one_is_made_in_the_users_data(command: Command, home: Path) -> None:
    assert command("noise", "--n", "1", "--repeat", "0")[0] == 0
    (folder,) = (home / "probes").iterdir()
    assert folder.name.startswith("noise-")
    assert (folder / "report.svg").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("orders",), "There are: lists, order, noise, position"),
        (("lists", "--n", "0"), "--n is 0"),
        (("lists", "--repeat", "0,11"), "numbers from 0 to 10"),
        (("lists", "--repeat", "x"), "numbers from 0 to 10"),
        (("lists", "--lists", ""), "numbers from 1 to 100"),
        (("lists", "--role", "system"), "user, assistant"),
        (("lists", "--resume"), "--resume needs --out"),
    ],
)
def test_what_cannot_be_run_is_refused_before_a_model_is_loaded(
    arguments: tuple[str, ...], said: str, command: Command, home: Path
) -> None:
    code, out, err = command(*arguments)
    assert code == 2
    assert said in err
    assert out == ""
    assert not (home / "probes").exists()


def test_progress_tells_what_is_left(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from mindchat.cli import output

    monkeypatch.setattr(output, "is_terminal", lambda stream: True)
    monkeypatch.setattr(output, "PROGRESS_SECONDS", 0.0)
    code, _, err = command("lists", "--n", "2", "--lists", "1", "--repeat", "0,1", "--out", "o")
    assert code == 0
    told = [part.partition("\x1b[K")[2] for part in err.split("\r") if " of 4 · " in part]
    assert [line.split(" ", 1)[0] for line in told] == ["1", "2", "3", "4"]
    assert all(line.rstrip().endswith(" s left") for line in told)
