"""A home of an earlier version opens, answers, lists and forgets; what must be built anew is built by itself and told."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import mindchat

ARCHIVES = sorted(Path(__file__).parent.glob("*.tar.gz"))
PROJECT = Path("/tmp/mindchat-home")
"""Where the home was made: memory keeps it as the facts' project. It need not exist any more."""
TAPE = '[[reply]]\ntext = " Fritz Lang"\n[[reply]]\ntext = " Fritz Lang"\n[[reply]]\ntext = " Fritz Lang"\n'


@pytest.fixture(params=ARCHIVES, ids=lambda path: path.name)
def earlier(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The home, unpacked; its documents are not where they were."""
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    (home,) = {path.parent for path in tmp_path.rglob("memory.db")}
    return home


def run(home: Path, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "MINDCHAT_HOME": str(home), "PYTHONPATH": str(Path(mindchat.__file__).parents[1])}
    folder = folder or home.parent / "elsewhere"
    folder.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-m", "mindchat", *arguments],
        env=environ,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_old_index_is_built_anew_before_it_is_searched_and_that_is_told(earlier: Path) -> None:
    first = run(earlier, "index", "search", "Lodz", "--json")
    assert first.returncode == 0, first.stderr
    assert any("Łódź" in hit["text"] for hit in json.loads(first.stdout)["hits"])
    assert "rebuilt from the registry" in first.stderr
    again = run(earlier, "index", "search", "Łódź", "--json")
    assert json.loads(again.stdout)["hits"]
    assert "rebuilt" not in again.stderr


def test_conversations_facts_and_settings_are_there(earlier: Path) -> None:
    sessions = json.loads(run(earlier, "sessions", "list", "--json").stdout)
    assert sessions
    listed = run(earlier, "memory", "list", "--status", "all", "--json", folder=PROJECT)
    assert listed.returncode == 0, listed.stderr
    assert {"Fritz Lang", "Vienna", "Poland"} <= set(re.findall(r"Fritz Lang|Vienna|Poland", listed.stdout))
    assert run(earlier, "config", "validate").returncode == 0
    assert run(earlier, "memory", "doctor").returncode == 0


def test_a_question_is_answered_from_it(earlier: Path, tmp_path: Path) -> None:
    tape = tmp_path / "tape.toml"
    tape.write_text(TAPE, encoding="utf-8")
    done = run(earlier, "ask", "Who directed Metropolis?", "-m", f"scripted:{tape}", "--json", "--no-memory")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["short"], bool(answer["citations"])) == ("Fritz Lang", True)


def test_what_is_forgotten_is_gone(earlier: Path) -> None:
    facts = json.loads(run(earlier, "memory", "list", "--json", folder=PROJECT).stdout)
    rows = facts["facts"] if isinstance(facts, dict) else facts
    (uid,) = [row["id"] for row in rows if row["object"] == "Vienna"]
    done = run(earlier, "memory", "forget", uid, "--yes", folder=PROJECT)
    assert done.returncode == 0, done.stderr
    left = run(earlier, "memory", "list", "--json", folder=PROJECT).stdout
    assert ("Vienna" in left, "Poland" in left) == (False, True)
