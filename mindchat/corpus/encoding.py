"""Making the vectors of a collection's passages: a long piece of work that may stop and go on at any moment.

Owns: which passages lack a vector, their order, the encoding lock, pausing, progress, and the background process's
marks. Does not own: the vectors' files (search.vectors), the encoder (ports), the generation that takes them in (index).
Beside the writer's lock, which is held only while a generation takes the vectors in, so that documents can be added and
searched meanwhile.

    vectors/ENCODER/block-….npy   finished work
    vectors/encode.lock           held by the process that encodes; encode.json says which, and how far it is
    vectors/PAUSE                 asks that process to stop after its block
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec import Struct

from mindchat.corpus.search.generations import full_disk_is_an_error
from mindchat.document_ports import Registry
from mindchat.errors import IndexLockedError
from mindchat.paths import private
from mindchat.ports import Cancel, Encoder
from mindchat.storage.atomic import write_atomic
from mindchat.text.foreign_json import decode_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLOCK = 256
"""Passages of a block: what is lost at most when a writer is killed."""
_WINDOW = 8 * BLOCK
"""Passages whose texts are held at once; within them those of like length are encoded together, which is quicker."""
_BEHIND = """
import os, sys
if hasattr(os, "nice"):
    os.nice(10)
from mindchat.cli.command_runner import leave, run
leave(run(["index", "encode", "--json", *sys.argv[1:]]))
"""
_STARTED: list[subprocess.Popen[bytes]] = []
"""Processes that this one has started."""
_STEP = 32
"""Passages between two looks at the cancel token."""


class Encoding(Struct, frozen=True):
    """How far it is."""

    done: int
    """Passages that have a vector."""
    total: int
    eta_seconds: float | None = None
    """At the rate of this run; None before there is one."""


class Encoded(Struct, frozen=True):
    """The end of a run."""

    vectors: int
    """Passages that can be found by their meaning now."""
    passages: int
    made: int
    """In this run."""
    seconds: float
    paused: bool
    """It was stopped before all had one; the next run goes on from here."""


class Note(Struct, frozen=True):
    """What encode.json says."""

    pid: int
    done: int
    total: int


class TakesVectors(Protocol):
    """An index that searches by vectors too."""

    collection: str

    @property
    def registry(self) -> Registry:
        """The documents that it follows."""
        ...

    @property
    def vectors(self) -> Path:
        """The folder of the blocks."""
        ...

    def take_vectors(self, encoder: str) -> tuple[int, int]:
        """Bring the finished blocks into what is searched: (passages with a vector, all passages)."""
        ...


def encode(
    index: TakesVectors, load: Callable[[], Encoder], encoder: str, cancel: Cancel
) -> Iterator[Encoding | Encoded]:
    """Encode what has no vector yet, then let the index take all in; the last item is Encoded.

    Cancelled or paused, it ends after the passages at hand, and the index takes in what is finished. `load` is called
    only if something lacks a vector. Raises IndexLockedError if another process encodes, ResourceError for a full disk.
    """
    from mindchat.corpus.search.vectors import Blocks

    with _only_one(index.vectors), full_disk_is_an_error(index.vectors):
        started, blocks = time.monotonic(), Blocks(index.vectors, encoder)
        wanted = dict(_all(index))
        missing = {key: id_ for key, id_ in wanted.items() if key not in blocks.keys}
        total, before = len(wanted), len(wanted) - len(missing)
        made, stopped = 0, False
        _tell(index.vectors, before, total)
        yield Encoding(before, total)
        loaded = load() if missing else None
        for keys, texts in _portions(index.registry, missing):
            assert loaded is not None
            for start in range(0, len(keys), BLOCK):
                finished = _block(loaded, texts[start : start + BLOCK], lambda: _stopped(index.vectors, cancel))
                stopped = finished is None
                if finished is None:
                    break
                blocks.put(keys[start : start + BLOCK], finished)
                made += len(finished)
                _tell(index.vectors, before + made, total)
                rate = made / max(time.monotonic() - started, 1e-9)
                yield Encoding(before + made, total, (len(missing) - made) / rate)
            if stopped:
                break
        vectors, passages = index.take_vectors(encoder)
        yield Encoded(vectors, passages, made, time.monotonic() - started, stopped)


def _all(index: TakesVectors) -> Iterator[tuple[bytes, str]]:
    """Key and id of each passage that is indexed: equal ones once, as in the builder."""
    from mindchat.corpus.search.twins import content_key
    from mindchat.corpus.search.vectors import key_of

    seen = set[bytes]()
    for passage in index.registry.passages(index.collection):
        if (content := content_key(passage)) not in seen:
            seen.add(content)
            yield key_of(passage), passage.id


def _portions(registry: Registry, missing: dict[bytes, str]) -> Iterator[tuple[list[bytes], list[str]]]:
    """Keys and texts, shortest first within each portion."""
    from mindchat.corpus.search.vectors import key_of, read_text

    pairs = list(missing.items())
    for start in range(0, len(pairs), _WINDOW):
        read = [(key, registry.passage(id_)) for key, id_ in pairs[start : start + _WINDOW]]
        # removed or changed meanwhile: the next run sees its new text
        texts = [(key, read_text(here)) for key, here in read if here is not None and key_of(here) == key]
        texts.sort(key=lambda pair: len(pair[1]))
        yield [key for key, _ in texts], [text for _, text in texts]


def _block(encoder: Encoder, texts: list[str], stopped: Callable[[], bool]) -> NDArray[np.float32] | None:
    """The vectors of a block; None if it was stopped before its end."""
    import numpy as np

    parts = []
    for start in range(0, len(texts), _STEP):
        if stopped():
            return None
        parts.append(encoder.passages(texts[start : start + _STEP]))
    return np.concatenate(parts)


# ── one at a time, and who


@contextlib.contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    import filelock

    private(folder)
    lock = filelock.FileLock(folder / "encode.lock", thread_local=False)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise _at_work(read_note(folder)) from None
    try:
        (folder / "PAUSE").unlink(missing_ok=True)
        yield
    finally:
        (folder / "encode.json").unlink(missing_ok=True)
        lock.release()


def _at_work(note: Note | None) -> IndexLockedError:
    who = f" (pid {note.pid}, {note.done:,} of {note.total:,})" if note is not None else ""
    return IndexLockedError(
        f"Another process{who} encodes these passages.",
        "mindchat index encode --pause stops it; what is finished is kept.",
    )


def _tell(folder: Path, done: int, total: int) -> None:
    write_atomic(folder / "encode.json", msgspec.json.encode(Note(os.getpid(), done, total)))


def _stopped(folder: Path, cancel: Cancel) -> bool:
    return cancel.cancelled or (folder / "PAUSE").exists()


def read_note(folder: Path) -> Note | None:
    """Who encodes, and how far it is; None if nobody does."""
    try:
        return decode_json((folder / "encode.json").read_bytes(), Note)
    except (OSError, msgspec.DecodeError):
        return None


def running(folder: Path) -> Note | None:
    """read_note, if that process still works: a killed one leaves its note."""
    import filelock

    _STARTED[:] = [child for child in _STARTED if child.poll() is None]  # who has ended is taken leave of
    note = read_note(folder)
    if note is None:
        return None
    probe = filelock.FileLock(folder / "encode.lock")
    try:
        probe.acquire(timeout=0)
    except filelock.Timeout:
        return note
    probe.release()
    return None


def state_of(folder: Path) -> str:
    """For people: how far the process at work is; "" if there is none."""
    note = running(folder)
    return f"{note.done:,} of {note.total:,} passages (pid {note.pid})" if note is not None else ""


def start_behind(folder: Path, arguments: Sequence[str]) -> int:
    """Start `mindchat index encode` with these arguments as a process that outlives this one; its id."""
    from mindchat import child_process

    if (note := running(folder)) is not None:
        raise _at_work(note)
    null = subprocess.DEVNULL
    child = child_process.start(
        ["-c", _BEHIND, *arguments], stdin=null, stdout=null, stderr=null, start_new_session=True
    )
    _STARTED.append(child)
    return child.pid


def pause(folder: Path) -> bool:
    """Ask the process that encodes to stop; whether there is one."""
    if running(folder) is None:
        return False
    write_atomic(folder / "PAUSE", b"")
    return True
