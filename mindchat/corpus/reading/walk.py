"""Which files of a folder are documents, and why the others are not.

Owns: hidden, version-control, dependency, secret, minified, special and over-size files; .gitignore and .mindchatignore; links.
Does not own: whether a readable type has readable content (readers).
"""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from mindchat.corpus.reading.readers import READERS
from mindchat.text.clean import clean_line

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_FOLDERS = frozenset({"node_modules", "bower_components", "__pycache__", "site-packages", "CVS", "__MACOSX"})
_SECRETS = (
    ".env", ".env.*", "*.env", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.asc", "*.gpg",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".htpasswd",
)  # fmt: skip
_GENERATED = ("*.min.js", "*.min.css", "*.min.mjs", "*.map", "*.bundle.js", "package-lock.json", "*.lock")
_IGNORE_FILES = (".gitignore", ".mindchatignore")


class Found(Struct, frozen=True):
    """A file worth reading."""

    path: Path
    """Absolute, links resolved."""
    size: int
    mtime_ns: int


class Passed(Struct, frozen=True):
    """A file or folder that is left out."""

    path: str
    reason: str
    unknown: bool = False
    """A folder that cannot be looked into now: what is known of its files stays."""


class Rules(Struct, frozen=True):
    """The ignore files that hold in one folder: each with the folder it counts from."""

    specs: tuple[tuple[Path, GitIgnoreSpec], ...] = ()

    def ignores(self, path: Path, *, folder: bool) -> bool:
        """Whether the last matching pattern of the nearest file excludes the path."""
        for base, spec in reversed(self.specs):
            name = path.relative_to(base).as_posix() + ("/" if folder else "")
            verdict = spec.check_file(name).include
            if verdict is not None:
                return verdict
        return False

    def enter(self, folder: Path) -> Rules:
        """The rules inside a subfolder."""
        specs = list(self.specs)
        for name in _IGNORE_FILES:
            if (folder / name).is_file():
                import pathspec

                try:
                    lines = (folder / name).read_text(encoding="utf-8", errors="replace").splitlines()
                    specs.append((folder, pathspec.GitIgnoreSpec.from_lines(lines)))
                except (OSError, ValueError):
                    continue  # an ignore file that cannot be read ignores nothing
        return Rules(tuple(specs))


def walk(root: Path, max_bytes: int, own: Path | None = None) -> Iterator[Found | Passed]:
    """All files under a folder, or the one file, in a stable order. A file that was named itself is only refused for what it is.

    `own` is MindChat's own folder, which is never read.
    """
    try:
        root = root.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        yield Passed(str(root), f"cannot be found ({getattr(error, 'strerror', None) or error})")
        return
    if root.is_dir():
        yield from _walk(root, Rules(), max_bytes, _seen(own))
    else:
        yield _judge(root, max_bytes, named=True)


def _seen(own: Path | None) -> set[tuple[int, int]]:
    """Folders and files that were visited, by device and inode."""
    try:
        status = own.stat() if own is not None else None
    except OSError:
        status = None
    return {(status.st_dev, status.st_ino)} if status is not None else set()


def _walk(folder: Path, rules: Rules, max_bytes: int, visited: set[tuple[int, int]]) -> Iterator[Found | Passed]:
    try:
        status = folder.stat()
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield Passed(str(folder), f"folder cannot be read ({error.strerror or error})", unknown=True)
        return
    if (status.st_dev, status.st_ino) in visited:
        yield Passed(str(folder), "read already (a link), or MindChat's own files")
        return
    visited.add((status.st_dev, status.st_ino))
    rules = rules.enter(folder)
    for entry in entries:
        path = Path(entry.path)
        if not _is_unicode(entry.name):
            yield Passed(entry.path.encode("utf-8", "replace").decode(), "its name is not valid Unicode")
            continue
        try:
            is_folder = entry.is_dir()
        except OSError:
            is_folder = False
        if reason := _outer_reason(entry.name, path, is_folder, rules):
            if reason != "hidden":  # hidden files are too many to name; what they are is known
                yield Passed(str(path), reason)
        elif is_folder:
            yield from _walk(path, rules, max_bytes, visited)
        else:
            yield _once(path, _judge(path, max_bytes, named=False), visited)


def _is_unicode(name: str) -> bool:
    """Whether the name can be stored and shown; others come with lone surrogates for their bytes."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _outer_reason(name: str, path: Path, folder: bool, rules: Rules) -> str:
    if not folder and _matches(name, _SECRETS):
        return "secret"
    if name.startswith("."):
        return "hidden"
    if folder and name in _FOLDERS:
        return "dependencies or generated files"
    return "ignored by .gitignore or .mindchatignore" if rules.ignores(path, folder=folder) else ""


def _once(path: Path, item: Found | Passed, visited: set[tuple[int, int]]) -> Found | Passed:
    """A file that several links lead to is read once."""
    if isinstance(item, Passed):
        return item
    status = item.path.stat()
    if (status.st_dev, status.st_ino) in visited:
        return Passed(str(path), "link to a file that was read already")
    visited.add((status.st_dev, status.st_ino))
    return item


def _judge(path: Path, max_bytes: int, *, named: bool) -> Found | Passed:
    try:
        real = path.resolve(strict=True)
        status = real.stat()
    except (OSError, RuntimeError) as error:
        return Passed(str(path), f"broken link or unreadable ({getattr(error, 'strerror', None) or 'link loop'})")
    suffix, name = real.suffix.lower(), real.name
    if not stat.S_ISREG(status.st_mode):
        return Passed(str(path), "no regular file (device, pipe or socket)")
    if _matches(name, _SECRETS):
        return Passed(str(path), "secret")
    if not named and _matches(name, _GENERATED):
        return Passed(str(path), "minified or generated")
    if suffix not in READERS:
        return Passed(str(path), f"type {clean_line(suffix, 20)} is not supported" if suffix else "no file type")
    if status.st_size == 0:
        return Passed(str(path), "empty")
    if status.st_size > max_bytes and not READERS[suffix].endswith(":JsonLinesReader"):
        return Passed(str(path), f"larger than index.max_file_mb ({status.st_size / 1e6:,.0f} MB)")
    return Found(real, status.st_size, status.st_mtime_ns)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatch(name.lower(), pattern) for pattern in patterns)
