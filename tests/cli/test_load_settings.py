"""`config`, `paths`, `doctor`, help, completion: what somebody meets before the first question."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindchat.cli.app import COMMANDS
from mindchat.config import Config, keys

from .board import Board, Run


def test_show_names_every_value_and_its_winner(
    run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "config.toml").write_text("[retrieve]\nk = 4\n")
    (tmp_path / "mindchat.toml").write_text("[rind]\nalpha = 0.5\n")
    monkeypatch.setenv("MINDCHAT_ENGINE__SEED", "3")
    shown = run("config", "show", "--json", "--set", "gate.entropy=0.7").json
    assert list(shown) == list(keys())
    assert shown["retrieve.k"] == {"value": 4, "source": str(home / "config.toml"), "line": 2}
    assert shown["rind.alpha"] == {"value": 0.5, "source": str(tmp_path / "mindchat.toml"), "line": 2}
    assert shown["engine.seed"]["source"] == "MINDCHAT_ENGINE__SEED"
    assert shown["gate.entropy"]["source"] == "--set"
    assert shown["layout.as"] == {"value": "same", "source": "default", "line": 0}
    changed = run("config", "show", "--changed").out.splitlines()
    assert [line.split()[0] for line in changed] == ["engine.seed", "rind.alpha", "retrieve.k"]


def test_validate_lists_every_mistake(run: Run, home: Path) -> None:
    assert run("config", "validate").code == 0
    (home / "config.toml").write_text('[engine]\ntemperatur = 1\n[retrieve]\nkk = 1\nk = "x"\n')
    result = run("config", "validate")
    assert result.code == 2
    assert [line.split(":")[1] for line in result.out.splitlines()] == ["2", "4", "5"]
    assert len(run("config", "validate", "--json").json["problems"]) == 3
    assert run("ask", "Who?").code == 2


def test_validate_checks_a_file_that_is_not_in_force(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text("[rind]\nalpah = 1\n")
    result = run("config", "validate", "other.toml")
    assert result.code == 2
    assert "Did you mean rind.alpha?" in result.out


def test_path_and_schema(run: Run, home: Path, tmp_path: Path) -> None:
    assert run("config", "path").out == f"{home / 'config.toml'}\n"
    (tmp_path / "mindchat.toml").write_text("")
    assert run("config", "path", "--json").json == {
        "user": str(home / "config.toml"),
        "exists": False,
        "project": str(tmp_path / "mindchat.toml"),
    }
    schema = json.loads(run("config", "schema").out)
    assert "$defs" in schema


def test_trust_is_given_once_and_can_be_taken_back(run: Run, board: Board, tmp_path: Path) -> None:
    (tmp_path / "mindchat.toml").write_text('[server]\nurl = "http://127.0.0.1:9"\n[retrieve]\nk = 6\n')
    first = run("ask", "Who?")
    assert "server.url: ignored until you trust the file" in first.err
    assert run("config", "trust", "--json").json["trusted"] is True
    second = run("ask", "Who?")
    assert "trust" not in second.err
    assert run("config", "trust", "--revoke").code == 0
    run("ask", "Who?")
    assert [opened["config"].server.url for opened in board.opened] == ["", "http://127.0.0.1:9", ""]
    assert {opened["config"].retrieve.k for opened in board.opened} == {6}


def test_trust_is_for_one_file_as_it_was(run: Run, board: Board, tmp_path: Path) -> None:
    body = '[server]\nurl = "http://127.0.0.1:9"\n'
    (tmp_path / "inner").mkdir()
    for folder in (tmp_path, tmp_path / "inner"):
        (folder / "mindchat.toml").write_text(body)
    run("config", "trust")
    from mindchat.cli.load_settings import trusted_hash
    from mindchat.paths import find_paths

    assert trusted_hash(find_paths(), tmp_path)
    assert not trusted_hash(find_paths(), tmp_path / "inner")
    (tmp_path / "mindchat.toml").write_text(body + '[model]\nname = "scripted:evil.toml"\n')
    changed = run("ask", "Who?")
    assert "has changed since you trusted it" in changed.err
    assert (board.opened[0]["config"].server.url, board.opened[0]["config"].model.name) == ("", Config().model.name)


def test_trust_of_an_earlier_version_counts_no_longer(run: Run, board: Board, home: Path, tmp_path: Path) -> None:
    (tmp_path / "mindchat.toml").write_text('[server]\nurl = "http://127.0.0.1:9"\n')
    from mindchat.paths import find_paths

    file = find_paths().state / "trusted.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps([str(tmp_path.resolve())]))
    assert "ignored until you trust" in run("ask", "Who?").err
    assert run("config", "trust").code == 0
    assert "ignored" not in run("ask", "Who?").err


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), PermissionError(13, "Permission denied")])
def test_a_trust_file_that_cannot_be_written_is_said(
    run: Run, board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: OSError
) -> None:
    (tmp_path / "mindchat.toml").write_text("[retrieve]\nk = 3\n")

    def refuse(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr("mindchat.cli.load_settings.write_atomic", refuse)
    refused = run("config", "trust")
    assert refused.code == 1
    assert "cannot be written" in refused.err


def test_paths(run: Run, home: Path) -> None:
    places = run("paths", "--json").json
    assert places["memory"] == str(home / "memory.db")
    assert set(places) == {"config", "data", "memory", "chats", "index", "models", "state", "log", "cache"}
    assert run("paths").out.splitlines()[0].split() == ["config", str(home / "config.toml")]


def test_doctor_reports_and_fails_on_what_is_broken(run: Run, board: Board, home: Path) -> None:
    fine = run("doctor", "--json")
    assert fine.code == 0
    assert {finding["verdict"] for finding in fine.json["findings"]} <= {"ok", "info", "warn"}
    (home / "config.toml").write_text("[retrieve]\nkk = 1\n")
    broken = run("doctor")
    assert broken.code == 1
    assert "retrieve.kk: unknown setting" in broken.out


def test_help_lists_every_command_and_each_explains_itself(run: Run) -> None:
    listed = run("--help").out
    for name, entry in COMMANDS.items():
        assert name in listed
        assert entry.help.split(" ")[0] in listed
        assert run(name, "--help").code == 0
    assert "\x1b" not in listed


@pytest.mark.parametrize("name", ["index", "memory", "sessions", "models", "config"])
def test_every_verb_explains_itself(run: Run, name: str) -> None:
    import typer

    from mindchat.cli.app import app

    group = typer.main.get_command(app).get_command(None, name)  # type: ignore[attr-defined]
    for verb in group.commands:
        result = run(name, verb, "--help")
        assert result.code == 0
        assert len(result.out.splitlines()) > 3


@pytest.mark.parametrize("arguments", [["--version"], ["-V"], ["--version", "ask"]])
def test_version(run: Run, arguments: list[str]) -> None:
    from mindchat import __version__

    assert run(*arguments).out == f"mindchat {__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_completion_scripts(run: Run, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    result = run("--show-completion", shell)
    assert result.code == 0
    assert "mindchat" in result.out
    assert "_MINDCHAT_COMPLETE" in result.out


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("mindchat mod", ["models"]),
        ("mindchat ask --policy rind", ["rind-fixed", "rind-entropy"]),
        ("mindchat ask --set retrieve.k", ["retrieve.k=", "retrieve.keep="]),
        ("mindchat models pull smollm2-1", ["smollm2-135m", "smollm2-1.7b"]),
        ("mindchat config tr", ["trust"]),
    ],
)
def test_completion_offers(run: Run, monkeypatch: pytest.MonkeyPatch, typed: str, offered: list[str]) -> None:
    words = typed.split()
    monkeypatch.setenv("_MINDCHAT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    assert run().out.split() == offered
