from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mindchat.config import IndexSection
from mindchat.corpus.index import Index
from mindchat.corpus.ingest import ingest, sync
from mindchat.corpus.ingest_report import IngestDone, IngestReport
from mindchat.values import Chunk, Document, Query

from .fake_registry import FakeRegistry


class Library:
    """A registry, an index and the two verbs that fill them."""

    def __init__(self, folder: Path, section: IndexSection | None = None, registry: Any = None) -> None:
        self.section = section or IndexSection(lock_seconds=0.3)
        self.registry = registry or FakeRegistry()
        self.notices: list[str] = []
        self.folder = folder / "index"
        self.index = self.another()

    def another(self, section: IndexSection | None = None) -> Index:
        """A second process would open the same index so."""
        return Index(self.folder, section or self.section, self.registry, notify=self.notices.append)

    def add(self, *roots: Path) -> IngestReport:
        return self._last(ingest(roots, self.registry, self.index, self.section))

    def sync(self) -> IngestReport:
        return self._last(sync(self.registry, self.index, self.section))

    @staticmethod
    def _last(events: Any) -> IngestReport:
        *_, last = events
        assert isinstance(last, IngestDone)
        return last.report

    def put(self, **texts: str) -> None:
        """Documents without files: name → text."""
        self.registry.put(
            [
                (Document(f"/nowhere/{name}", name.replace("_", " "), text), [Chunk(0, len(text))])
                for name, text in texts.items()
            ]
        )

    def find(self, words: str, k: int = 10, **options: Any) -> list[str]:
        """File names of the hits, best first."""
        return [Path(passage.document).name for passage in self.index.search(Query(words), k, **options)]


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path)


@pytest.fixture
def make_library(tmp_path: Path) -> Callable[..., Library]:
    return lambda section=None: Library(tmp_path, section)
