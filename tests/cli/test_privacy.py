"""What commands leave on the disk and on the two streams: folders for their owner only, and no credential."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mindchat.paths import find_paths

from .board import Run

SECRET = "hunter2"
ADDRESS = f"http://ada:{SECRET}@127.0.0.1:9/v1?token={SECRET}"


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home that does not exist yet, two folders deep, under the usual umask."""
    home = tmp_path / "outer" / "mine"
    monkeypatch.setenv("MINDCHAT_HOME", str(home))
    before = os.umask(0o022)
    yield home
    os.umask(before)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no permission bits")
@pytest.mark.parametrize(
    "arguments",
    [
        ["models", "pull", "smollm2-135m"],
        ["models", "pull", "there-is/none"],
        ["memory", "add", "Metropolis | director | Fritz Lang"],
        ["sessions", "list"],
        ["index", "add", "note.md"],
        ["config", "trust", "."],
        ["doctor"],
        ["ask", "--quiet", "Who?", "-m", "scripted:tape.toml"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_a_home_made_by_any_command_is_for_its_owner_only(
    run: Run, fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setenv(
        "PIP_INDEX_URL", "http://127.0.0.1:9/simple"
    )  # nothing is fetched: the folders are made before that
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    (tmp_path / "note.md").write_text("Fritz Lang directed Metropolis.", encoding="utf-8")
    (tmp_path / "mindchat.toml").write_text("[retrieve]\nk = 3\n", encoding="utf-8")
    run(*arguments)
    made = [
        folder
        for folder in (fresh.parent, fresh, *(path for path in fresh.rglob("*") if path.is_dir()))
        if folder.exists()
    ]
    private_ones = {folder for folder in made if folder in (fresh.parent, fresh) or folder.parent == fresh}
    assert {folder.name: oct(stat.S_IMODE(folder.stat().st_mode)) for folder in private_ones} == {
        folder.name: "0o700" for folder in private_ones
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ["config", "show"],
        ["config", "show", "--json"],
        ["config", "show", "server.url"],
        ["doctor"],
        ["doctor", "--json"],
        ["index", "status", "--json"],
        ["ask", "Who directed Metropolis?"],
        ["ask", "Who directed Metropolis?", "--json"],
        ["ask", "Who directed Metropolis?", "--events"],
        ["chat", "--plain"],
        ["evaluate", "hotpotqa", "-n", "1"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("key", ["server.url"])
def test_no_command_shows_or_stores_the_credentials_of_an_address(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], key: str
) -> None:
    section, _, name = key.partition(".")
    find_paths().config_file.write_text(f'[{section}]\n{name} = "{ADDRESS}"\n', encoding="utf-8")
    monkeypatch.setattr(
        "sys.stdin", iter_lines("Who directed Metropolis?\n", "/settings url\n", "/set server.timeout=3\n", "/quit\n")
    )
    result = run(*arguments)
    assert SECRET not in result.out + result.err
    holding = [file.name for file in home.rglob("*") if file.is_file() and SECRET.encode() in file.read_bytes()]
    assert holding == ["config.toml"]


@pytest.mark.parametrize(
    "body",
    [
        f'[server]\nurl = ["{ADDRESS}"]\n',
        f'[server]\nurll = "{ADDRESS}"\n',
        f'[sever]\nurl = "{ADDRESS}"\n',
        f'server = "{ADDRESS}"\n',
    ],
)
def test_a_setting_that_is_wrong_is_named_without_its_credentials(run: Run, home: Path, body: str) -> None:
    find_paths().config_file.write_text(body, encoding="utf-8")
    for arguments in (["config", "validate"], ["config", "show"], ["doctor"], ["sessions", "list"], ["ask", "Who?"]):
        result = run(*arguments)
        assert SECRET not in result.out + result.err


def iter_lines(*lines: str) -> object:
    """Standard input with these lines."""
    import io

    return io.StringIO("".join(lines))
