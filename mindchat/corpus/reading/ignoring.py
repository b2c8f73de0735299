"""Ignore files: .gitignore and .mindchatignore, as git reads them, whoever wrote them.

Owns: reading them within bounds, matching paths, naming what cannot be used. Does not own: which other files are left
out (walk.py). Patterns are compiled by RE2, which takes linear time whatever the pattern is; Python's own regular
expressions can take forever.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from mindchat.corpus.reading.encoding import read_regular
from mindchat.errors import DocumentError
from mindchat.text.clean import clean_line

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

FILES = (".gitignore", ".mindchatignore")
MAX_BYTES = 256 * 1024
"""Of an ignore file."""
MAX_PATTERN = 512
"""Characters of a pattern."""
MAX_PATTERNS = 2_000
"""Of an ignore file."""
MAX_TOLD = 3
"""Bad patterns of a file that are named one by one."""


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


class Entered(Struct, frozen=True):
    """The rules inside a folder, and what is wrong with its ignore files."""

    rules: Rules
    faults: tuple[tuple[Path, str], ...] = ()
    """(ignore file, what of it is passed over)."""
    closed: str = ""
    """Not empty: an ignore file cannot be used at all, so that nobody knows what it protects: the folder is left out,
    for this reason.
    """


def enter(rules: Rules, folder: Path) -> Entered:
    """The rules inside a subfolder."""
    specs, faults = list(rules.specs), list[tuple[Path, str]]()
    for name in FILES:
        file = folder / name
        if not file.is_file():
            continue
        try:
            spec, bad = _read(file)
        except DocumentError as error:
            return Entered(rules, (), f"its {name} {error.message}")
        faults += [(file, fault) for fault in bad]
        specs.append((folder, spec))
    return Entered(Rules(tuple(specs)), tuple(faults))


def _read(file: Path) -> tuple[GitIgnoreSpec, list[str]]:
    """The file's patterns, and what is wrong with those that are passed over. Raises DocumentError if it cannot be used
    at all.
    """
    import pathspec

    content = read_regular(file, MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise DocumentError(f"is larger than {MAX_BYTES // 1024} KB")
    lines = content.decode("utf-8", "replace").splitlines()
    if len(lines) > MAX_PATTERNS:
        raise DocumentError(f"has more than {MAX_PATTERNS:,} lines")
    good, bad = [], []
    for number, line in enumerate(lines, 1):
        if len(line) <= MAX_PATTERN and _compiles(line):
            good.append(line)
        else:
            bad.append(f"line {number} is no pattern that can be used: {clean_line(line, 40)}")
    if len(bad) > MAX_TOLD:
        bad = [*bad[:MAX_TOLD], f"and {len(bad) - MAX_TOLD:,} lines more"]
    try:
        return pathspec.GitIgnoreSpec.from_lines(good, backend="re2"), bad
    except Exception as error:  # RE2's own error is no subclass of re.error; its memory is bounded
        raise DocumentError("is too large to be used") from error


def _compiles(line: str) -> bool:
    import pathspec

    try:
        pathspec.GitIgnoreSpec.from_lines([line], backend="re2")
    except Exception:  # noqa: BLE001 - as above; pathspec and RE2 refuse with several unrelated classes
        return False
    return True
