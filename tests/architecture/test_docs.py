"""What the documentation promises exists: commands and flags of the README, settings that prose names, events that have
a doc.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from mindchat.cli.app import COMMANDS, app
from mindchat.config import keys

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DESIGN = (ROOT / "mindchat" / "DESIGN.md").read_text(encoding="utf-8")
MEASUREMENTS = (ROOT / "mindchat" / "MEASUREMENTS.md").read_text(encoding="utf-8")


def command_lines(text: str) -> list[str]:
    """Lines of shell blocks that call mindchat, without comments and pipes."""
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = [part.strip() for block in blocks for line in block.splitlines() for part in re.split(r"&&|\|", line)]
    return [re.sub(r"^\S*/", "", line) for line in lines if re.match(r"(\S*/)?mindchat\b", line)]


LINES = command_lines(README)


def test_the_readme_shows_commands() -> None:
    assert len(LINES) > 5


@pytest.mark.parametrize("line", LINES)
def test_every_command_of_the_readme_is_understood(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    command: Any = typer.main.get_command(app)
    context: Any = typer.Context(command, info_name="mindchat")
    while words and hasattr(command, "get_command") and not words[0].startswith("-"):
        inner = command.get_command(context, words[0])
        if inner is None:  # `eval FILE`: a default verb stands in
            inner = command.get_command(context, "run")
            assert inner is not None, f"{words[0]} is no command"
        else:
            words = words[1:]
        command = inner
    if not hasattr(command, "get_command"):
        command.make_parser(typer.Context(command)).parse_args(list(words))


@pytest.mark.parametrize("text", [README, DESIGN, MEASUREMENTS], ids=["README", "DESIGN", "MEASUREMENTS"])
def test_settings_that_prose_names_exist(text: str) -> None:
    sections = {key.split(".")[0] for key in keys()}
    named = {
        match for match in re.findall(r"`([a-z]+\.[a-z_0-9]+)(?: ?=[^`]*)?`", text) if match.split(".")[0] in sections
    }
    files = {"config.toml", "index.md", "memory.db", "paths.py", "config.py"}
    assert sorted(named - set(keys()) - files) == []


def test_every_command_of_the_contract_is_there() -> None:
    wanted = {"chat", "ask", "index", "memory", "sessions", "models", "eval", "trace", "config", "paths", "doctor"}
    assert wanted <= set(COMMANDS)


def test_the_documents_keep_their_lengths() -> None:
    assert len(README.split()) <= 900
    assert len(DESIGN.splitlines()) <= 300


def test_the_map_has_every_room() -> None:
    rooms = {
        path.stem for path in (ROOT / "mindchat").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    listed = {
        name.strip() for row in re.findall(r"^\| ([a-z_ ·]+) \|", DESIGN, re.MULTILINE) for name in row.split("·")
    }
    assert sorted(rooms - {"__init__", "__main__"} - listed) == []


def test_decisions_are_numbered_in_order() -> None:
    numbers = [int(found) for found in re.findall(r"^\* \*\*D(\d+) · ", DESIGN, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_code_cites_only_decisions_that_exist() -> None:
    known = set(re.findall(r"\*\*(D\d+) · ", DESIGN))
    cited = {
        name
        for path in (ROOT / "mindchat").rglob("*.py")
        for line in re.findall(r"DESIGN\.md ([^).]*)", path.read_text(encoding="utf-8"))
        for name in re.findall(r"D\d+", line)
    }
    assert cited
    assert sorted(cited - known) == []
