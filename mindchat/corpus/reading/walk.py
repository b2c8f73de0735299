"""Which files of a folder are documents, and why the others are not.

Owns: hidden, version-control, dependency, secret, minified, special and over-size files; links.
Does not own: ignore files (ignoring.py), whether a readable type has readable content (readers).
"""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from mindchat.corpus.reading.ignoring import Rules, enter
from mindchat.corpus.reading.readers import READERS
from mindchat.text.clean import clean_line

_FOLDERS = frozenset({"node_modules", "bower_components", "__pycache__", "site-packages", "CVS", "__MACOSX"})
_SECRETS = (
    ".env", ".env.*", "*.env", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.asc", "*.gpg",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".htpasswd",
)  # fmt: skip
_GENERATED = ("*.min.js", "*.min.css", "*.min.mjs", "*.map", "*.bundle.js", "package-lock.json", "*.lock")


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


class Walk(Struct, frozen=True):
    """What holds for a whole walk."""

    root: Path
    max_bytes: int
    follow_links: bool
    """Whether links may lead out of the root."""
    visited: set[tuple[int, int]]
    """Folders and files that were met, by device and inode."""


def walk(
    root: Path, max_bytes: int, own: Path | None = None, *, follow_links: bool = False
) -> Iterator[Found | Passed]:
    """All files under a folder, or the one file, in a stable order. A file that was named itself is only refused for
    what it is.

    `own` is MindChat's own folder, which is never read. `follow_links`: also what links show outside the folder.
    What cannot be read, or changes meanwhile, is passed with its reason; nothing ends the walk.
    """
    try:
        root = root.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        yield Passed(str(root), f"cannot be found ({getattr(error, 'strerror', None) or error})")
        return
    if root.is_dir():
        yield from _walk(Walk(root, max_bytes, follow_links, _seen(own)))
    else:
        yield _judge(root, max_bytes, named=True)


def _seen(own: Path | None) -> set[tuple[int, int]]:
    """Folders and files that were visited, by device and inode."""
    try:
        status = own.stat() if own is not None else None
    except OSError:
        status = None
    return {(status.st_dev, status.st_ino)} if status is not None else set()


def _walk(whole: Walk) -> Iterator[Found | Passed]:
    """Depth first, on a stack of our own: folders may be nested deeper than Python's calls."""
    stack: list[Iterator[tuple[Path, Rules] | Found | Passed]] = [iter([(whole.root, Rules())])]
    while stack:
        item = next(stack[-1], None)
        if item is None:
            stack.pop()
        elif isinstance(item, tuple):
            stack.append(_folder(*item, whole))
        else:
            yield item


def _folder(folder: Path, rules: Rules, whole: Walk) -> Iterator[tuple[Path, Rules] | Found | Passed]:
    """What stands in one folder: files, what is passed over, and subfolders to go on with."""
    try:
        status = folder.stat()
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        yield Passed(str(folder), f"folder cannot be read ({error.strerror or error})", unknown=True)
        return
    if (status.st_dev, status.st_ino) in whole.visited:
        yield Passed(str(folder), "read already (a link), or MindChat's own files")
        return
    whole.visited.add((status.st_dev, status.st_ino))
    entered = enter(rules, folder)
    yield from [Passed(str(file), fault) for file, fault in entered.faults]
    if entered.closed:
        yield Passed(str(folder), f"left out: {entered.closed}", unknown=True)
        return
    for entry in entries:  # one after the other: what a subfolder holds counts as met before what follows it
        if (item := _entry(entry, entered.rules, whole)) is not None:
            yield item


def _entry(entry: os.DirEntry[str], rules: Rules, whole: Walk) -> tuple[Path, Rules] | Found | Passed | None:
    """One name in a folder; None: hidden, as too many are to name them."""
    path = Path(entry.path)
    if not _is_unicode(entry.name):
        return Passed(entry.path.encode("utf-8", "replace").decode(), "its name is not valid Unicode")
    try:
        is_folder = entry.is_dir()
        outside = entry.is_symlink() and not whole.follow_links and not path.resolve().is_relative_to(whole.root)
    except (OSError, RuntimeError):
        is_folder = outside = False
    if reason := _outer_reason(entry.name, path, is_folder, rules):
        return Passed(str(path), reason) if reason != "hidden" else None
    if outside:
        return Passed(str(path), "link that leads out of the folder (index.follow_links)")
    return (path, rules) if is_folder else _once(path, _judge(path, whole.max_bytes, named=False), whole.visited)


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
    try:
        status = item.path.stat()
    except OSError as error:
        return Passed(str(path), f"gone while the folder was looked through ({error.strerror or error})")
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
        return Passed(
            str(path), f"larger than index.max_file_mb ({max_bytes / 1e6:,.0f}): {status.st_size / 1e6:,.1f} MB"
        )
    return Found(real, status.st_size, status.st_mtime_ns)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatch(name.lower(), pattern) for pattern in patterns)
