"""Generations: an index is never changed in place; a new one is built beside it and takes over in one atomic step.

Owns: the folder layout, the manifest with checksums, the pointer, the lock with its holder, and the marks that survive
a crash.
Does not own: what is inside a generation.

    CURRENT            name of the generation in use (replaced atomically)
    PENDING            stands while documents have been stored that the index may not know yet
    write.lock         held by the one process that writes; write.lock.json says which
    gen-000007/        manifest.json, record/ (Whoosh), matrix/, graph/, vectors/, places.json
    building-000008/   unfinished; removed by the next writer
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from mindchat.corpus.search import analyze
from mindchat.corpus.search.bm25f import Params
from mindchat.corpus.search.names import VERSION as GRAPH_VERSION
from mindchat.errors import IndexLockedError, ResourceError
from mindchat.paths import private
from mindchat.storage.atomic import write_atomic
from mindchat.text.foreign_json import decode_json

FORMAT = 2
"""Version of the layout; another one is rebuilt."""
_READ = 1 << 20


class Damaged(Exception):
    """A generation whose files are not what its manifest says; the message names the file."""


class Manifest(Struct, frozen=True):
    """What a generation holds."""

    files: dict[str, tuple[int, int]]
    """Relative path → (bytes, CRC-32)."""
    passages: int
    language: str
    params: Params
    has_matrix: bool
    built: str
    """UTC, ISO 8601."""
    seconds: float
    analysis: int = analyze.VERSION
    format: int = FORMAT
    graph: int = 0
    """Version of the name graph's making; 0: there is none."""
    encoder: str = ""
    """Whose vectors stand in vectors/; "": there are none."""
    vectors: int = 0
    """Passages that have one."""


class Store:
    """The folder of one collection's index."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._held_by: int | None = None

    # ── reading
    # ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def current(self) -> str | None:
        """Name of the generation in use; None if there is none."""
        try:
            name = (self.root / "CURRENT").read_text(encoding="ascii").strip()
        except (FileNotFoundError, UnicodeDecodeError):
            return None
        return name if name.startswith("gen-") and "/" not in name else None

    def examine(self, name: str) -> tuple[Manifest, list[tuple[str, str]]]:
        """The manifest, and (file, complaint) for each file that is not as written; raises Damaged without a readable
        manifest.
        """
        folder = self.root / name
        try:
            manifest = decode_json((folder / "manifest.json").read_bytes(), type=Manifest)
        except (OSError, msgspec.DecodeError) as error:
            raise Damaged("manifest.json is missing or unreadable") from error
        problems = []
        for path, (size, crc) in manifest.files.items():
            try:
                actual = checksum(folder / path)
            except OSError:
                problems.append((path, f"{path} is missing or unreadable"))
                continue
            if actual[0] != size:
                problems.append((path, f"{path} has {actual[0]:,} of {size:,} bytes"))
            elif actual[1] != crc:
                problems.append((path, f"{path} has other bytes than were written"))
        return manifest, problems

    def manifest(self, name: str) -> Manifest:
        """The manifest of an unhurt generation; raises Damaged."""
        manifest, problems = self.examine(name)
        if problems:
            raise Damaged(problems[0][1])
        return manifest

    # ── marks
    # ────────────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def pending(self) -> bool:
        """Whether a writer stopped between storing documents and swapping in the index that knows them."""
        return (self.root / "PENDING").exists()

    def set_pending(self, waiting: bool) -> None:
        """Set or clear the mark."""
        private(self.root)
        mark = self.root / "PENDING"
        if waiting:
            write_atomic(mark, f"{os.getpid()}\n".encode())
        else:
            mark.unlink(missing_ok=True)

    # ── writing
    # ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    @contextlib.contextmanager
    def lock(self, seconds: float) -> Iterator[None]:
        """Be the only writer. Raises IndexLockedError, naming the holder, after `seconds`. The thread that holds it may
        enter again.
        """
        import filelock

        if self._held_by == threading.get_ident():
            yield
            return
        private(self.root)
        # thread_local=False: a generator that holds the lock may be closed by another thread
        guard, note = filelock.FileLock(self.root / "write.lock", thread_local=False), self.root / "write.lock.json"
        try:
            guard.acquire(timeout=seconds)
        except filelock.Timeout:
            raise IndexLockedError(
                f"Another process{_holder(note)} is writing the index; waited {seconds:g} s.",
                "Try again when it has finished, or raise index.lock_seconds.",
            ) from None
        try:
            self._held_by = threading.get_ident()
            write_atomic(note, json.dumps({"pid": os.getpid(), "since": _now()}).encode())
            yield
        finally:
            self._held_by = None
            note.unlink(missing_ok=True)
            guard.release()

    def holder(self) -> int | None:
        """Process id of the writer at work; None if nobody writes."""
        import filelock

        if not (self.root / "write.lock.json").exists():
            return None
        probe = filelock.FileLock(self.root / "write.lock")
        try:
            probe.acquire(timeout=0)
        except filelock.Timeout:
            return _note(self.root / "write.lock.json").get("pid")
        probe.release()
        return None

    def begin(self) -> Path:
        """An empty folder for the next generation; what a killed writer left is removed first."""
        for left in self.root.glob("building-*"):
            shutil.rmtree(left, ignore_errors=True)
        names = [path.name for path in self.root.glob("gen-*")]
        with contextlib.suppress(OSError):  # whoever still has the damaged one open must see that this is another
            names.append((self.root / "damaged" / "GENERATION").read_text(encoding="ascii").strip())
        numbers = [int(name[4:]) for name in names if name[4:].isdigit()]
        folder = self.root / f"building-{max(numbers, default=0) + 1:06d}"
        folder.mkdir()
        return folder

    def abandon(self, building: Path) -> None:
        """Remove an unfinished generation."""
        shutil.rmtree(building, ignore_errors=True)

    def finish(
        self,
        building: Path,
        *,
        passages: int,
        language: str,
        params: Params,
        seconds: float,
        encoder: str = "",
        vectors: int = 0,
    ) -> str:
        """Check in the files, make them durable, swap the pointer, keep one predecessor; the new name."""
        files = {}
        for path in sorted(building.rglob("*")):
            if path.is_file():
                if path.name.endswith("LOCK"):
                    path.unlink()
                    continue
                files[path.relative_to(building).as_posix()] = checksum(path, durable=True)
        matrix, graph = (building / "matrix").is_dir(), GRAPH_VERSION if (building / "graph").is_dir() else 0
        manifest = Manifest(
            files, passages, language, params, matrix, _now(), seconds, graph=graph, encoder=encoder, vectors=vectors
        )
        write_atomic(building / "manifest.json", msgspec.json.format(msgspec.json.encode(manifest)))
        before = self.current()
        name = building.name.replace("building-", "gen-")
        building.rename(self.root / name)
        write_atomic(self.root / "CURRENT", f"{name}\n".encode())
        for old in self.root.glob("gen-*"):
            if old.name not in (name, before):
                shutil.rmtree(old, ignore_errors=True)
        return name

    def set_aside(self, name: str) -> None:
        """Keep a damaged generation out of the way (one of them), for whoever wants to look at it."""
        aside = self.root / "damaged"
        shutil.rmtree(aside, ignore_errors=True)
        (self.root / "CURRENT").unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            (self.root / name).rename(aside)
            (aside / "GENERATION").write_text(f"{name}\n", encoding="ascii")

    def need_space(self, wanted: int) -> None:
        """Refuse early when the disk cannot hold `wanted` more bytes."""
        private(self.root)
        free = shutil.disk_usage(self.root).free
        if free < wanted:
            raise ResourceError(
                f"The index needs about {wanted / 1e6:,.0f} MB more in {self.root}, and {free / 1e6:,.0f} MB are free.",
                "Free some space, or set MINDCHAT_HOME to another disk.",
            )


@contextlib.contextmanager
def full_disk_is_an_error(root: Path) -> Iterator[None]:
    """Turn 'no space left' into a sentence for people."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise ResourceError(
            f"The disk is full: {root}.", "The index before this change still works; free some space and sync."
        ) from error


def link_tree(source: Path, target: Path) -> None:
    """A copy of a folder that shares its files' bytes where the disk allows it. Whoosh never changes a written file."""
    for path in source.rglob("*"):
        place = target / path.relative_to(source)
        if path.is_dir():
            place.mkdir(parents=True, exist_ok=True)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, place)
        except OSError:
            shutil.copy2(path, place)


def checksum(path: Path, *, durable: bool = False) -> tuple[int, int]:
    """(bytes, CRC-32) of a file; with `durable`, it is also flushed to the disk."""
    size = crc = 0
    with path.open("rb") as file:
        while piece := file.read(_READ):
            size, crc = size + len(piece), zlib.crc32(piece, crc)
        if durable:
            os.fsync(file.fileno())
    return size, crc


def _note(path: Path) -> Mapping[str, Any]:
    try:
        note = decode_json(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


def _holder(note: Path) -> str:
    pid = _note(note).get("pid")
    return f" (pid {pid})" if isinstance(pid, int) else ""


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
