"""The marker file of an installed model: which bytes it was made from, and what belongs to it.

Owns: `mindchat.json` in a model folder, and the question whether such a folder is complete. Does not own: who writes the rest of
the folder (convert, hub) and where it stands (store).
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec import Struct

CONVERTER = 1
"""Raised when a folder made by an older version must be made again."""
MARKER = "mindchat.json"
PACK = "weights.pack"
"""Copies of the weights in fewer bytes (packed); a safetensors file whose name keeps it apart from the weights, which are found by their suffix."""


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


def read_manifest(folder: Path) -> Manifest | None:
    """The folder's manifest, or None if the folder is not complete or was made by another version of the converter."""
    try:
        manifest = msgspec.json.decode((folder / MARKER).read_bytes(), type=Manifest)
        complete = all((folder / name).stat().st_size == size for name, size in manifest.files.items())
    except (OSError, msgspec.MsgspecError):
        return None
    return manifest if complete and manifest.converter == CONVERTER else None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the marker, the last file of a folder."""
    (folder / MARKER).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
    settle(folder / MARKER)


def settle(file: Path) -> int:
    """Make sure that the file's bytes are on the disk; its size in bytes."""
    with file.open("rb+") as handle:
        os.fsync(handle.fileno())
    return file.stat().st_size
