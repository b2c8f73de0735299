"""One way to replace a file: readers see the old content or the new one, never a part, also after a kill or a power
cut.

Owns: writing beside the file, flushing to the disk, the rename, the rights of the new file. Does not own: what stands
in it, or what a failure means to the caller (OSError passes through).
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

PRIVATE = 0o600
"""Readable and writable by its owner only."""


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to; at the end of the block it takes the place of `path`. Raises OSError; then
    `path` is unchanged.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")  # two threads may write at once
    try:
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(path)
        _settle_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def write_atomic(path: Path, content: bytes | str, *, mode: int = PRIVATE) -> None:
    """Replace a small file in one step. `mode`: its rights. Raises OSError; then the old file is unchanged."""
    body = content.encode("utf-8") if isinstance(content, str) else content
    with replacing(path) as part, os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(body)


def _settle_folder(folder: Path) -> None:
    """The rename itself is on the disk; Windows cannot open a folder and needs no such step."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
