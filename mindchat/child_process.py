"""The one way to start another Python interpreter: it never imports from the current folder, where anybody's files may
lie.

Owns: the command line and the environment of child interpreters. Does not own: what they do, or how long they may take.
`python -m` and `python -c` put the current folder first on the module path; an empty entry of PYTHONPATH means the
current folder, too. A folder of documents with a torch.py or a sitecustomize.py would then be run. `-P` (Python 3.11)
and a cleaned PYTHONPATH prevent that.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

HOME = str(Path(__file__).resolve().parents[1])
"""The folder that holds this package."""


def module_path(entries: Sequence[str], here: str) -> list[str]:
    """The folders that a child may import from: absolute ones, without the current folder `here`, this package's own
    first.
    """
    kept = [entry for entry in entries if os.path.isabs(entry) and not _same(entry, here)]
    return list(dict.fromkeys([HOME, *kept]))


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return os.path.abspath(one) == os.path.abspath(other)


def command(arguments: Sequence[str]) -> list[str]:
    """This interpreter with `arguments` (-m MODULE … or -c CODE …)."""
    return [sys.executable, "-P", *arguments]


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment for a child that imports what this process imports, and nothing from the current
    folder.
    """
    path = os.pathsep.join(module_path(sys.path, os.getcwd()))
    return {**os.environ, **(more or {}), "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}


def find_program(name: str, which: Callable[[str], str | None] = shutil.which) -> str | None:
    """The absolute path of a program; None if there is none, or if what is found lies in the current folder.

    An empty or relative entry of PATH, and on Windows every search, begins in the current folder.
    """
    found = which(name)
    if found is None or not os.path.isabs(found) or _same(os.path.dirname(found), os.getcwd()):
        return None
    return found


def start(
    arguments: Sequence[str], *, environ: Mapping[str, str] | None = None, **options: Any
) -> subprocess.Popen[bytes]:
    """Start a child interpreter; `options` are those of subprocess.Popen. Raises OSError."""
    return subprocess.Popen(command(arguments), env=environment(environ), **options)


def run(arguments: Sequence[str], **options: Any) -> subprocess.CompletedProcess[Any]:
    """Start a child interpreter and wait for it; `options` are those of subprocess.run. Raises OSError,
    CalledProcessError.
    """
    return subprocess.run(command(arguments), env=environment(), check=options.pop("check", False), **options)


def leave_current_folder() -> None:
    """Take the folder that `python -m mindchat` was called in from the module path; if this package lies in it, search
    it last.
    """
    if sys.flags.safe_path or not sys.path or not (sys.path[0] == "" or _same(sys.path[0], os.getcwd())):
        return
    del sys.path[0]
    if _same(HOME, os.getcwd()):
        sys.path.append(HOME)
