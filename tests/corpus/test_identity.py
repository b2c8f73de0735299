"""Two documents never hide one another: a passage is its document's uri and content, whatever id a corpus file gave it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mindchat.config import IndexSection
from mindchat.storage.document_registry import DocumentRegistry
from mindchat.values import Passage, Query, foreign_id

from .conftest import Library


def corpus(path: Path, *rows: tuple[str, str, str]) -> Path:
    path.write_text(
        "".join(json.dumps({"id": id_, "title": title, "text": text}) + "\n" for id_, title, text in rows),
        encoding="utf-8",
    )
    return path


@pytest.fixture
def real(tmp_path: Path) -> Library:
    return Library(tmp_path, registry=DocumentRegistry(tmp_path / "memory.db"))


def hits(library: Library, words: str) -> list[Passage]:
    return list(library.index.search(Query(words), 9))


def test_equal_ids_in_two_corpora_hide_nothing(real: Library, tmp_path: Path) -> None:
    files = [
        corpus(tmp_path / f"{name}.jsonl", ("1", name, f"{name} river rises"), ("2", "both", "the very same words"))
        for name in ("alpha", "beta", "gamma")
    ]
    report = real.add(*files)
    assert len(report.added) == 3
    found = hits(real, "river")
    assert {passage.title for passage in found} == {"alpha", "beta", "gamma"}
    assert [foreign_id(passage) for passage in found] == ["1", "1", "1"]
    assert len({passage.id for passage in found}) == 3
    assert len(hits(real, "very same words")) == 1
    assert list(real.index.verify()) == []
    for passage in found:
        again = real.registry.passage(passage.id)
        assert again is not None
        assert (again.document, again.text) == (passage.document, passage.text)


def test_ids_stay_while_files_change_come_and_go(real: Library, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    one, two = (
        corpus(folder / "one.jsonl", ("1", "one", "first river")),
        corpus(folder / "two.jsonl", ("1", "two", "second river")),
    )
    real.add(folder)
    before = {passage.document: passage.id for passage in hits(real, "river")}
    corpus(two, ("1", "two", "second river, longer now"))
    real.sync()
    assert {passage.document: passage.id for passage in hits(real, "river")} == before
    one.unlink()
    real.sync()
    (left,) = hits(real, "river")
    assert (left.document, foreign_id(left)) == (f"{two}#1", "1")


def test_the_same_text_under_two_titles_is_two_passages(real: Library, tmp_path: Path) -> None:
    real.add(
        corpus(tmp_path / "a.jsonl", ("7", "Mercury (planet)", "It is small.")),
        corpus(tmp_path / "b.jsonl", ("7", "Mercury (god)", "It is small.")),
    )
    assert {passage.title for passage in hits(real, "small")} == {"Mercury (planet)", "Mercury (god)"}


@pytest.mark.parametrize("foreign", ["1", "a~3", "doc#4", "x~y"])
def test_the_foreign_id_is_reported_as_it_was(real: Library, tmp_path: Path, foreign: str) -> None:
    real.add(
        corpus(tmp_path / "a.jsonl", (foreign, "A", "river one")),
        corpus(tmp_path / "b.jsonl", (foreign, "B", "river two")),
    )
    assert [foreign_id(passage) for passage in hits(real, "river")] == [foreign, foreign]


def test_a_home_of_an_earlier_version_is_mended(tmp_path: Path, make_library: Callable[..., Library]) -> None:
    """It kept both texts under one id; the first one hid the second."""
    registry = DocumentRegistry(tmp_path / "memory.db")
    library = Library(tmp_path, registry=registry)
    library.add(
        corpus(tmp_path / "a.jsonl", ("1", "A", "river one")), corpus(tmp_path / "b.jsonl", ("1", "B", "river two"))
    )
    with registry.store.write() as connection:
        connection.execute("UPDATE chunk SET passage='1'")
        connection.execute("DELETE FROM _sqlite_migrations WHERE name='memory_002_passages'")
        connection.execute("PRAGMA user_version=1")
    registry.close()
    mended = Library(tmp_path, IndexSection(lock_seconds=0.3), DocumentRegistry(tmp_path / "memory.db"))
    mended.sync()
    assert {passage.title for passage in hits(mended, "river")} == {"A", "B"}
    assert list(mended.index.verify()) == []
