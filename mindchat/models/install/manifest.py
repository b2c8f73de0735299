"""The marker file of an installed model: which bytes it was made from, and what belongs to it.

Owns: `mindchat.json` in a model folder, the question whether such a folder is complete, and whether its files still
hold the bytes that were installed. Does not own: who writes the rest of the folder (convert, hub) and where it stands
(store). A file is read for its hash only if its size, time or inode differ from the last check, so a load of checked
files reads nothing twice. A folder that an older version installed has no hashes; what it holds at its first check
counts as what was installed.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mindchat.errors import ResourceError
from mindchat.storage.atomic import write_atomic
from mindchat.text.clean import clean_line
from mindchat.text.foreign_json import decode_json

CONVERTER = 1
"""Raised when a folder made by an older version must be made again."""
MARKER = "mindchat.json"
_PLAIN = re.compile(r"[A-Za-z0-9_][\w.+-]{0,199}", re.ASCII)
PACK = "weights.pack"
"""Copies of the weights in fewer bytes (packed); a safetensors file whose name keeps it apart from the weights, which
are found by their suffix.
"""


class Checked(Struct, frozen=True):
    """A file as it was when its hash was right."""

    size: int
    mtime_ns: int
    inode: int


class Manifest(Struct, frozen=True):
    """What the marker file says."""

    converter: int
    source: str
    """File name of the GGUF, or repository@revision."""
    sha256: str
    """Of the GGUF, or over the names and hashes of all files; the model's file hash in reports."""
    dtype: str
    """Of the stored weights."""
    parameters: int
    window: int
    """Tokens."""
    transformers: str
    """The version that converted; empty if nothing was converted."""
    files: dict[str, int]
    """File name -> bytes; a folder that lacks one of them is not complete."""
    source_size: int = 0
    source_mtime_ns: int = 0
    licence: str = ""
    hashes: dict[str, str] = {}
    """File name -> SHA-256, hexadecimal."""
    checked: dict[str, Checked] = {}
    """File name -> what it was at the last check."""


def is_plain(name: str) -> bool:
    """Whether this names a file inside a folder and nothing else: no path, no hidden file, no sign that a terminal or a
    shell would obey.
    """
    return _PLAIN.fullmatch(name) is not None


def flat(path: str) -> str:
    """The name in a model's folder of a file that stands deeper in its source: 1_Pooling.config.json."""
    return path.replace("/", ".")


def read_manifest(folder: Path) -> Manifest | None:
    """The folder's manifest, or None if the folder is not complete or was made by another version of the converter.

    A pipe that has the name of one of its files is none: nothing waits for it.
    """
    try:
        if not (folder / MARKER).is_file():
            return None
        manifest = decode_json((folder / MARKER).read_bytes(), type=Manifest)
        complete = all(map(is_plain, manifest.files)) and all(
            (folder / name).is_file() and (folder / name).stat().st_size == size
            for name, size in manifest.files.items()
        )
    except (OSError, msgspec.MsgspecError):
        return None
    return manifest if complete and manifest.converter == CONVERTER else None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the marker, the last file of a folder; hashes that it does not give are those of the files as they are."""
    hashes = {name: manifest.hashes.get(name) or sha256_of(folder / name) for name in manifest.files}
    _write(folder, replace(manifest, hashes=hashes, checked={name: _state(folder / name) for name in hashes}))


def require_sound(folder: Path, name: str) -> None:
    """Raise ResourceError if a file of the installed model `name` is not what was installed.

    Of a user's own folder, which has no manifest, only what would keep a reader waiting is refused.
    """
    for path in sorted(folder.iterdir()):
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise ResourceError(
                f"The model {name} cannot be read: {clean_line(path.name)} in its folder is no file (device, pipe or"
                " socket).",
                f"Remove {clean_line(str(path))}.",
            )
    if wrong := damaged(folder):
        raise ResourceError(
            f"The model {name} is damaged: {', '.join(wrong)} in {folder} no longer holds what was installed.",
            f"mindchat models remove {name}, then mindchat models pull {name}",
        )


def damaged(folder: Path, *, again: bool = False) -> tuple[str, ...]:
    """The files whose bytes differ from the installed ones. `again`: read all of them, also those that seem untouched
    since the last check.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        return ()
    found = {name: _state(folder / name) for name in manifest.files}
    due = [name for name in found if again or manifest.checked.get(name) != found[name] or name not in manifest.hashes]
    now = {name: sha256_of(folder / name) for name in due}
    wrong = tuple(name for name in due if manifest.hashes.get(name, now[name]) != now[name])
    if due and not wrong:
        with suppress(OSError):  # a folder that cannot be written is read again next time
            _write(folder, replace(manifest, hashes={**manifest.hashes, **now}, checked=found))
    return wrong


def sha256_of(path: Path) -> str:
    """The file's SHA-256, hexadecimal."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _state(file: Path) -> Checked:
    found = file.stat()
    return Checked(found.st_size, found.st_mtime_ns, found.st_ino)


def _write(folder: Path, manifest: Manifest) -> None:
    write_atomic(folder / MARKER, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")


def settle(file: Path) -> int:
    """Make sure that the file's bytes are on the disk; its size in bytes."""
    with file.open("rb+") as handle:
        os.fsync(handle.fileno())
    return file.stat().st_size
