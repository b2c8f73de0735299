"""What ingest relies on, checked on the fake and on the real registry."""

from __future__ import annotations

import hashlib

import pytest

from mindchat.values import Chunk, Document

from .fake_registry import FakeRegistry


@pytest.fixture(params=["fake", "sqlite"])
def registry(request, tmp_path):
    if request.param == "fake":
        yield FakeRegistry()
        return
    real = pytest.importorskip("mindchat.storage.document_registry").DocumentRegistry(tmp_path / "memory.db")
    yield real
    real.close()


def document(uri: str, text: str, **more) -> tuple[Document, list[Chunk]]:
    return Document(uri, "t", text, mtime_ns=1, size=len(text), **more), [Chunk(0, len(text))]


def test_outcomes(registry):
    assert list(registry.put([document("/a", "one"), document("/b", "two")])) == ["added", "added"]
    assert list(registry.put([document("/a", "one"), document("/b", "three")])) == ["unchanged", "updated"]


def test_moved_only_if_the_old_file_is_gone(registry, tmp_path):
    old = tmp_path / "old.txt"
    old.write_text("words")
    registry.put([document(str(old), "words")])
    assert list(registry.put([document(str(tmp_path / "copy.txt"), "words")])) == ["added"]
    old.unlink()
    assert list(registry.put([document(str(tmp_path / "new.txt"), "words")])) == ["moved"]
    assert str(old) not in [row.uri for row in registry.documents()]


def test_passage_ids(registry):
    stem = hashlib.sha1(b"/a").hexdigest()[:12]
    registry.put(
        [(Document("/a", "t", "one two"), [Chunk(0, 3), Chunk(4, 7)]), document("/c.jsonl#x", "line", external_id="x")]
    )
    assert [(p.id, p.text) for p in registry.passages()] == [(f"{stem}-0", "one"), (f"{stem}-1", "two"), ("x", "line")]
    assert registry.passage("x").document == "/c.jsonl#x"
    assert registry.passage("nothing") is None


def test_collections_counts_and_removal(registry):
    registry.put([document("/a", "one"), document("/d", "demo", collection="demo")])
    assert registry.count("user") == (1, 1)
    assert registry.count() == (2, 2)
    assert [row.uri for row in registry.documents("demo")] == ["/d"]
    assert registry.remove(["/a", "/never"]) == 1
    assert registry.passage(hashlib.sha1(b"/a").hexdigest()[:12] + "-0") is None
    assert registry.text("/a") is None


def test_page_and_heading_come_back(registry):
    registry.put([(Document("/a", "t", "words"), [Chunk(0, 5, page=3, heading="A › B")])])
    (passage,) = registry.passages()
    assert (passage.page, passage.heading, passage.start, passage.end) == (3, "A › B", 0, 5)
