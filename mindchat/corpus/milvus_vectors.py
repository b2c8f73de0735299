"""The vectors beside a Milvus collection: the encoder's work is kept here in blocks, and sent to the server, which
searches it.

Owns: bringing the server's vectors to what is finished, asking it for the nearest passages. Does not own: the blocks
(search.vectors), the server's calls (milvus_client), which collection is in force (milvus.json says so).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mindchat.config import IndexSection
from mindchat.corpus.search.dense import NEAREST
from mindchat.corpus.search.meaning import can_encode, tell_missing
from mindchat.corpus.search.milvus_client import VectorCollection, VectorRow
from mindchat.corpus.search.vectors import Blocks, key_of
from mindchat.document_ports import Registry
from mindchat.ports import FindsEncoder

_BATCH = 500


class SentVectors:
    """The vectors of one collection on the server."""

    def __init__(
        self, section: IndexSection, registry: Registry, collection: str, folder: Path, encoder: FindsEncoder | None
    ) -> None:
        self.folder, self.encoder = folder, encoder
        self._section, self._registry, self._collection = section, registry, collection
        self._open: VectorCollection | None = None
        self._told = ""

    def on_server(self, name: str) -> VectorCollection:
        """The collection of that name, whose connection is kept."""
        if self._open is None or self._open.name != name:
            self.close()
            self._open = VectorCollection(self._section, name)
        return self._open

    def close(self) -> None:
        """Drop the connection."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def blocks(self, encoder: str) -> Blocks | None:
        """The finished vectors: of this encoder, else of the one that the settings name; None without any."""
        wanted = encoder or (self.encoder.id() if self.encoder is not None else None)
        return Blocks(self.folder, wanted) if wanted and Blocks.there(self.folder) else None

    def send(self, blocks: Blocks, name: str, key: Callable[[str, str], str]) -> tuple[str, int]:
        """Bring the server to what is finished: (collection, passages with a vector). `name`: the collection before;
        "" or a vanished one is made. `key`: of a passage's id and document.
        """
        rows = {key(passage.id, passage.document): passage for passage in self._registry.passages(self._collection)}
        prints = {at: key_of(passage) for at, passage in rows.items()}
        finished = [at for at in rows if prints[at] in blocks.keys]
        if not finished:
            return "", 0
        fresh = not name or not self.on_server(name).exists()
        name = f"mindchat_{secrets.token_hex(8)}" if fresh else name
        server = self.on_server(name)
        if fresh:
            server.make(blocks.array([prints[finished[0]]]).rows.shape[1])
        held = {} if fresh else dict(server.prints())
        wanted = set(finished)
        missing = [at for at in finished if held.get(at) != prints[at].hex()]
        for start in range(0, len(missing), _BATCH):
            part = missing[start : start + _BATCH]
            array = blocks.array([prints[at] for at in part])
            server.put_vectors(
                [
                    VectorRow(at, rows[at].id, rows[at].document, prints[at].hex(), vector)
                    for at, vector, there in zip(part, array.rows, array.held, strict=True)
                    if there
                ]
            )
        gone = [at for at in held if at not in wanted]
        server.delete(gone)
        if missing or gone:
            server.settle()
        blocks.keep_only(prints.values())
        return name, len(finished)

    def nearest(
        self, question: str, name: str, made_by: str, held: int, passages: int, roots: Sequence[str],
        notify: Callable[[str], None],
    ) -> list[tuple[str, float]]:  # fmt: skip
        """(id, cosine) of the passages nearest to a question; [], told once, where there is no vector of this encoder."""
        if self.encoder is None:
            return []
        said: list[str] = []
        here = can_encode(self.encoder, said.append)
        usable = here and bool(name) and made_by == self.encoder.id()
        if here:
            tell_missing(held if usable else 0, passages, said.append)
        for sentence in said if said and self._told != said[0] else ():
            notify(sentence)
            self._told = sentence
        if not usable:
            return []
        return self.on_server(name).nearest(self.encoder.load().question(question), NEAREST, roots)

    def differences(self, name: str, blocks: Blocks, key: Callable[[str, str], str]) -> Iterator[str]:
        """How the server's vectors differ from what is finished; one sentence if they do."""
        finished = {
            key(passage.id, passage.document): key_of(passage).hex()
            for passage in self._registry.passages(self._collection)
            if key_of(passage) in blocks.keys
        }
        server = self.on_server(name)
        if (dict(server.prints()) if server.exists() else {}) != finished:
            yield "The vectors on the server are not those that were made; mindchat index sync mends it."
