"""Outputs of memory name commands of the place where they are read: `/memory …` in a conversation, `mindchat memory …`
here.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from mindchat.cli.command_runner import run, told_here

SLASH = re.compile(r"(?<![\w.~])/(?:memory|remember)\b(?!\.db)")


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """(exit code, stdout, stderr)"""
    code = run(["memory", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def uid(capsys: pytest.CaptureFixture[str]) -> str:
    """A remembered fact, among others."""
    for name in ("Ann", "Bob", "Carl"):
        assert call(capsys, "add", f"{name} Lee | father | Dan Lee")[0] == 0
    found: dict[str, Any] = json.loads(call(capsys, "list", "--json")[1])
    return str(found["facts"][0]["id"])


def test_results_name_the_command_line(uid: str, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [
        call(capsys, *words)[1]
        for words in ([], ["list", "-n", "2"], ["show", uid], ["stats"], ["doctor"], ["forget", uid])
    ]
    assert "  mindchat memory list · why · forget · off" in texts[0]
    assert re.search(r"next: mindchat memory list -n 2 --after \w{7}\n$", texts[1])
    assert texts[-1] == f"forgot {uid}. It will not be saved again from the same source.\nmindchat memory undo\n"
    assert not [text for text in texts if SLASH.search(text)]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["show", "zz"], "mindchat memory list shows ids."),
        (["add", "a | b"], "mindchat memory add SUBJECT | PREDICATE | OBJECT"),
        (["add", "x | quuxing | y"], "mindchat memory add TEXT"),
        (["pin", "zzzzzzz"], "mindchat memory list --status all"),
    ],
)
def test_failures_name_the_command_line(words: list[str], hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, told = call(capsys, *words)
    assert code
    assert hint in told
    assert not SLASH.search(told)
    assert hint in json.loads(call(capsys, *words, "--json")[1])["error"]["hint"]


def test_paths_are_left_alone() -> None:
    kept = "Delete /srv/memory/a.db or /memory.db"
    assert told_here(kept) == kept
    assert (
        told_here("/remember TEXT, or /memory add A | B | C")
        == "mindchat memory add TEXT, or mindchat memory add A | B | C"
    )
