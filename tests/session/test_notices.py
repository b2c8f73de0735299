"""Repairs and damage of stores and index reach whoever asks, whichever way."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mindchat.corpus.search.generations import Store
from mindchat.events import LAST, Notice
from mindchat.paths import find_paths
from mindchat.session import Session
from mindchat.storage.backups import backups
from mindchat.storage.sqlite_file import stamp_of
from mindchat.tui.line_mode import LineChat

from .conftest import Open

QUESTION = "Who directed Metropolis?"


def index_of(collection: str = "user") -> Store:
    return Store(find_paths().index / collection)


def generation() -> Path:
    store = index_of()
    return store.root / str(store.current())


def damage_manifest() -> None:
    (generation() / "manifest.json").write_text("{", encoding="utf-8")


def damage_matrix() -> None:
    file = next(path for path in sorted((generation() / "matrix").iterdir()) if path.stat().st_size)
    file.write_bytes(file.read_bytes()[:-1] + b"\xff\xff")


def damage_graph() -> None:
    file = next(path for path in sorted((generation() / "graph").iterdir()) if path.stat().st_size)
    file.write_bytes(file.read_bytes() + b"x")


def lose_generation() -> None:
    shutil.rmtree(generation())


def lose_pointer() -> None:
    (index_of().root / "CURRENT").unlink()


def damage_database(path: Path) -> None:
    assert backups(path)
    for suffix in (
        "-wal",
        "-shm",
    ):  # the first conversation's store is still open in this process, and a WAL would mend the file
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.write_bytes(b"\xff" * 9000)
    stamp_of(path).unlink(missing_ok=True)


DAMAGE: dict[str, tuple[Callable[[], object], str]] = {
    "manifest": (damage_manifest, "rebuilt from the registry"),
    "matrix": (damage_matrix, "matrix"),
    "graph": (damage_graph, "Names are not followed"),
    "generation gone": (lose_generation, "rebuilt from the registry"),
    "pointer gone": (lose_pointer, "rebuilt from the registry"),
    "pending mark": (lambda: index_of().set_pending(True), "mindchat index sync"),
    "chats.db": (lambda: damage_database(find_paths().chats_db), "chats.db was damaged"),
    "memory.db": (lambda: damage_database(find_paths().memory_db), "memory.db was damaged"),
}


@pytest.fixture
def used(open_session: Open, tmp_path: Path) -> Open:
    """A home with a document and a conversation, properly closed."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "film.md").write_text(
        "# Metropolis\n\nMetropolis was directed by Fritz Lang.\n", encoding="utf-8"
    )
    session = open_session([" Fritz Lang"])
    list(session.rooms.library.add([tmp_path / "docs"]))
    list(session.ask(QUESTION))
    session.close()
    return open_session


def asked(session: Session) -> list[str]:
    events = list(session.ask(QUESTION))
    assert isinstance(events[-1], LAST)
    return [event.text for event in events if isinstance(event, Notice)]


@pytest.mark.parametrize("what", DAMAGE)
def test_a_turn_tells_what_was_repaired_or_found_damaged_once(used: Open, what: str) -> None:
    damage, said = DAMAGE[what]
    damage()
    session = used([" Fritz Lang"] * 9)
    told = asked(session)
    assert any(said in text for text in told), told
    assert not set(told) & set(asked(session))
    session.close()


@pytest.mark.parametrize("what", ["chats.db", "memory.db"])
def test_the_line_mode_tells_it_before_the_first_question(used: Open, what: str) -> None:
    damage, said = DAMAGE[what]
    damage()
    lines: list[str] = []
    session = used([" Fritz Lang"])
    LineChat(session, lambda: "", lines.append, prompt=False).loop()
    assert any(line.startswith("Note: ") and said in line for line in lines)
    session.close()


def test_a_sound_home_has_nothing_to_tell(used: Open) -> None:
    session = used([" Fritz Lang"] * 9)
    assert (asked(session), session.take_notices()) == ([], [])
    session.close()
