"""Milvus beside what this machine keeps for it: the vectors it searches, the graph that verify reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mindchat.config import IndexSection, RetrieveSection
from mindchat.corpus.encoding import encode
from mindchat.ports import Cancel
from mindchat.storage.document_registry import DocumentRegistry
from mindchat.values import Chunk, Document, Found, Query

from ..encoders import Here
from .test_retrievers import needs_milvus

TEXTS = {
    "clinic": "A physician works here, beside Mira Okafor.",
    "garage": "The automobile is mended.",
    "mira okafor": "She sits in the annex.",
}


class Server:
    """A collection in a file of Milvus Lite."""

    def __init__(self, home: Path) -> None:
        self.home, self.here, self.notices = home, Here(), list[str]()
        self.registry = DocumentRegistry(home / "memory.db")
        self.index = self.another()

    def another(self, here: Here | None = None, **retrieve: Any) -> Any:
        from mindchat.corpus.search.milvus import MilvusIndex

        section = IndexSection(milvus=str(self.home / "milvus" / "lite.db"), milvus_timeout=20.0, lock_seconds=0.3)
        settings = RetrieveSection(**({"dense": "on"} | retrieve))
        return MilvusIndex(
            self.home / "index", section, self.registry, retrieve=settings, encoder=here or self.here,
            notify=self.notices.append,
        )  # fmt: skip

    def put(self, texts: dict[str, str]) -> None:
        self.registry.put(
            [(Document(f"/n/{name}.txt", name.title(), text), [Chunk(0, len(text))]) for name, text in texts.items()]
        )
        self.index.sync()

    def encode(self) -> Any:
        *_, last = encode(self.index, self.here.load, self.here.id() or "", Cancel())
        return last

    def titles(self, words: str) -> list[str]:
        return [passage.title for passage in self.index.search(Query(words), 5)]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    needs_milvus()
    server = Server(tmp_path)
    server.put(TEXTS)
    yield server
    server.index.close()
    server.registry.close()


def test_passages_are_found_by_their_meaning_and_names_lead_on(server: Server) -> None:
    assert server.titles("who cures") == []
    assert any("no passage has a vector yet" in notice for notice in server.notices)
    assert server.encode().vectors == 3
    first, second = server.index.search(Query("who cures"), 5)[:2]
    assert (first.title, first.found) == ("Clinic", Found("dense"))
    assert (second.title, second.found.by, second.found.name) == ("Mira Okafor", "link", "Mira Okafor")
    assert server.index.status().vectors == 3
    assert server.index.verify() == []


def test_vectors_follow_the_documents(server: Server) -> None:
    server.encode()
    server.registry.remove(["/n/clinic.txt"])
    server.put({"ward": "A doctor sleeps."})
    assert "Clinic" not in server.titles("who cures")
    assert server.titles("vehicle")[0] == "Garage"
    assert any("2 of 3 passages have a vector" in notice for notice in server.notices)
    assert server.encode().made == 1
    assert server.titles("who cures")[0] == "Ward"
    assert server.index.verify() == []


def test_a_rebuild_keeps_the_vectors_and_forgetting_drops_them(server: Server) -> None:
    server.encode()
    server.index.rebuild()
    assert server.titles("who cures")[0] == "Clinic"
    assert server.index.verify() == []
    server.index.forget()
    client = server.another()._collection("x").client
    assert client.list_collections() == []
    assert not list(server.index.vectors.rglob("block-*"))


def test_vectors_that_the_server_lost_are_found_missing_and_sent_again(server: Server) -> None:
    server.encode()
    built = server.index._built()
    server.index._dense.on_server(built.vectors).delete(
        list(dict(server.index._dense.on_server(built.vectors).prints()))
    )
    assert any("vectors on the server" in problem for problem in server.index.verify())
    server.index.sync()
    assert server.index.verify() == []
    assert server.titles("who cures")[0] == "Clinic"


def test_filters_hold_for_what_is_near(server: Server) -> None:
    server.encode()
    assert [p.title for p in server.index.search(Query("vehicle"), 5, within=["/n/garage.txt"])] == ["Garage"]


def test_verify_sees_a_graph_that_is_not_that_of_the_texts(server: Server) -> None:
    server.encode()
    old = server.index._built().graph
    kept = server.home / "kept"
    (server.index.store.root / old).rename(kept)
    (server.index.store.root / old).mkdir()
    for file in kept.iterdir():
        file.rename(server.index.store.root / old / file.name)
    server.registry.put([(Document("/n/mira okafor.txt", "Other", TEXTS["mira okafor"]), [Chunk(0, 22)])])
    problems = server.another().verify()
    assert any("name graph differs" in problem for problem in problems)
