"""Copies of a document: indexed once, found once, with all their paths."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mindchat.corpus.search.looking import look
from mindchat.corpus.search.queries import parse
from mindchat.corpus.search.twins import content_key
from mindchat.storage.document_registry import DocumentRegistry
from mindchat.text.language import language
from mindchat.values import Chunk, Document, Passage, Query

from ..conftest import Library

TEXT = "The Thouet flows by the castle of the dukes."


@pytest.fixture(params=[False, True], ids=["fake", "sqlite"])
def library(request: Any, tmp_path: Path) -> Library:
    return Library(tmp_path, registry=DocumentRegistry(tmp_path / "memory.db") if request.param else None)


def test_copies_with_other_names_are_indexed_once_and_shown_with_all_paths(library: Library, tmp_path: Path) -> None:
    for name in ("a/river.txt", "b/copy of river.txt", "c/River_2.log", "d/other.txt"):
        (tmp_path / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "docs" / name).write_text(
            TEXT if "other" not in name else "The Loire has another castle.", encoding="utf-8"
        )
    assert library.add(tmp_path / "docs").passages == 2
    looked = look(library.index, library.registry, parse("thouet"), 5, language("en"))
    (hit,), (also,) = looked.hits, looked.also
    assert sorted([hit.document, *also]) == [
        str(tmp_path / "docs" / name) for name in ("a/river.txt", "b/copy of river.txt", "c/River_2.log")
    ]
    assert library.index.verify() == []
    Path(hit.document).unlink()
    library.sync()
    assert len(library.find("thouet")) == 1
    assert library.find("thouet") != [Path(hit.document).name]


def test_each_place_counts_for_filters(library: Library, tmp_path: Path) -> None:
    for name in ("a/river.txt", "b/river copy.log"):
        (tmp_path / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "docs" / name).write_text(TEXT, encoding="utf-8")
    library.add(tmp_path / "docs")
    for line in ("thouet path:/b/", "thouet type:log", "thouet type:txt", f"thouet in:{tmp_path / 'docs' / 'b'}"):
        assert len(library.index.search(parse(line), 5)) == 1, line
    assert library.index.search(parse("thouet type:md"), 5) == []


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (("/a/x.txt", "x", ""), ("/b/y.txt", "y", ""), True),
        (("/a/my_x.txt", "my x", ""), ("/b/y.py", "y.py", ""), True),
        (("/a/x.md", "Rivers", ""), ("/b/y.md", "Rivers", ""), True),
        (("/a/x.md", "Rivers", ""), ("/b/y.md", "Castles", ""), False),
        (("/a/x.md", "Rivers", ""), ("/b/y.md", "y", ""), False),
        (("/a/x.txt", "x", "One"), ("/b/y.txt", "y", "Two"), False),
        (("/a/c.jsonl#1", "Net Force", ""), ("/a/c.jsonl#2", "High Wire", ""), False),
    ],
)
def test_a_title_tells_copies_apart_unless_it_is_the_files_name(
    one: tuple[str, str, str], two: tuple[str, str, str], same: bool
) -> None:
    keys = [
        content_key(Passage("p", uri, title, TEXT, 0, len(TEXT), heading=heading)) for uri, title, heading in (one, two)
    ]
    assert (keys[0] == keys[1]) is same


def test_the_registry_knows_every_place_of_one_collection(tmp_path: Path) -> None:
    registry = DocumentRegistry(tmp_path / "memory.db")
    where = [("/a", "user"), ("/b", "user"), ("/demo", "demo"), ("/c", "user")]
    registry.put(
        [
            (Document(uri, "T", TEXT if uri != "/c" else "Other words.", collection), [Chunk(0, 12)])
            for uri, collection in where
        ]
    )
    first, *_ = registry.passages("user")
    assert registry.places(first.id) == ("/a", "/b")
    registry.remove(["/a"])
    assert registry.places(first.id) == ()
    assert registry.places("no such id") == ()
    registry.close()


def test_sections_of_markdown_are_named_after_their_heading(
    make_library: Callable[..., Library], tmp_path: Path
) -> None:
    library = make_library()
    (tmp_path / "n.md").write_text(
        "# Thouars\n\nA town.\n\n## History\n\nThe dukes.\n\n### Wars\n\nMany sieges.\n", encoding="utf-8"
    )
    (tmp_path / "log.md").write_text("# Monday\n\nRain fell.\n\n# Tuesday\n\nSnow fell.\n", encoding="utf-8")
    library.add(tmp_path / "n.md", tmp_path / "log.md")
    named = {
        words: library.index.search(Query(words), 1)[0].name for words in ("town", "dukes", "sieges", "rain", "snow")
    }
    assert named == {
        "town": "Thouars",
        "dukes": "Thouars › History",
        "sieges": "Thouars › History › Wars",
        "rain": "log › Monday",
        "snow": "log › Tuesday",
    }
