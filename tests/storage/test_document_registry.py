"""The registry: what is stored, found, moved and forgotten."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindchat.storage.document_registry import DocumentRegistry
from mindchat.storage.migrations import MEMORY, open_store
from mindchat.values import Chunk, Document

from ..memory.conftest import World


def two_chunks(path: Path, text: str) -> tuple[Document, list[Chunk]]:
    half = len(text) // 2
    return Document(str(path), "T", text, mtime_ns=1, size=2), [Chunk(0, half, 1, "H"), Chunk(half, len(text))]


def test_passages_are_slices_with_stable_ids(world: World, tmp_path: Path) -> None:
    document, chunks = two_chunks(tmp_path / "a.txt", "Alpha beta. Gamma delta é.")
    assert world.registry.put([(document, chunks)]) == ["added"]
    stem = hashlib.sha1(document.uri.encode()).hexdigest()[:12]
    found = list(world.registry.passages())
    assert [p.id for p in found] == [f"{stem}-0", f"{stem}-1"]
    assert all(p.text == document.text[p.start : p.end] for p in found)
    assert (found[0].page, found[0].heading, found[1].heading) == (1, "H", "")
    assert world.registry.passage(found[1].id) == found[1]
    assert world.registry.text(document.uri) == document.text
    assert world.registry.count() == (1, 2)
    assert world.registry.passage("no-such-id") is None
    assert world.registry.text("/no/such") is None


def test_a_corpus_line_keeps_its_id(world: World) -> None:
    line = Document("/c.jsonl#abc", "Title", "Some text.", "demo", "abc")
    world.registry.put([(line, [Chunk(0, 10)])])
    (found,) = world.registry.passages("demo")
    assert (found.id, found.document, found.text) == ("abc", "/c.jsonl#abc", "Some text.")
    assert list(world.registry.passages("user")) == []
    assert world.registry.count("demo") == (1, 1)
    assert [d.uri for d in world.registry.documents("demo")] == ["/c.jsonl#abc"]


def test_outcomes(world: World, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("x")
    document, chunks = two_chunks(path, "One two three four.")
    world.registry.put([(document, chunks)])
    assert world.registry.put([(document, chunks)]) == ["unchanged"]
    assert world.registry.put([two_chunks(path, "One two three five.")]) == ["updated"]
    assert world.registry.put([two_chunks(path, "One two three five.")]) == ["unchanged"]
    moved = two_chunks(tmp_path / "b.txt", "One two three five.")
    assert world.registry.put([moved]) == ["added"], "the old file still exists: a copy, not a move"
    world.registry.remove([moved[0].uri])
    path.unlink()
    assert world.registry.put([moved]) == ["moved"]
    assert [d.uri for d in world.registry.documents()] == [str(tmp_path / "b.txt")]


def test_a_changed_document_has_only_its_new_passages(world: World, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    world.registry.put([two_chunks(path, "aaaa bbbb")])
    world.registry.put([two_chunks(path, "cccc dddd eeee")])
    assert "".join(p.text for p in world.registry.passages()) == "cccc dddd eeee"
    assert world.registry.text(str(path)) == "cccc dddd eeee"
    assert world.registry.store.value("SELECT count(*) FROM chunk") == 2


def test_removed_documents_leave_no_text(world: World, tmp_path: Path) -> None:
    world.registry.put([two_chunks(tmp_path / f"{i}.txt", f"text number {i} here") for i in range(5)])
    assert world.registry.remove([str(tmp_path / "1.txt"), str(tmp_path / "3.txt"), "/unknown"]) == 2
    assert world.registry.count() == (3, 6)
    assert world.registry.text(str(tmp_path / "1.txt")) is None
    assert world.registry.store.value("SELECT count(*) FROM document") == 3


def test_two_registries_on_one_file_see_each_others_changes(world: World, tmp_path: Path) -> None:
    other = DocumentRegistry(world.db)
    path = tmp_path / "a.txt"
    world.registry.put([two_chunks(path, "first text")])
    assert other.text(str(path)) == "first text"
    world.registry.put([two_chunks(path, "second text")])
    assert other.text(str(path)) == "second text"
    other.close()


def test_large_corpora_are_stored_quickly(world: World) -> None:
    lines = [
        (Document(f"/c.jsonl#{i}", f"Title {i}", f"Line {i} " * 60, "user", str(i)), [Chunk(0, 60)])
        for i in range(3000)
    ]
    began = time.perf_counter()
    for i in range(0, 3000, 1000):
        assert set(world.registry.put(lines[i : i + 1000])) == {"added"}
    taken = time.perf_counter() - began
    assert taken < 6, f"{taken:.1f} s"
    assert sum(1 for _ in world.registry.passages()) == 3000
    assert set(world.registry.put(lines[:1000])) == {"unchanged"}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(st.characters(blacklist_categories=()), min_size=1, max_size=40), min_size=1, max_size=5))
def test_any_text_comes_back_as_it_was(parts: list[str]) -> None:
    registry = DocumentRegistry(open_store(None, MEMORY))
    text, chunks, at = "".join(parts), [], 0
    for part in parts:
        chunks.append(Chunk(at, at + len(part)))
        at += len(part)
    registry.put([(Document("/x", "t", text), chunks)])
    assert registry.text("/x") == text
    assert [p.text for p in registry.passages()] == parts
    registry.close()


def test_ingesting_twice_changes_no_count(films: World) -> None:
    tables = ("document", "chunk", "fact", "entity")
    before = [films.registry.store.value(f"SELECT count(*) FROM {table}") for table in tables]
    for name, title in (("films.txt", "Polish-Russian War (film)"), ("people.txt", "Xawery Żuławski")):
        films.index(films.folder / name, title)
    assert [films.registry.store.value(f"SELECT count(*) FROM {table}") for table in tables] == before


@pytest.mark.parametrize("name", ["a#b.txt", "ünï cödé.txt", "x]y[z.txt"])
def test_odd_names(world: World, tmp_path: Path, name: str) -> None:
    world.registry.put([two_chunks(tmp_path / name, "odd names")])
    assert world.registry.text(str(tmp_path / name)) == "odd names"
