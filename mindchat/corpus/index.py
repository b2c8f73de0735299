"""The search index of one collection: keeps up with the registry, answers queries, mends itself.

Owns: ports.Retriever; bringing a new generation up to the registry's state; choosing between impact matrix and index of
record; damage.
Does not own: documents and their texts (registry), the files' layout (generations), the formula (bm25f).
"""

from __future__ import annotations

import re
import shutil
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from mindchat.config import IndexSection, RetrieveSection
from mindchat.corpus.encoding import state_of
from mindchat.corpus.search import names
from mindchat.corpus.search.analyze import VERSION, Analyzer
from mindchat.corpus.search.bm25f import Params
from mindchat.corpus.search.generations import FORMAT, Damaged, Manifest, Store, full_disk_is_an_error
from mindchat.corpus.search.narrow import Narrowing, scan, times_of
from mindchat.document_ports import Registry
from mindchat.errors import IndexMissingError, ResourceError
from mindchat.ports import NEVER, Cancel, FindsEncoder
from mindchat.values import Passage, Query, WordCounts

if TYPE_CHECKING:
    from mindchat.corpus.search.open_generation import Opened
    from mindchat.corpus.search.vectors import Blocks

_EVERY = 200
"""Passages between two looks at the cancel token and two progress reports."""
_BYTES_A_PASSAGE = 3000
"""Preflight estimate of disk space, record and matrix together."""


class IndexStatus(Struct, frozen=True):
    """What `index status` tells."""

    collection: str
    generation: str | None
    passages: int
    """Searchable now."""
    registered: int
    """In the registry; more or fewer than `passages` means that a sync is due."""
    documents: int
    built: str
    served_by: str
    """matrix | whoosh | milvus | nothing."""
    pending: bool
    """An earlier update did not finish; `sync` resumes it."""
    writer: int | None
    """Process id of whoever is writing now."""
    bytes_on_disk: int
    vectors: int = 0
    """Passages that can be found by their meaning, with the encoder that the settings name."""
    encoding: str = ""
    """What a process that makes vectors now has done."""


class Update(Struct, frozen=True):
    """What bringing the index up to date changed."""

    added: int
    deleted: int
    passages: int
    generation: str | None
    seconds: float
    rebuilt: bool = False


class Progress(Struct, frozen=True):
    """How far an update is."""

    phase: str
    """index | commit | matrix | names."""
    done: int
    total: int


def params_of(section: IndexSection) -> Params:
    """The formula's numbers as configured."""
    return Params(section.k1, section.b, section.title_boost)


def folder_name(collection: str) -> str:
    """A collection's name as one harmless folder name."""
    safe = re.sub(r"[^\w.-]", "_", collection, flags=re.ASCII).strip(".")
    if safe and safe == collection and len(safe) <= 80:
        return safe
    return f"{safe[:80]}-{format(zlib.crc32(collection.encode('utf-8', 'surrogatepass')), '08x')}"


class Index:
    """ports.Retriever over one collection of a registry. Searching is safe from several threads and beside a writer."""

    def __init__(
        self,
        folder: Path,
        section: IndexSection,
        registry: Registry,
        collection: str = "user",
        *,
        retrieve: RetrieveSection | None = None,
        ranker: str = "",
        encoder: FindsEncoder | None = None,
        vectors: Path | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        """`ranker`: one of search.rankers.RANKERS; "": the one that the settings name. `encoder`: None: no vectors.

        `vectors`: a folder of blocks that others use too; nothing is ever removed from it.
        """
        self.retrieve, self._ranker = retrieve or RetrieveSection(), ranker
        self.encoder, self._shared = encoder, vectors
        self.store = Store(folder / folder_name(collection))
        self.section, self.registry, self.collection = section, registry, collection
        self.notify = notify or (lambda _: None)
        self._opened: Opened | None = None
        self._guard = threading.RLock()

    # ── searching
    # ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def search(self, query: Query, k: int, *, within: Sequence[str] = ()) -> list[Passage]:
        """See SearchIndex.search."""
        narrowing = Narrowing(query, within, times_of(self.registry, self.collection))
        found = self._open().search(query.text, k, self.registry.passage, narrowing)
        return scan(self.registry, self.collection, narrowing, k) if found is None else found

    def count_words(self, text: str) -> WordCounts:
        """See ports.CountsWords. Raises IndexMissingError."""
        return self._open().count_words(text)

    def close(self) -> None:
        """Release open files."""
        with self._guard:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def _open(self) -> Opened:
        from mindchat.corpus.search.open_generation import Opened

        with self._guard:
            name = self.store.current()
            if self._opened is not None and self._opened.name == name:
                return self._opened
            self.close()
            if self.registry.count(self.collection)[1] == 0:
                raise IndexMissingError("Nothing has been indexed yet.", "Add documents with: mindchat index add PATH")
            if self.store.pending and self.store.holder() is None:
                self.notify(
                    "An earlier indexing did not finish, so some documents may not be found yet. Run: mindchat index"
                    " sync"
                )
            if name is None:
                self.notify("The index is missing although documents are registered; it is rebuilt from the registry.")
                self.sync()
            else:
                self._renew(name)
            try:
                self._opened = Opened.open(
                    self.store, self._current(), self.section, self.notify, self.retrieve, self._ranker, self.encoder
                )
            except Damaged as error:
                self._mend(error)
                self._opened = Opened.open(
                    self.store, self._current(), self.section, self.notify, self.retrieve, self._ranker, self.encoder
                )
            return self._opened

    def _renew(self, name: str) -> None:
        """Build an index anew that an earlier version made, before it is searched: its terms are not those of today's
        queries.

        Where that cannot be done now (another writer, a full or read-only disk), it is told, and the old index answers.
        """
        try:
            manifest = self.store.manifest(name)
        except Damaged:
            return  # mended when it is opened
        earlier = (manifest.analysis, manifest.format) != (VERSION, FORMAT)
        if not earlier and manifest.graph in (0, names.VERSION) and (manifest.graph or self.retrieve.links == "off"):
            return
        try:
            if not earlier:
                self.notify("The index was made without today's name graph; it is added from the registry.")
            self.sync()
        except (ResourceError, OSError) as error:
            self.notify(f"The index of an earlier version cannot be built anew now: {error}")

    def _current(self) -> str:
        name = self.store.current()
        if name is None:
            raise IndexMissingError("Nothing has been indexed yet.", "Add documents with: mindchat index add PATH")
        return name

    def _mend(self, error: Damaged) -> None:
        """Rebuild a damaged generation, unless another process has done so while we waited for the lock."""
        name = self._current()
        self.notify(
            f"The index is damaged ({error}); it is rebuilt from the registry, the damaged files are kept aside."
        )
        with self.lock():
            if self.store.current() == name:
                self.store.set_aside(name)
                self._drain(self._update(full=True, cancel=NEVER))

    # ── writing
    # ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def lock(self) -> AbstractContextManager[None]:
        """Be the only writer of this collection; raises IndexLockedError after index.lock_seconds. Re-entrant within a
        thread.
        """
        return self.store.lock(self.section.lock_seconds)

    def build(self, *, cancel: Cancel = NEVER) -> Update:
        """Bring the index to the registry's state; builds it if there is none."""
        return self.sync(cancel=cancel)

    def sync(self, *, cancel: Cancel = NEVER) -> Update:
        """Bring the index to the registry's state. Nothing changes on disk if it is there already."""
        with self.lock():
            return self._drain(self._update(full=False, cancel=cancel))

    def rebuild(self, *, cancel: Cancel = NEVER) -> Update:
        """Build a new generation from the registry alone."""
        with self.lock():
            return self._drain(self._update(full=True, cancel=cancel))

    def updates(self, *, full: bool = False, cancel: Cancel = NEVER) -> Iterator[Progress | Update]:
        """sync() or rebuild() step by step; the last item is the Update. The caller holds lock()."""
        yield from self._update(full=full, cancel=cancel)

    @staticmethod
    def _drain(steps: Iterator[Progress | Update]) -> Update:
        last: Progress | Update | None = None
        for last in steps:  # noqa: B007 - only the last matters
            pass
        assert isinstance(last, Update)
        return last

    def _update(self, *, full: bool, cancel: Cancel, encoder: str = "") -> Iterator[Progress | Update]:
        from mindchat.corpus.builder import Builder, read_graph

        started = time.monotonic()
        base, manifest = (None, None) if full else self._base()
        total = self.registry.count(self.collection)[1]
        blocks = self._blocks(manifest, encoder)
        space = total * _BYTES_A_PASSAGE
        builder = Builder(self.store, base, Analyzer(self.section.language), space, cancel, blocks)
        try:
            with full_disk_is_an_error(self.store.root):
                for number, passage in enumerate(self.registry.passages(self.collection), 1):
                    builder.offer(passage)
                    if number % _EVERY == 0:
                        cancel.check()
                        yield Progress("index", number, max(total, number))
                params = params_of(self.section)
                changed = builder.settle() or manifest is None or self._stale(manifest, params)
                if changed or manifest is None or (manifest.encoder, manifest.vectors) != builder.encoded:
                    if changed:
                        yield Progress("commit", total, total)
                        builder.commit()
                        cancel.check()
                        yield Progress("matrix", total, total)
                        passages = builder.derive(params if self.section.matrix else None)
                        cancel.check()
                        yield Progress("names", total, total)
                        builder.weave(self.registry, self.collection, read_graph(base, manifest))
                        cancel.check()
                    else:
                        passages = builder.relink()
                    embedded, vectors = builder.embed()
                    name: str | None = self.store.finish(
                        builder.folder,
                        passages=passages,
                        language=self.section.language,
                        params=params,
                        seconds=time.monotonic() - started,
                        encoder=embedded,
                        vectors=vectors,
                    )
                    if self._shared is None:
                        builder.forget_vectors()
                else:
                    name, passages = self.store.current(), builder.kept
                self.store.set_pending(False)
        finally:
            builder.close()
        yield Update(builder.added, builder.deleted, passages, name, time.monotonic() - started, base is None)

    @property
    def vectors(self) -> Path:
        """See corpus.encoding.TakesVectors."""
        return self._shared or self.store.root / "vectors"

    def _blocks(self, manifest: Manifest | None, encoder: str = "") -> Blocks | None:
        """The finished vectors of the encoder in force, or, where that is not here now, of the one before."""
        from mindchat.corpus.search.vectors import Blocks

        if not Blocks.there(self.vectors):
            return None
        encoder = encoder or (self.encoder.id() if self.encoder is not None else None) or ""
        encoder = encoder or (manifest.encoder if manifest is not None else "")
        return Blocks(self.vectors, encoder) if encoder else None

    def take_vectors(self, encoder: str) -> tuple[int, int]:
        """See corpus.encoding.TakesVectors."""
        with self.lock():
            self._drain(self._update(full=False, cancel=NEVER, encoder=encoder))
        manifest = self.store.manifest(self._current())
        return manifest.vectors, manifest.passages

    def _stale(self, manifest: Manifest, params: Params) -> bool:
        same = manifest.has_matrix == self.section.matrix and manifest.params == params
        return not same or manifest.graph != names.VERSION

    def _base(self) -> tuple[Path, Manifest] | tuple[None, None]:
        """The generation to start from; None if there is none, it is damaged, or it was analysed in another way."""
        name = self.store.current()
        if name is None:
            return None, None
        try:
            manifest = self.store.manifest(name)
        except Damaged as error:
            self.notify(
                f"The index is damaged ({error}); it is rebuilt from the registry, the damaged files are kept aside."
            )
            self.store.set_aside(name)
            return None, None
        if (manifest.language, manifest.analysis, manifest.format) != (self.section.language, VERSION, FORMAT):
            self.notify(
                "The index was made with other language settings or by another version; it is rebuilt from the"
                " registry."
            )
            return None, None
        return self.store.root / name, manifest

    # ── looking
    # ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def generation(self) -> str | None:
        """Name of the generation in use; None if there is none."""
        return self.store.current()

    @property
    def pending(self) -> bool:
        """Whether an earlier update did not finish; sync() resumes it."""
        return self.store.pending

    def status(self) -> IndexStatus:
        """The state on disk, without opening the index."""
        documents, registered = self.registry.count(self.collection)
        name, manifest = self.store.current(), None
        try:
            manifest = self.store.manifest(name) if name else None
        except Damaged as error:
            self.notify(f"The index is damaged ({error}); the next search or sync rebuilds it.")
        served = (
            "nothing" if manifest is None else "matrix" if manifest.has_matrix and self.section.matrix else "whoosh"
        )
        size = sum(path.stat().st_size for path in (self.store.root / name).rglob("*") if path.is_file()) if name else 0
        passages, built = (manifest.passages, manifest.built) if manifest else (0, "")
        return IndexStatus(
            self.collection,
            name,
            passages,
            registered,
            documents,
            built,
            served,
            self.pending,
            self.store.holder(),
            size,
            manifest.vectors if manifest and self.encoder and manifest.encoder == self.encoder.id() else 0,
            state_of(self.vectors),
        )

    def verify(self) -> list[str]:
        """Every difference found between files, manifest, record, matrix and registry, one sentence each; [] if all is
        well.
        """
        from mindchat.corpus.builder import differences, graph_differences, vector_differences

        name = self.store.current()
        if name is None:
            return (
                []
                if self.registry.count(self.collection)[1] == 0
                else ["There is no index although documents are registered."]
            )
        try:
            manifest = self.store.manifest(name)
        except Damaged as error:
            return [f"Damaged: {error}."]
        found = list(differences(self.store.root / name, self.registry.passages(self.collection)))
        found += graph_differences(self.store.root / name, manifest, self.registry, self.collection)
        if (blocks := self._blocks(manifest)) is not None:
            passages = self.registry.passages(self.collection)
            found += vector_differences(self.store.root / name, manifest, blocks, passages)
        return [*found, "An earlier update did not finish; mindchat index sync resumes it."] if self.pending else found

    def forget(self) -> None:
        """Remove every file of this collection's index."""
        with self.lock():
            self.close()
            for path in self.store.root.iterdir():
                if not path.name.startswith("write.lock"):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
