"""Which files and folders the user has asked to index, so that sync knows where to look.

Owns: roots.json beside the index. Does not own: what was found there (registry).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from mindchat.errors import ResourceError
from mindchat.paths import private
from mindchat.storage.atomic import write_atomic
from mindchat.text.foreign_json import decode_json


def load_roots(folder: Path) -> list[str]:
    """Absolute paths, sorted; [] if nothing was indexed yet. Raises ResourceError if the file is damaged."""
    try:
        roots = decode_json((folder / "roots.json").read_bytes())
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        hint = "Delete it and add your folders again with: mindchat index add PATH"
        raise ResourceError(f"{folder / 'roots.json'} cannot be read: {error}.", hint) from error
    return sorted(str(root) for root in roots)


def save_roots(folder: Path, roots: Iterable[str]) -> None:
    """Remember them; a root inside another one is left out."""
    kept: list[str] = []
    for root in sorted(set(roots)):
        if not any(is_under(root, other) for other in kept):
            kept.append(root)
    private(folder)
    write_atomic(folder / "roots.json", json.dumps(kept, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass"))


def is_under(uri: str, root: str) -> bool:
    """Whether a document (or path) is the root, in it, or a part of it (path#id)."""
    return uri == root or uri.startswith((root.rstrip("/\\") + "/", root + "#", root.rstrip("/\\") + "\\"))


def is_gone(root: str) -> bool:
    """Whether nothing stands there now: no such path, or an empty folder, as an unmounted disk leaves it. A closed
    folder is not gone.
    """
    try:
        with os.scandir(root) as entries:
            return next(entries, None) is None
    except FileNotFoundError:
        return True
    except (
        OSError
    ):  # a file, or a folder that may not be opened; a device that answers nothing at all is no reason to forget either
        return not os.path.lexists(root)
