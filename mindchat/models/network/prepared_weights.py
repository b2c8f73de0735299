"""What a load would otherwise compute each time: copies of the weights in fewer bytes, and the outcome of the
self-checks.

Owns: the file weights.pack beside an installed model (written once, in one step, mapped afterwards), verdicts in the
user's cache folder.
Does not own: how weights are rounded (weights), what is checked (backbone). A user's own folder is never written to: it
has no manifest. A pack belongs to the model's hash; a verdict also to the machine, the libraries and the version of the
checks.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import msgspec
import torch
from msgspec import Struct
from torch import Tensor

from mindchat.models.install.manifest import PACK as NAME
from mindchat.models.install.manifest import read_manifest
from mindchat.models.network import prefill, projections
from mindchat.paths import find_paths, private
from mindchat.storage.atomic import replacing, write_atomic
from mindchat.text.foreign_json import decode_json

VERSION = 3
"""Raised when packs of an older version must be made again."""
_EARLIER = "int8.pack"
"""What packs of version 2 were called."""
KEPT_VERDICTS = 200
CHECKS = 1
"""Raised when code of this room changes what a step computes or how it is checked, so that the checks are made again.
"""


class Verdict(Struct, frozen=True):
    """What the self-checks at load found."""

    step: projections.Step | None
    """None: transformers' own step."""
    measures: bool
    prefill: prefill.Prefill
    told: tuple[int, ...] = ()
    """The likeliest id behind each id of the sample, where a later load can do without transformers' network; else ().
    """


class Kept(Struct, frozen=True):
    """What an earlier load left."""

    pack: projections.Pack
    verdict: Verdict | None


def recalled(folder: Path, arithmetic: str, threads: int = 0) -> Kept:
    """What is kept of this model for this machine. Its weights are being arranged from now on, beside whatever follows."""
    if threads:
        torch.set_num_threads(threads)
    found = Kept(open_pack(folder), recall(folder, arithmetic))
    if found.verdict is not None and found.verdict.step is not None:
        found.pack.begin(found.verdict.step)
    return found


def key_of(folder: Path) -> str:
    """What a pack of this folder must carry; "" if the folder is not ours."""
    manifest = read_manifest(folder)
    return f"{VERSION} {manifest.converter} {manifest.sha256}" if manifest is not None and manifest.sha256 else ""


def open_pack(folder: Path) -> projections.Pack:
    """The folder's pack, mapped; an empty one if there is none, or none for these weights."""
    from safetensors import SafetensorError, safe_open

    key, file = key_of(folder), folder / NAME
    if not key or not file.is_file():
        return projections.Pack()
    try:
        with safe_open(file, framework="pt") as held:
            if (held.metadata() or {}).get("key") != key:
                return projections.Pack()
            return projections.Pack({name: held.get_tensor(name) for name in held.keys()})  # noqa: SIM118 - no mapping
    except (OSError, SafetensorError):
        return projections.Pack()


def save_pack(pack: projections.Pack, folder: Path) -> bool:
    """Write what was made, with what was there, beside an installed model; whether that was done. A full disk only
    costs time next time.
    """
    from safetensors.torch import save_file

    key = key_of(folder)
    if not key or not pack.made:
        return False
    tensors: dict[str, Tensor] = {name: tensor.contiguous() for name, tensor in {**pack.held, **pack.made}.items()}
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    try:
        if shutil.disk_usage(folder).free < 2 * size:
            return False
        with replacing(folder / NAME) as part:
            save_file(tensors, part, metadata={"key": key})
        (folder / _EARLIER).unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _verdict_key(folder: Path, asked: str) -> str:
    machine = (
        f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()} {os.cpu_count()} {torch.get_num_threads()}"
        f" {torch.cuda.is_available()}"
    )
    return " | ".join((key_of(folder), asked, machine, torch.__version__, version("transformers"), f"checks {CHECKS}"))


def recall(folder: Path, asked: str, memo: Path | None = None) -> Verdict | None:
    """The verdict on this model under `asked` (arithmetic) on this machine; None: check."""
    known = _read(_memo(memo))
    return known.get(_verdict_key(folder, asked)) if key_of(folder) else None


def remember(folder: Path, asked: str, verdict: Verdict, memo: Path | None = None) -> None:
    """Keep a verdict; a cache folder that cannot be written only costs a check next time."""
    if not key_of(folder):
        return
    file = _memo(memo)
    known = [*((key, value) for key, value in _read(file).items()), (_verdict_key(folder, asked), verdict)]
    with suppress(OSError):
        private(file.parent)
        write_atomic(file, msgspec.json.encode(dict(known[-KEPT_VERDICTS:])))


def _memo(memo: Path | None) -> Path:
    return find_paths().cache / "verdicts.json" if memo is None else memo


def _read(memo: Path) -> Mapping[str, Verdict]:
    try:
        return decode_json(memo.read_bytes(), type=dict[str, Verdict])
    except (OSError, msgspec.MsgspecError):
        return {}
