"""The documents that are searched now: the user's collection, or the demo while the user has indexed nothing.

Owns: which collection is in force, narrowing to paths (`--in`), bringing the demo in. Does not own: reading, indexing,
searching (corpus).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from mindchat.config import IndexSection, RetrieveSection
from mindchat.corpus.index import Index
from mindchat.corpus.search.analyze import Analyzer
from mindchat.corpus.search.searchable import SearchIndex
from mindchat.document_ports import Registry
from mindchat.errors import ConfigError
from mindchat.paths import packaged
from mindchat.ports import NEVER, Cancel, Closes, CountsWords, FindsEncoder, TellsRepairs
from mindchat.text.language import Language
from mindchat.values import EVERYTHING, Absent, Filters, Passage, Query, Sought, WordCounts

if TYPE_CHECKING:
    from mindchat.corpus.search.near import Known

DEMO = "demo"


class DocumentLibrary:
    """session.Library over a registry and one index a collection. Usable from several threads for searching."""

    def __init__(
        self,
        folder: Path,
        section: IndexSection,
        registry: Registry,
        within: Sequence[Path] = (),
        always: Sequence[str] = (),
        retrieve: RetrieveSection | None = None,
        encoder: FindsEncoder | None = None,
    ) -> None:
        """`encoder`: the one that index.encoder names; None: no vectors."""
        self._encoder = encoder
        self._section, self._retrieve = section, retrieve or RetrieveSection()
        self._registry = registry
        self._within = tuple(str(path.expanduser().resolve()) for path in within)
        self._own = section.collection
        if self._own == DEMO:
            raise ConfigError(f"index.collection cannot be {DEMO}: the demo has that name.", "Choose another name.")
        self._always = tuple(str(Path(path).expanduser().resolve()) for path in always)
        """Files and folders of the settings (paths.index), which sync looks at too."""
        self.notices: list[str] = []
        """Sentences about repairs, for whoever shows them; drained by take_notices()."""
        self.count: Callable[[str], int] | None = None
        """Tokens of a text by the loaded model's tokenizer, while one is loaded: passages are then cut to
        index.chunk_tokens.
        """
        self._indexes = {self._own: self._make(folder, self._own), DEMO: self._here(folder, DEMO)}
        self._demo_ready = False
        self._looked: tuple[str, bool] | None = None
        self._known: tuple[tuple[str, str | None, Filters], Known] | None = None

    def _make(self, folder: Path, collection: str) -> SearchIndex:
        """The engine that the settings name; the demo is always searched on this machine."""
        if not self._section.milvus:
            return self._here(folder, collection)
        from mindchat.corpus.search.milvus import MilvusIndex

        tell = self.notices.append
        return MilvusIndex(
            folder,
            self._section,
            self._registry,
            collection,
            retrieve=self._retrieve,
            encoder=self._encoder,
            notify=tell,
        )

    def _here(self, folder: Path, collection: str) -> Index:
        tell = self.notices.append
        return Index(
            folder,
            self._section,
            self._registry,
            collection,
            retrieve=self._retrieve,
            encoder=self._encoder,
            notify=tell,
        )

    @property
    def index(self) -> SearchIndex:
        """The index in force."""
        if self._has_own():
            return self._indexes[self._own]
        self._bring_demo()
        return self._indexes[DEMO]

    def _has_own(self) -> bool:
        """Whether the user has indexed anything; counted once a generation, since every search asks."""
        generation = self._indexes[self._own].generation()
        if generation is None or self._looked is None or self._looked[0] != generation:
            self._looked = (generation or "", next(iter(self._registry.documents(self._own)), None) is not None)
        return self._looked[1]

    def _bring_demo(self) -> None:
        """Index what is new of the packaged demo; its questions hold the answers and are no documents."""
        if self._demo_ready:
            return
        from mindchat.corpus.ingest import ingest

        root = packaged("corpora", "demo").resolve()
        # another installation brought its own copy: the same documents under other paths
        elsewhere = [row.uri for row in self._registry.documents(DEMO) if not Path(row.uri).is_relative_to(root)]
        if elsewhere:
            self._registry.remove(elsewhere)
        folders = sorted(path for path in root.iterdir() if path.is_dir())
        for _ in ingest(folders, self._registry, self._indexes[DEMO], self._section):
            pass
        self._demo_ready = True

    def take_notices(self) -> list[str]:
        """What was repaired or found damaged since the last call, in the index and in the registry under it
        (ports.TellsRepairs).
        """
        taken, self.notices[:] = list(dict.fromkeys(self.notices)), []
        return [*(self._registry.take_notices() if isinstance(self._registry, TellsRepairs) else ()), *taken]

    def search(self, query: Query, k: int) -> Sequence[Passage]:
        """At most k passages of the collection in force, only from under the paths given with --in; see
        SearchIndex.search.
        """
        return self.index.search(query, k, within=self._within)

    def passage(self, id: str) -> Passage | None:
        """A passage by its id, as Found.source gives it."""
        return self._registry.passage(id)

    def places(self, id: str) -> tuple[str, ...]:
        """Uris of all documents that hold a passage (ports.Registry.places)."""
        return self._registry.places(id)

    def absent(self, question: str, words: Language, filters: Filters = EVERYTHING) -> tuple[Absent, ...]:
        """The question's names that no searched document has (ports.KnowsNames). Raises IndexMissingError."""
        from mindchat.corpus.search.near import Searched, absent

        source = Searched(self.search, lambda: self._names(filters), Analyzer(self._section.language), filters)
        return absent(question, source, words)

    def _names(self, filters: Filters) -> Known:
        """Titles of the searched documents, gathered once a generation while the filters are the same."""
        from mindchat.corpus.search.narrow import Narrowing, times_of
        from mindchat.corpus.search.near import Known

        key = (self.index.collection, self.index.generation(), filters)
        if self._known is None or self._known[0] != key:
            sought = Sought("", "names", filters=filters)
            narrowing = Narrowing(sought, self._within, times_of(self._registry, self.index.collection))
            inside = (row for row in self._registry.documents(self.index.collection) if narrowing.allows(row.uri))
            self._known = key, Known([row.title for row in inside])
        return self._known[1]

    def count_words(self, text: str) -> WordCounts | None:
        """How many passages of the collection in force hold each word of a text; None if the engine cannot tell. Raises
        IndexMissingError.
        """
        index = self.index
        return index.count_words(text) if isinstance(index, CountsWords) else None

    def status(self) -> dict[str, Any]:
        """State of the index in force, the folders it was made from, and which of them are gone for now."""
        from mindchat.corpus.roots import is_gone, load_roots

        index = self.index
        roots = load_roots(index.store.root) if index.collection == self._own else []
        return {
            **msgspec.to_builtins(index.status()),
            "roots": roots,
            "missing_roots": [root for root in roots if is_gone(root)],
        }

    def add(self, paths: Sequence[Path], cancel: Cancel = NEVER) -> Iterator[Any]:
        """Index files and folders into the user's collection."""
        from mindchat.corpus.ingest import ingest

        self._looked = None
        yield from ingest(
            paths, self._registry, self._indexes[self._own], self._section, cancel=cancel, count=self.count
        )
        self._looked = None

    def sync(self, cancel: Cancel = NEVER, *, prune: bool = False) -> Iterator[Any]:
        """Look again at everything that the user indexed; folders that are gone as a whole keep their documents unless
        `prune`.
        """
        from mindchat.corpus.ingest import sync
        from mindchat.corpus.roots import load_roots, save_roots

        own = self._indexes[self._own]
        with own.lock():
            known = load_roots(own.store.root)
            if new := [path for path in self._always if path not in known]:
                save_roots(own.store.root, [*known, *new])
        yield from sync(
            self._registry, self._indexes[self._own], self._section, prune=prune, cancel=cancel, count=self.count
        )
        self._looked = None

    def watch(self, interval: float, cancel: Cancel) -> Iterator[Any]:
        """Look every `interval` seconds and sync when something changed, until cancelled: corpus.watch.Scanned after
        each look.

        For a thread of its own; fold the events with corpus.watch.Tally for a status line.
        """
        from mindchat.corpus.roots import load_roots
        from mindchat.corpus.watch import look, watch

        root, limit = self._indexes[self._own].store.root, self._section.max_file_mb * 1_000_000
        links = self._section.follow_links

        def scan(roots: Sequence[str]) -> Any:
            return look(roots, limit, root.parent, links)

        yield from watch(lambda: load_roots(root), lambda: self.sync(cancel), scan, interval, cancel)

    def remove(self, path: Path) -> Iterator[Any]:
        """Forget what stands at or under the path."""
        from mindchat.corpus.ingest import remove

        yield from remove(path, self._registry, self._indexes[self._own], self._section)
        self._looked = None

    def verify(self) -> list[str]:
        """Differences between index, matrix and registry; [] if there are none."""
        return self.index.verify()

    def rebuild(self, cancel: Cancel = NEVER) -> Iterator[Any]:
        """Build the index in force anew from the registry."""
        index = self.index
        with index.lock():
            yield from index.updates(full=True, cancel=cancel)

    def encode(self, cancel: Cancel = NEVER) -> Iterator[Any]:
        """Make the vectors of all passages that have none: corpus.encoding events, before them (bytes, of how many)
        while the encoder is fetched. Cancelled, it keeps what is finished and uses it.
        """
        from mindchat.corpus.encoding import encode

        index, encoder = self.index, self._encoder
        if encoder is None:
            return
        if encoder.id() is None:
            for step in encoder.fetch():
                cancel.check()
                yield step
        id_ = encoder.id()
        assert id_ is not None  # fetched
        yield from encode(index, encoder.load, id_, cancel)

    def encode_behind(self, arguments: Sequence[str]) -> int:
        """Start `mindchat index encode` as a process of its own, of low priority, that outlives this one; its id. Raises
        IndexLockedError if one is at work. `arguments`: for its command line.
        """
        from mindchat.corpus.encoding import start_behind

        return start_behind(self.index.vectors, arguments)

    def pause_encoding(self) -> bool:
        """Ask the process that encodes to stop after its block; whether there is one."""
        from mindchat.corpus.encoding import pause

        return pause(self.index.vectors)

    def close(self) -> None:
        """Release open files, the registry's too."""
        for index in self._indexes.values():
            index.close()
        if isinstance(self._registry, Closes):
            self._registry.close()


class GivenPassages:
    """A retriever that has nothing to add: the passages stand in the prompt already (CoRe's setting)."""

    def search(self, query: Query, k: int) -> Sequence[Passage]:
        """Nothing."""
        del query, k
        return ()
