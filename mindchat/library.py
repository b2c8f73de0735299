"""The documents that are searched now: the user's collection, or the demo while the user has indexed nothing.

Owns: which collection is in force, narrowing to paths (`--in`), bringing the demo in. Does not own: reading, indexing, searching (corpus).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mindchat.config import IndexSection
from mindchat.corpus.index import Index
from mindchat.paths import packaged
from mindchat.ports import NEVER, Cancel, Registry
from mindchat.values import Passage, Query

USER, DEMO = "user", "demo"


class DocumentLibrary:
    """session.Library over a registry and one index a collection. Usable from several threads for searching."""

    def __init__(self, folder: Path, section: IndexSection, registry: Registry, within: Sequence[Path] = ()) -> None:
        self._section = section
        self._registry = registry
        self._within = tuple(str(path.expanduser().resolve()) for path in within)
        self.notices: list[str] = []
        """Sentences about repairs, for whoever shows them; drained by take_notices()."""
        self._indexes = {name: Index(folder, section, registry, name, notify=self.notices.append) for name in (USER, DEMO)}
        self._demo_ready = False

    @property
    def index(self) -> Index:
        """The index in force."""
        if self._registry.count(USER)[0]:
            return self._indexes[USER]
        self._bring_demo()
        return self._indexes[DEMO]

    def _bring_demo(self) -> None:
        """Index what is new of the packaged demo; its questions hold the answers and are no documents."""
        if self._demo_ready:
            return
        from mindchat.corpus.ingest import ingest

        folders = sorted(path for path in packaged("corpora", "demo").iterdir() if path.is_dir())
        for _ in ingest(folders, self._registry, self._indexes[DEMO], self._section):
            pass
        self._demo_ready = True

    def take_notices(self) -> list[str]:
        """What was repaired since the last call."""
        taken, self.notices[:] = list(self.notices), []
        return taken

    def search(self, query: Query, k: int) -> Sequence[Passage]:
        """At most k passages of the collection in force, only from under the paths given with --in. Raises IndexMissingError."""
        return self.index.search(query, k, within=self._within)

    def status(self) -> dict[str, Any]:
        """State of the index in force, and the folders it was made from."""
        from mindchat.corpus.roots import load_roots

        index = self.index
        return {**msgspec.to_builtins(index.status()), "roots": list(load_roots(index.store.root)) if index.collection == USER else []}

    def add(self, paths: Sequence[Path], cancel: Cancel = NEVER) -> Iterator[Any]:
        """Index files and folders into the user's collection."""
        from mindchat.corpus.ingest import ingest

        yield from ingest(paths, self._registry, self._indexes[USER], self._section, cancel=cancel)

    def sync(self, cancel: Cancel = NEVER) -> Iterator[Any]:
        """Look again at everything that the user indexed."""
        from mindchat.corpus.ingest import sync

        yield from sync(self._registry, self._indexes[USER], self._section, cancel=cancel)

    def remove(self, path: Path) -> Iterator[Any]:
        """Forget what stands at or under the path."""
        from mindchat.corpus.ingest import remove

        yield from remove(path, self._registry, self._indexes[USER], self._section)

    def verify(self) -> list[str]:
        """Differences between index, matrix and registry; [] if there are none."""
        return self.index.verify()

    def rebuild(self, cancel: Cancel = NEVER) -> Iterator[Any]:
        """Build the index in force anew from the registry."""
        index = self.index
        with index.lock():
            yield from index.updates(full=True, cancel=cancel)

    def close(self) -> None:
        """Release open files."""
        for index in self._indexes.values():
            index.close()


class GivenPassages:
    """A retriever that has nothing to add: the passages stand in the prompt already (CoRe's setting)."""

    def search(self, query: Query, k: int) -> Sequence[Passage]:
        """Nothing."""
        del query, k
        return ()
