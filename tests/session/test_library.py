from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mindchat import library, wiring
from mindchat.config import Config, load_config
from mindchat.errors import ConfigError, UsageError
from mindchat.events import PassagesFound
from mindchat.paths import find_paths
from mindchat.ports import KnowsNames
from mindchat.session import Session
from mindchat.text.language import language
from mindchat.values import Absent, Filters, Query

Open = Callable[..., Session]


def test_the_demo_is_searched_until_the_user_indexes_something(home: Path, tmp_path: Path) -> None:
    found = wiring.open_library(Config(), find_paths())
    assert found.status()["collection"] == "demo"
    hits = found.search(Query("Charles Armand René de La Trémoille"), 3)
    assert any("Trémoille" in hit.title for hit in hits)
    (tmp_path / "note.md").write_text("# Rivers\n\nThe Naab flows into the Danube.\n", encoding="utf-8")
    list(found.add([tmp_path / "note.md"]))
    assert found.status()["collection"] == "user"
    assert [hit.title for hit in found.search(Query("Naab"), 3)] == ["Rivers"]
    assert found.search(Query("Trémoille"), 3) == []
    list(found.remove(tmp_path / "note.md"))
    assert found.status()["collection"] == "demo"


def test_the_demos_answers_are_no_documents(home: Path) -> None:
    found = wiring.open_library(Config(), find_paths())
    found.status()
    hits = found.search(Query("inference bridge_comparison supporting"), 10)
    assert all("questions.jsonl" not in hit.document for hit in hits)


def test_the_demo_of_another_installation_is_replaced_not_doubled(
    home: Path, tmp_path: Path, monkeypatch: object
) -> None:
    import shutil

    from _pytest.monkeypatch import MonkeyPatch

    before = wiring.open_library(Config(), find_paths()).status()["documents"]
    copied = tmp_path / "elsewhere"
    shutil.copytree(library.packaged("corpora"), copied / "corpora")
    with MonkeyPatch.context() as patch:
        patch.setattr(library, "packaged", lambda *parts: copied.joinpath(*parts))
        again = wiring.open_library(Config(), find_paths())
        assert again.status()["documents"] == before
        assert all(str(copied) in hit.document for hit in again.search(Query("Trémoille"), 5))


def test_within_narrows_the_search_to_paths(home: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "note.txt").write_text(f"The river of {name} is the Naab.", encoding="utf-8")
    everywhere = wiring.open_library(Config(), find_paths())
    list(everywhere.add([tmp_path]))
    session = wiring.open_session(Config(), find_paths(), within=[tmp_path / "b"])
    assert {Path(hit.document).parent.name for hit in everywhere.search(Query("Naab"), 5)} == {"a", "b"}
    assert {Path(hit.document).parent.name for hit in session.rooms.library.search(Query("Naab"), 5)} == {"b"}  # type: ignore[attr-defined]


def test_filters_of_a_question_narrow_its_search_and_are_no_words_of_it(open_session: Open, tmp_path: Path) -> None:
    (tmp_path / "film.md").write_text("# Metropolis\n\nIt was directed by Fritz Lang.", encoding="utf-8")
    (tmp_path / "film.txt").write_text("Metropolis was directed by somebody else.", encoding="utf-8")
    session = open_session(["Fritz Lang", "Fritz Lang", "Fritz Lang"])
    list(session.rooms.library.add([tmp_path]))
    for line, names in (
        ("type:md", {"film.md"}),
        ("path:*.txt", {"film.txt"}),
        ("before:2000", set()),
        ("", {"film.md", "film.txt"}),
    ):
        events = list(session.ask(f"Who directed Metropolis? {line}".strip()))
        (found,) = [event for event in events if isinstance(event, PassagesFound)]
        assert {Path(p.document).name for p in found.passages} == names
        assert session.turns[-1].question == "Who directed Metropolis?"
    with pytest.raises(UsageError, match="empty"):
        list(session.ask("type:md"))


def test_each_collection_keeps_to_itself(home: Path, tmp_path: Path) -> None:
    for name in ("thesis", "garden"):
        (tmp_path / f"{name}.txt").write_text(f"The Naab of the {name}.", encoding="utf-8")
        config = load_config(environ={}, assignments=[f"index.collection={name}"]).config
        list(wiring.open_library(config, find_paths()).add([tmp_path / f"{name}.txt"]))
    for name in ("thesis", "garden"):
        config = load_config(environ={}, assignments=[f"index.collection={name}"]).config
        hits = wiring.open_library(config, find_paths()).search(Query("Naab"), 5)
        assert [Path(hit.document).stem for hit in hits] == [name]
    with pytest.raises(ConfigError, match="demo"):
        wiring.open_library(load_config(environ={}, assignments=["index.collection=demo"]).config, find_paths())


def test_sync_looks_at_the_folders_of_the_settings_too(home: Path, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("The Naab flows into the Danube.", encoding="utf-8")
    config = load_config(environ={}, assignments=[f'paths.index=["{tmp_path}"]']).config
    found = wiring.open_library(config, find_paths())
    list(found.sync())
    assert [Path(hit.document).name for hit in found.search(Query("Naab"), 5)] == ["note.txt"]


def test_missing_names_follow_the_documents_and_the_paths_that_are_searched(home: Path, tmp_path: Path) -> None:
    for folder, name in (("a", "Metropolitan Opera"), ("b", "Fritz Lang")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.txt").write_text(f"{name} is well known.", encoding="utf-8")
    found = wiring.open_library(Config(), find_paths())
    list(found.add([tmp_path]))
    assert found.absent("Who made Metropolis?", language("en")) == (Absent("Metropolis", ("Metropolitan Opera",)),)
    assert found.absent("Who is Fritz Lang?", language("en")) == ()
    inner = wiring.open_session(Config(), find_paths(), within=[tmp_path / "b"]).rooms.library
    assert isinstance(inner, KnowsNames)
    assert inner.absent("Who made Metropolis?", language("en")) == (Absent("Metropolis"),)
    a, b = (Filters(within=(str(tmp_path / folder),)) for folder in "ab")
    assert found.absent("Who is Fritz Lang?", language("en"), a) == (Absent("Fritz Lang"),)
    assert found.absent("Who is Fritz Lang?", language("en"), b) == ()
    assert found.absent("Who made Metropolis?", language("en"), b) == (Absent("Metropolis"),)
    assert found.absent("Who made Metropolis?", language("en"), a)[0].near == ("Metropolitan Opera",)
    (tmp_path / "a" / "Metropolis.txt").write_text("A silent film.", encoding="utf-8")
    list(found.sync())
    assert found.absent("Who made Metropolis?", language("en")) == ()
    assert found.absent("Who made Metropoliss?", language("en"))[0].near[0] == "Metropolis"
