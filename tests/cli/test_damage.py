"""Damage is told by the commands that meet it, and by the doctor, who names what helps and fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mindchat.corpus.search.generations import Store
from mindchat.paths import find_paths
from mindchat.storage.backups import backups
from mindchat.storage.sqlite_file import stamp_of

from .board import Run


def index() -> Store:
    return Store(find_paths().index / "user")


def ruin(path: Path, *, backup: bool = True) -> None:
    path.write_bytes(b"\xff" * 9000)
    stamp_of(path).unlink(missing_ok=True)
    for copy in () if backup else backups(path):
        copy.unlink()


def ruin_manifest() -> None:
    (index().root / str(index().current()) / "manifest.json").write_text("{", encoding="utf-8")


def ruin_matrix() -> None:
    file = next(
        path for path in sorted((index().root / str(index().current()) / "matrix").iterdir()) if path.stat().st_size
    )
    file.write_bytes(file.read_bytes() + b"x")


DAMAGE: dict[str, tuple[Callable[[], object], str, str]] = {
    "memory.db": (lambda: ruin(find_paths().memory_db), "memory.db is damaged", "restores memory-"),
    "chats.db": (lambda: ruin(find_paths().chats_db), "chats.db is damaged", "restores chats-"),
    "memory.db, no backup": (lambda: ruin(find_paths().memory_db, backup=False), "memory.db is damaged", "move"),
    "chats.db, no backup": (lambda: ruin(find_paths().chats_db, backup=False), "chats.db is damaged", "move"),
    "manifest": (ruin_manifest, "manifest.json", "mindchat index rebuild"),
    "matrix": (ruin_matrix, "matrix", "mindchat index rebuild"),
    "pending mark": (lambda: index().set_pending(True), "did not finish", "mindchat index sync"),
    "pointer": (lambda: (index().root / "CURRENT").unlink(), "no index although", "mindchat index rebuild"),
    "key": (
        lambda: find_paths().config_file.write_text(
            '[server]\nurl = "http://127.0.0.1:9"\nkey_env = "MINDCHAT_NO_KEY"\n'
        ),
        "MINDCHAT_NO_KEY is empty",
        "put the server's key",
    ),
}


@pytest.fixture
def used(run: Run, home: Path, tmp_path: Path) -> Run:
    """A home with a document, a fact and a conversation."""
    from mindchat.storage.chats import ChatStore

    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "film.md").write_text(
        "# Metropolis\n\nMetropolis was directed by Fritz Lang.\n", encoding="utf-8"
    )
    assert run("index", "add", "docs").code == 0
    assert run("memory", "add", "Metropolis | director | Fritz Lang").code == 0
    chats = ChatStore(find_paths().chats_db)
    chats.finish_turn(chats.begin_turn(chats.create("p", "t"), "Who?"), "Fritz Lang.")
    chats.close()
    return run


@pytest.mark.parametrize("what", DAMAGE)
def test_the_doctor_fails_and_names_what_helps(used: Run, what: str) -> None:
    damage, said, helps = DAMAGE[what]
    damage()
    found = used("doctor")
    assert found.code == 1
    assert any(line.startswith("fail") and said in line for line in found.out.splitlines()), found.out
    assert helps in found.out
    again = used("doctor", "--json").json
    assert "fail" in {finding["verdict"] for finding in again["findings"]}


def test_the_doctor_finds_nothing_wrong_in_a_sound_home(used: Run) -> None:
    found = used("doctor")
    assert "fail" not in found.out
    assert found.code == 0


@pytest.mark.parametrize("what", ["memory.db", "chats.db"])
def test_what_the_doctor_announces_is_what_the_next_start_does(used: Run, what: str) -> None:
    DAMAGE[what][0]()
    assert used("doctor").code == 1
    used("sessions" if what == "chats.db" else "memory", "list")
    assert used("doctor").code == 0


TELLERS = [
    ("chats.db", ["sessions", "list"], "chats.db was damaged"),
    ("memory.db", ["memory", "list"], "memory.db was damaged"),
    ("memory.db", ["index", "status"], "memory.db was damaged"),
    ("memory.db", ["index", "search", "Lang"], "memory.db was damaged"),
    ("manifest", ["index", "search", "Lang"], "rebuilt from the registry"),
    ("manifest", ["index", "sync"], "rebuilt from the registry"),
    ("manifest", ["index", "status"], "The index is damaged"),
    ("matrix", ["index", "search", "Lang"], "matrix"),
    ("pending mark", ["index", "search", "Lang"], "mindchat index sync"),
    ("pointer", ["index", "search", "Lang"], "rebuilt from the registry"),
]


@pytest.mark.parametrize(
    ("what", "arguments", "said"), TELLERS, ids=lambda value: value if isinstance(value, str) else " ".join(value)
)
@pytest.mark.parametrize("json", [False, True], ids=["people", "json"])
def test_a_command_that_repairs_says_so(used: Run, what: str, arguments: list[str], said: str, json: bool) -> None:
    DAMAGE[what][0]()
    result = used(*arguments, *["--json"] * json)
    assert said in result.err
    assert said not in result.out
