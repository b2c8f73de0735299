"""One new generation: what changed goes into a copy of the index of record, then matrix and name graph are derived, and
the vectors that are finished are laid beside them.

Owns: telling new, changed and vanished passages from the registry's stream; passages that stand in several places. Does
not own: locks, the pointer (generations), when to build (index).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from mindchat.corpus.search import names
from mindchat.corpus.search.analyze import Analyzer
from mindchat.corpus.search.bm25f import Params
from mindchat.corpus.search.generations import Manifest, Store, link_tree
from mindchat.corpus.search.graph import Graph, same
from mindchat.corpus.search.impact_matrix import Matrix, from_record
from mindchat.corpus.search.twins import content_key
from mindchat.corpus.search.vectors import Blocks, Vectors, key_of
from mindchat.corpus.search.weave import woven
from mindchat.corpus.search.whoosh_index import Record, Writer, fingerprint
from mindchat.document_ports import Registry
from mindchat.errors import MemoryStoreError
from mindchat.ports import NEVER, Cancel
from mindchat.text.foreign_json import decode_json
from mindchat.values import Passage


class Builder:
    """Collects passages by offer(), then settle(), then commit(), derive(), weave() or, where nothing of the passages
    changed, relink(); then embed(). close() in any case.
    """

    def __init__(
        self,
        store: Store,
        base: Path | None,
        analyzer: Analyzer,
        space: int,
        cancel: Cancel = NEVER,
        blocks: Blocks | None = None,
    ) -> None:
        """`space`: bytes that must be free before anything is written. `cancel`: each step raises Interrupted soon after
        it is set. `blocks`: finished vectors, if there are any.
        """
        self.blocks = blocks
        self._meanings: dict[str, bytes] = {}
        self.added = self.deleted = self.kept = 0
        self.places: dict[str, list[str]] = {}
        """Passage id → uris of further documents that hold the same passage."""
        self._store, self._base, self._analyzer, self._space = store, base, analyzer, space
        self._cancel = cancel
        self._folder: Path | None = None
        self._writer: Writer | None = None
        self._known = _known(base)
        self._ids: dict[str, int] = {}
        self._words: dict[bytes, str] = {}
        self._order: list[str] = []

    @property
    def folder(self) -> Path:
        """The generation being built; it exists from the first change on."""
        if self._folder is None:
            self._store.need_space(self._space)
            self._folder = self._store.begin()
            if self._base is not None:
                link_tree(self._base / "record", self._folder / "record")
        return self._folder

    def offer(self, passage: Passage) -> None:
        """The next passage of the registry; each content (twins.content_key) is indexed once, with all its places.

        Raises MemoryStoreError if two texts come under one id: the registry gives each passage an id of its own.
        """
        twin = self._words.setdefault(content_key(passage), passage.id)
        if twin != passage.id:
            self.places.setdefault(twin, []).append(passage.document)
            return
        if passage.id in self._ids:
            raise MemoryStoreError(f"Two passages are called {passage.id}.", "mindchat doctor looks at the registry.")
        if self.blocks is not None:
            self._meanings[passage.id] = key_of(passage)
        number, print_ = self._known.get(passage.id, (-1, b""))
        if number >= 0 and print_ == fingerprint(passage):
            self._ids[passage.id] = number
            self.kept += 1
            return
        self._ids[passage.id] = -1
        self._open_writer().add(passage, self._cancel)
        self.added += 1

    def settle(self) -> bool:
        """Delete what is gone or was replaced; whether anything differs from the base."""
        gone = [number for id_, (number, _) in self._known.items() if self._ids.get(id_, -1) < 0]
        if gone:
            self._open_writer().delete(gone)
            self.deleted = len(gone)
        return bool(self._writer) or self.places != _read_places(self._base)

    def commit(self) -> None:
        """Write the index of record."""
        if self._writer is None and self._base is None:
            self._open_writer()
        if self._writer is not None:
            self._writer.commit(self._cancel)
            self._writer = None

    def derive(self, params: Params | None) -> int:
        """Write matrix (unless None) and places; the number of searchable passages."""
        (self.folder / "places.json").write_text(json.dumps(self.places), encoding="utf-8")
        record = Record(self.folder / "record")
        try:
            if params is not None:
                from_record(record, params, self._cancel).save(self.folder / "matrix")
            self._order = live_ids(record)
            return len(self._order)
        finally:
            record.close()

    def weave(self, registry: Registry, collection: str, base: Graph | None) -> None:
        """Write the name graph of the record's passages, in the order of the matrix; `base`: the graph before."""
        woven(registry, collection, self._analyzer, base, self._order, self._cancel).save(self.folder / "graph")

    def relink(self) -> int:
        """Take everything but the vectors from the base as it is; the number of searchable passages."""
        assert self._base is not None
        for name in ("matrix", "graph"):
            if (self._base / name).is_dir():
                link_tree(self._base / name, self.folder / name)
        (self.folder / "places.json").write_text(json.dumps(self.places), encoding="utf-8")
        record = Record(self.folder / "record")
        try:
            self._order = live_ids(record)
        finally:
            record.close()
        return len(self._order)

    @property
    def encoded(self) -> tuple[str, int]:
        """Encoder and number of the vectors that embed() would write; ("", 0) without any."""
        if self.blocks is None:
            return "", 0
        held = sum(key in self.blocks.keys for key in self._meanings.values())
        return (self.blocks.encoder, held) if held else ("", 0)

    def embed(self) -> tuple[str, int]:
        """Write the vectors that are finished, in the order of the matrix; as `encoded`."""
        encoder, held = self.encoded
        if self.blocks is not None and held:
            array = self.blocks.array([self._meanings[id_] for id_ in self._order])
            array.save(self.folder / "vectors")
            held = int(array.held.sum())
        return (encoder, held) if held else ("", 0)

    def forget_vectors(self) -> None:
        """Of passages that are there no more."""
        if self.blocks is not None:
            self.blocks.keep_only(self._meanings.values())

    def close(self) -> None:
        """Drop what was not finished."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.cancel()
        if self._folder is not None:
            self._store.abandon(self._folder)

    def _open_writer(self) -> Writer:
        if self._writer is None:
            self._writer = Writer(self.folder / "record", self._analyzer, create=self._base is None)
        return self._writer


def live_ids(record: Record) -> list[str]:
    """Passage ids in the order of the matrix's columns and the graph's rows."""
    return [record.rows.ids[at] for at in np.flatnonzero(record.rows.live).tolist()]


def _known(base: Path | None) -> dict[str, tuple[int, bytes]]:
    """Passage id → (document number, fingerprint) of the base."""
    if base is None:
        return {}
    record = Record(base / "record")
    try:
        rows = record.rows
        return {
            id_: (number, print_)
            for number, (id_, print_) in enumerate(zip(rows.ids, rows.prints, strict=True))
            if rows.live[number]
        }
    finally:
        record.close()


def _read_places(base: Path | None) -> dict[str, list[str]]:
    return {} if base is None else read_places(base)


def read_places(generation: Path) -> dict[str, list[str]]:
    """Passage id → uris of further documents that hold the same passage."""
    places: dict[str, list[str]] = decode_json((generation / "places.json").read_bytes())
    return places


def differences(generation: Path, passages: Iterable[Passage]) -> Iterator[str]:
    """How record and matrix of a generation differ from the registry's passages and from each other, one sentence each."""
    known, seen, words = _known(generation), set[str](), set[bytes]()
    missing = changed = twice = 0
    for passage in passages:
        if content_key(passage) in words:
            continue
        if passage.id in seen:
            twice += 1
            continue
        seen.add(passage.id)
        words.add(content_key(passage))
        if passage.id not in known:
            missing += 1
        elif known[passage.id][1] != fingerprint(passage):
            changed += 1
    extra = len(known.keys() - seen)
    if twice:
        yield f"{twice:,} passages share an id with another one; mindchat doctor looks at the registry."
    for count, what in (
        (missing, "missing from the index"),
        (changed, "older in the index than in the registry"),
        (extra, "in the index only"),
    ):
        if count:
            yield f"{count:,} passages are {what}; mindchat index sync mends it."
    if (generation / "matrix").is_dir():
        yield from _matrix_differences(generation)


def _matrix_differences(generation: Path) -> Iterator[str]:
    import msgspec

    params = msgspec.convert(decode_json((generation / "manifest.json").read_bytes())["params"], Params)
    record, stored = Record(generation / "record"), Matrix.load(generation / "matrix")
    try:
        fresh = from_record(record, params)
    finally:
        record.close()
    same = all(
        np.array_equal(getattr(fresh, name), getattr(stored, name))
        for name in ("ends", "columns", "impacts", "document")
    )
    if not same or list(fresh.terms) != list(stored.terms) or list(fresh.ids) != list(stored.ids):
        yield "The impact matrix differs from the index of record; mindchat index rebuild mends it."


def read_graph(generation: Path | None, manifest: Manifest | None) -> Graph | None:
    """The name graph of a generation, if it was made as graphs are made now."""
    if generation is None or manifest is None or manifest.graph != names.VERSION:
        return None
    return Graph.load(generation / "graph")


def graph_differences(generation: Path, manifest: Manifest, registry: Registry, collection: str) -> Iterator[str]:
    """Whether the name graph is the one that the registry's texts give; one sentence if not."""
    stored = read_graph(generation, manifest)
    if stored is not None:
        order = [id_.decode("utf-8", "surrogatepass") for id_ in stored.ids]
        if not same(stored, woven(registry, collection, Analyzer(manifest.language), None, order)):
            yield "The name graph differs from the stored documents; mindchat index rebuild mends it."


def vector_differences(
    generation: Path, manifest: Manifest, blocks: Blocks, passages: Iterable[Passage]
) -> Iterator[str]:
    """Whether the vectors of a generation are those that were made of its passages' texts; one sentence if not. Finished
    ones that it does not have yet are no difference.
    """
    if manifest.encoder != blocks.encoder:
        return
    keys = {passage.id: key_of(passage) for passage in passages}
    record = Record(generation / "record")
    try:
        made = blocks.array([keys.get(id_, b"") for id_ in live_ids(record)])
    finally:
        record.close()
    stored = Vectors.load(generation / "vectors")
    held = stored.held
    if not np.array_equal(made.held & held, held) or not np.array_equal(stored.rows[held], made.rows[held]):
        yield "The vectors are not those that were made of the stored documents; mindchat index sync mends it."
