"""The search index of one collection on a Milvus server, for more passages than one machine should hold.

Owns: ports.Retriever over Milvus: bringing the server to the registry's state, what was finished, damage. Does not own:
the server's calls (milvus_client), documents and their texts (registry, which stays on this machine and answers with
every passage found). What was built stands in milvus.json beside the lock: the collection's name and how its terms were
made. Another way of making terms builds a new collection and drops the old one when the new one is complete; changes of
documents are written into the collection in place.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from mindchat.config import IndexSection, RetrieveSection
from mindchat.corpus.encoding import state_of
from mindchat.corpus.index import IndexStatus, Progress, Update, folder_name
from mindchat.corpus.milvus_graph import KeptGraph
from mindchat.corpus.milvus_vectors import SentVectors
from mindchat.corpus.search.analyze import VERSION, Analyzer
from mindchat.corpus.search.answers import answered
from mindchat.corpus.search.generations import Store
from mindchat.corpus.search.milvus_client import Collection, Row, clipped, shown
from mindchat.corpus.search.narrow import Narrowing, scan, times_of
from mindchat.corpus.search.rankers import CANDIDATES, chosen
from mindchat.document_ports import Registry
from mindchat.errors import IndexMissingError, ResourceError
from mindchat.ports import NEVER, Cancel, FindsEncoder
from mindchat.storage.atomic import write_atomic
from mindchat.text.foreign_json import decode_json
from mindchat.values import Passage, Query

_BATCH = 500
_MOST_HITS = 16_384
"""Milvus' own limit of one search."""
MAX_TERMS = 512
"""Distinct terms of a query that count."""


class Built(Struct, frozen=True):
    """What milvus.json says."""

    uri: str
    name: str
    language: str
    analysis: int
    k1: float
    b: float
    title_boost: float
    built: str = ""
    graph: str = ""
    """Folder of the name graph beside this file."""
    vectors: str = ""
    """The collection of vectors; "": there is none."""
    encoder: str = ""
    """Whose they are."""
    encoded: int = 0
    """Passages that have one."""

    def alike(self, other: Built) -> bool:
        """Whether both were made in the same way, in the same place."""
        return self._way() == other._way()

    def _way(self) -> tuple[object, ...]:
        return self.uri, self.language, self.analysis, self.k1, self.b, self.title_boost


class MilvusIndex:
    """corpus.searchable.SearchIndex. Searching is safe from several threads."""

    def __init__(
        self,
        folder: Path,
        section: IndexSection,
        registry: Registry,
        collection: str = "user",
        *,
        retrieve: RetrieveSection | None = None,
        encoder: FindsEncoder | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        """`encoder`: None: no vectors."""
        self.store = Store(folder / folder_name(collection))
        self._retrieve = retrieve or RetrieveSection()
        self._names = KeptGraph(self.store.root, registry, collection, self._retrieve)
        self._dense = SentVectors(section, registry, collection, self.store.root / "vectors", encoder)
        self.section, self.registry, self.collection = section, registry, collection
        self.notify = notify or (lambda _: None)
        self._open: Collection | None = None

    # ── searching
    # ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def search(self, query: Query, k: int, *, within: Sequence[str] = ()) -> list[Passage]:
        """See SearchIndex.search. Equal passages of several documents are found once, as the registry's first."""
        collection = self._searched()
        terms = list(dict.fromkeys(Analyzer(self.section.language).terms(query.text)))[:MAX_TERMS]
        narrowing = Narrowing(query, within, times_of(self.registry, self.collection))
        if not terms or k < 1 or narrowing.unseen(terms):
            return scan(self.registry, self.collection, narrowing, k)
        roots = list(narrowing.within or narrowing.filters.within)
        built = self._built()
        name, limit = built.graph if built is not None else "", max(2 * k + 16, CANDIDATES)
        near = self._near(query.text, built, roots)

        def allowed(id_: str) -> Passage | None:
            passage = self.registry.passage(id_)
            return (
                passage
                if passage is not None and narrowing.allows(passage.document) and narrowing.accepts(passage)
                else None
            )

        while True:
            hits = [hit[::2] for hit in collection.search(clipped(terms), min(limit, _MOST_HITS), roots)]
            found = answered(self._names.rank(hits, near, query.text, limit, name, roots), query.text, k, allowed)
            if len(found) == k or len(hits) < limit or limit >= _MOST_HITS:
                return found
            limit *= 4

    def _near(self, question: str, built: Built | None, roots: Sequence[str]) -> list[tuple[str, float]]:
        if built is None or chosen(self._retrieve) != "dense":
            return []
        passages = self.registry.count(self.collection)[1]
        return self._dense.nearest(question, built.vectors, built.encoder, built.encoded, passages, roots, self.notify)

    def _searched(self) -> Collection:
        """The collection that was built; it is built now if there is none, or it is gone from the server."""
        built = self._built()
        if built is not None and self._open is not None and self._open.name == built.name:
            return self._open
        if self.registry.count(self.collection)[1] == 0:
            raise IndexMissingError("Nothing has been indexed yet.", "Add documents with: mindchat index add PATH")
        if self.pending and self.store.holder() is None:
            self.notify(
                "An earlier indexing did not finish, so some documents may not be found yet. Run: mindchat index sync"
            )
        if built is None or not self._collection(built.name).exists():
            self.notify(
                f"The server at {shown(self.section)} does not hold the documents; they are sent there from the"
                " registry."
            )
            self.sync()
            built = self._built()
            assert built is not None
        if not built.alike(self._wanted("")):
            self.notify(
                "index.language, k1, b or title_boost are not those of the collection; mindchat index sync rebuilds it."
            )
        return self._collection(built.name)

    def _collection(self, name: str) -> Collection:
        if self._open is None or self._open.name != name:
            self.close()
            self._open = Collection(self.section, name)
        return self._open

    def close(self) -> None:
        """Drop the connection."""
        if self._open is not None:
            self._open.close()
            self._open = None
        self._dense.close()

    # ── writing
    # ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def lock(self) -> AbstractContextManager[None]:
        """See SearchIndex.lock."""
        return self.store.lock(self.section.lock_seconds)

    def sync(self, *, cancel: Cancel = NEVER) -> Update:
        """Bring the server to the registry's state; only what differs is sent."""
        return self._run(full=False, cancel=cancel)

    def rebuild(self, *, cancel: Cancel = NEVER) -> Update:
        """Send everything into a new collection, then drop the old one."""
        return self._run(full=True, cancel=cancel)

    def _run(self, *, full: bool, cancel: Cancel) -> Update:
        with self.lock():
            *_, last = self.updates(full=full, cancel=cancel)
        assert isinstance(last, Update)
        return last

    def updates(self, *, full: bool = False, cancel: Cancel = NEVER) -> Iterator[Progress | Update]:
        """See SearchIndex.updates. Interrupted in the middle, PENDING stands and the next run sends the rest."""
        started, old = time.monotonic(), self._built()
        fresh = full or old is None or not old.alike(self._wanted("")) or not self._collection(old.name).exists()
        name = f"mindchat_{secrets.token_hex(8)}" if fresh or old is None else old.name
        self.store.set_pending(True)
        collection = self._collection(name)
        if fresh:
            collection.create()
        change = _Change(collection, self.section)
        try:
            total = self.registry.count(self.collection)[1]
            for number, passage in enumerate(self.registry.passages(self.collection), 1):
                if change.offer(passage):
                    cancel.check()
                    yield Progress("index", number, max(total, number))
            yield Progress("commit", total, total)
            change.finish()
        except BaseException:
            if fresh:
                self._drop(name)
            raise
        wanted = self._wanted(name) if fresh or old is None else old
        if fresh or change.added or change.deleted or self._names.load(wanted.graph) is None:
            yield Progress("names", total, total)
            wanted = msgspec.structs.replace(wanted, graph=self._names.make(wanted.language, old.graph if old else ""))
            if old is not None:  # the vectors are of the same passages, and outlast their collection of words
                wanted = msgspec.structs.replace(wanted, vectors=old.vectors, encoder=old.encoder, encoded=old.encoded)
            write_atomic(self.store.root / "milvus.json", msgspec.json.encode(wanted))
            self._names.keep_only(wanted.graph)
        self._send_vectors("")
        if fresh and old is not None and old.uri == wanted.uri:
            self._drop(old.name)
        self.store.set_pending(False)
        yield Update(change.added, change.deleted, len(change.kept), name, time.monotonic() - started, fresh)

    @property
    def vectors(self) -> Path:
        """See corpus.encoding.TakesVectors."""
        return self._dense.folder

    def take_vectors(self, encoder: str) -> tuple[int, int]:
        """See corpus.encoding.TakesVectors."""
        with self.lock():
            if self._built() is None:
                self.sync()
            self._send_vectors(encoder)
            built = self._built()
        return built.encoded if built is not None else 0, self.registry.count(self.collection)[1]

    def _send_vectors(self, encoder: str) -> None:
        """What is finished goes to the server; vectors of another encoder go from there."""
        built, blocks = self._built(), self._dense.blocks(encoder)
        if built is None or blocks is None:
            return
        before = built.vectors if built.encoder == blocks.encoder else ""
        name, held = self._dense.send(blocks, before, _digest)
        changed = msgspec.structs.replace(built, vectors=name, encoder=blocks.encoder if name else "", encoded=held)
        if changed != built:
            write_atomic(self.store.root / "milvus.json", msgspec.json.encode(changed))
        if built.vectors and built.vectors != name:
            self._drop(built.vectors)

    def _drop(self, name: str) -> None:
        """A server that does not answer now keeps a collection that nobody names any more; the user is told which."""
        collection = self._collection(name)
        try:
            if collection.exists():
                collection.drop()
        except ResourceError as error:
            self.notify(f"The collection {name} stays on the server: {error.message}")
        finally:
            self.close()

    def _wanted(self, name: str) -> Built:
        section = self.section
        built = datetime.now(UTC).isoformat(timespec="seconds")
        return Built(section.milvus, name, section.language, VERSION, section.k1, section.b, section.title_boost, built)

    def _built(self) -> Built | None:
        try:
            return decode_json((self.store.root / "milvus.json").read_bytes(), type=Built)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError):
            self.notify("milvus.json is damaged; the collection is built again from the registry.")
            return None

    def forget(self) -> None:
        """Drop the collection; the registry keeps its documents."""
        with self.lock():
            built = self._built()
            if built is not None:
                self._drop(built.name)
                if built.vectors:
                    self._drop(built.vectors)
                (self.store.root / "milvus.json").unlink()
                self._names.keep_only("")
            for blocks in self.vectors.glob("*/block-*.npy"):
                blocks.unlink(missing_ok=True)

    # ── looking
    # ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def generation(self) -> str | None:
        """The collection's name on the server."""
        built = self._built()
        return built.name if built is not None else None

    @property
    def pending(self) -> bool:
        """See SearchIndex.pending."""
        return self.store.pending

    def status(self) -> IndexStatus:
        """See SearchIndex.status; asks the server how many passages it holds. Raises ResourceError if it does not
        answer.
        """
        documents, registered = self.registry.count(self.collection)
        built = self._built()
        held = (
            self._collection(built.name).count()
            if built is not None and self._collection(built.name).exists()
            else None
        )
        served, name, when = (
            ("milvus", built.name, built.built) if built is not None and held is not None else ("nothing", None, "")
        )
        return IndexStatus(
            self.collection, name, held or 0, registered, documents, when, served, self.pending, self.store.holder(), 0,
            self._encoded(built), state_of(self.vectors),
        )  # fmt: skip

    def _encoded(self, built: Built | None) -> int:
        finds = self._dense.encoder
        return built.encoded if built is not None and finds is not None and built.encoder == finds.id() else 0

    def verify(self) -> list[str]:
        """See SearchIndex.verify."""
        built = self._built()
        if built is None or not self._collection(built.name).exists():
            return (
                ["There is no collection on the server although documents are registered."]
                if self.registry.count(self.collection)[1]
                else []
            )
        change = _Change(self._collection(built.name), self.section, write=False)
        for passage in self.registry.passages(self.collection):
            change.offer(passage)
        change.finish()
        counts = (
            (change.added, "missing on the server or older there"),
            (change.deleted, "on the server only, or older there"),
        )
        found = [f"{count:,} passages are {what}; mindchat index sync mends it." for count, what in counts if count]
        if self._names.differs(built.language, built.graph):
            found.append("The name graph differs from the stored documents; mindchat index rebuild mends it.")
        if built.vectors and (blocks := self._dense.blocks(built.encoder)) is not None:
            found += self._dense.differences(built.vectors, blocks, _digest)
        return [*found, "An earlier update did not finish; mindchat index sync resumes it."] if self.pending else found


class _Change:
    """The difference between the registry's stream and a collection, sent in batches."""

    def __init__(self, collection: Collection, section: IndexSection, *, write: bool = True) -> None:
        self._collection, self._analyzer, self._write = collection, Analyzer(section.language), write
        self._boost = max(round(section.title_boost), 0)
        self._held = dict(collection.prints())
        self.kept: set[str] = set()
        self._batch: list[Row] = []
        self.added = self.deleted = 0

    def offer(self, passage: Passage) -> bool:
        """The next passage; whether a batch went out, or enough passages were looked at to tell of it."""
        key = _digest(passage.id, passage.document)
        if key in self.kept:
            return False
        self.kept.add(key)
        print_ = _digest(passage.title, passage.heading, passage.text)
        if self._held.get(key) != print_:
            self.added += 1
            if self._write:
                self._batch.append(Row(key, passage.id, passage.document, print_, self._terms(passage)))
        if len(self._batch) >= _BATCH:
            self._send()
            return True
        return len(self.kept) % _BATCH == 0

    def _terms(self, passage: Passage) -> str:
        title = self._analyzer.terms(f"{passage.title} {passage.heading}") * self._boost
        return clipped(title + self._analyzer.terms(passage.text))

    def _send(self) -> None:
        if self._batch:
            self._collection.put(self._batch)
            self._batch = []

    def finish(self) -> None:
        """Send the rest, remove what is gone."""
        gone = [key for key in self._held if key not in self.kept]
        self.deleted = len(gone)
        if not self._write:
            return
        self._send()
        self._collection.delete(gone)
        if self.added or gone:
            self._collection.settle()


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
