"""Vectors of passages: the blocks in which an encoder's work is kept, and the array that a generation searches.

Owns: what of a passage is encoded, its key, block files, the array's files, the likeness of all passages to a question.
Does not own: the encoder (ports), when to encode (corpus.encoding), mixing with words (dense).
A block is one file, written in one step and never changed, whose name tells its content's hash. So whatever moment a
writer is killed at, the blocks that are there are whole; a damaged one is dropped and encoded again. Keys come from the
passage's content: documents may move, and a text in two documents is encoded once.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from mindchat.corpus.search.impact_matrix import mapped
from mindchat.corpus.search.whoosh_index import searchable_title
from mindchat.paths import private
from mindchat.storage.atomic import write_atomic
from mindchat.values import Passage

KEY_BYTES = 16
KEPT = 512_000_000
"""Bytes of vectors in fp32 that are kept in memory while an index is open: 330,000 passages of 384 numbers."""
_AT_ONCE = 512
"""Vectors that are widened together where there are more: they stay in the processor's cache."""


def read_text(passage: Passage) -> str:
    """What the encoder reads of a passage."""
    return f"{searchable_title(passage)}. {passage.text}"


def key_of(passage: Passage) -> bytes:
    """The same for passages of which the encoder reads the same."""
    return hashlib.blake2b(read_text(passage).encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()


class Vectors(Struct, frozen=True):
    """The vectors of a generation, by row of the matrix."""

    rows: NDArray[np.floating]
    """(passages, dimension), of unit length, in fp16 on disk; zeros where there is none yet."""
    held: NDArray[np.bool_]
    """(passages,): whether there is one."""

    def likeness(self, question: NDArray[np.float32]) -> NDArray[np.float32]:
        """Cosine of every passage with a question's vector: (passages,); 0 where there is no vector."""
        found = np.zeros(len(self.rows), np.float32)
        if self.rows.shape[1:] != question.shape:
            return found
        if self.rows.dtype == np.float32:
            np.dot(self.rows, question, out=found)
            return found
        wide = np.empty((_AT_ONCE, len(question)), np.float32)
        for start in range(0, len(found), _AT_ONCE):
            part = self.rows[start : start + _AT_ONCE]
            np.copyto(wide[: len(part)], part)
            np.dot(wide[: len(part)], question, out=found[start : start + _AT_ONCE])
        return found

    def widened(self) -> Vectors:
        """The same in fp32, in memory, if that is not too much: no processor multiplies fp16 as fast."""
        return self if 2 * self.rows.nbytes > KEPT else Vectors(self.rows.astype(np.float32), self.held)

    def save(self, folder: Path) -> None:
        """Write both files into a new folder."""
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / "row_vectors.npy", self.rows)
        np.save(folder / "row_held.npy", self.held)

    @staticmethod
    def load(folder: Path) -> Vectors:
        """Memory-mapped; raises OSError or ValueError if a file is missing or no array."""
        return Vectors(mapped(folder / "row_vectors.npy"), mapped(folder / "row_held.npy"))


class Blocks:
    """The finished blocks of one encoder. One process writes at a time (corpus.encoding); a reader needs no lock."""

    def __init__(self, folder: Path, encoder: str) -> None:
        """`folder`: holds a folder for each encoder."""
        self.encoder = encoder
        self.folder = folder / re.sub(r"[^\w.@-]", "_", encoder, flags=re.ASCII)
        self._places: dict[bytes, tuple[Path, int]] | None = None

    @staticmethod
    def there(folder: Path) -> bool:
        """Whether anything was ever encoded there."""
        return any(folder.glob("*/block-*.npy"))

    @property
    def keys(self) -> Mapping[bytes, tuple[Path, int]]:
        """Key → where its vector stands; the blocks are read once."""
        if self._places is None:
            self._places = {}
            for file in sorted(self.folder.glob("block-*.npy")):
                if (block := _whole(file)) is not None:
                    self._note(file, block)
        return self._places

    def _note(self, file: Path, block: NDArray[np.void]) -> None:
        assert self._places is not None
        for row, key in enumerate(_keys(block)):
            self._places[key] = file, row

    def put(self, keys: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Keep the vectors of these keys as a block of their own; on the disk when this returns. Raises OSError."""
        known = self.keys  # before the new file is there
        block = np.zeros(len(keys), _kind(vectors.shape[1]))
        block["key"] = np.frombuffer(b"".join(keys), np.uint8).reshape(-1, KEY_BYTES)
        block["vector"] = vectors
        self._note(self._write(block), block)
        assert known is self._places

    def _write(self, block: NDArray[np.void]) -> Path:
        whole = io.BytesIO()
        np.save(whole, block, allow_pickle=False)
        private(self.folder)
        file = self.folder / f"block-{_digest(whole.getvalue())}.npy"
        write_atomic(file, whole.getvalue())
        return file

    def array(self, keys: Sequence[bytes]) -> Vectors:
        """The vectors of these keys in their order; those that are not here are zeros."""
        by_file: dict[Path, list[tuple[int, int]]] = {}
        held = np.zeros(len(keys), np.bool_)
        for at, key in enumerate(keys):
            if key in self.keys:
                file, row = self.keys[key]
                by_file.setdefault(file, []).append((at, row))
        rows = np.zeros((len(keys), 0), np.float16)
        for file, pairs in by_file.items():
            block = _whole(file)
            if block is None:  # gone, or damaged since it was noted
                continue
            if not rows.shape[1]:
                rows = np.zeros((len(keys), block["vector"].shape[1]), np.float16)
            to, of = np.array(pairs, np.int64).T
            rows[to], held[to] = block["vector"][of], True
        return Vectors(rows, held)

    def keep_only(self, keys: Collection[bytes]) -> None:
        """Forget all other vectors: what was removed from the documents shall not stay here. Blocks of other encoders
        go as a whole.
        """
        wanted = set(keys)
        for file in list(self.folder.glob("block-*.npy")):
            block = _whole(file)
            kept = np.array([key in wanted for key in _keys(block)], np.bool_) if block is not None else None
            if block is not None and kept is not None and kept.all():
                continue
            if block is not None and kept is not None and kept.any():
                self._write(block[kept])
            file.unlink(missing_ok=True)
        for other in self.folder.parent.glob("*/block-*.npy"):
            if other.parent != self.folder:
                other.unlink(missing_ok=True)
        self._places = None


def _kind(dimension: int) -> np.dtype[np.void]:
    return np.dtype([("key", np.uint8, (KEY_BYTES,)), ("vector", np.float16, (dimension,))])


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _keys(block: NDArray[np.void]) -> list[bytes]:
    whole = block["key"].tobytes()
    return [whole[start : start + KEY_BYTES] for start in range(0, len(whole), KEY_BYTES)]


def _whole(file: Path) -> NDArray[np.void] | None:
    """The block; None if it is gone, or its content is not what its name says."""
    with contextlib.suppress(OSError, ValueError):
        content = file.read_bytes()
        if file.name == f"block-{_digest(content)}.npy":
            block: NDArray[np.void] = np.load(io.BytesIO(content), allow_pickle=False)
            return block
    return None
