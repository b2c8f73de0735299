"""Torch's shared libraries, mapped before torch is imported and without holding the interpreter's lock.

Owns: which files are mapped, and that a failure changes nothing. Does not own: the import itself, the environment that torch reads (loader).
The import opens the same libraries while it holds the lock, for half a second and more, and all that time a screen stands still. A foreign
call gives the lock back; the import then finds the files open.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from pathlib import Path

_FIRST = ("libgomp", "libiomp5")
"""Files by their beginnings that the others need and that lie beside them."""
_THEN = ("libc10", "libtorch_cpu", "libtorch", "libtorch_python")
_LAZY = 1
"""RTLD_LAZY: symbols are bound when they are used, as the import of an extension module has it."""


def libraries(package: str = "torch") -> list[Path]:
    """The files to map, in order; empty if the package is missing or lies elsewhere than expected. Imports nothing."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return []
    folder = Path(spec.origin).parent / "lib"
    there = sorted(folder.glob("lib*")) if folder.is_dir() else []
    first = [path for name in _FIRST for path in there if path.name.startswith(name)]
    return first + [path for name in _THEN for path in there if path.stem == name]


def preload(package: str = "torch") -> int:
    """Map them; returns how many were. 0 where the system has no dlopen (Windows), once torch is imported, or where nothing fits."""
    if package in sys.modules or os.name != "posix":
        return 0
    try:
        dlopen = ctypes.CDLL(None).dlopen
    except (AttributeError, OSError):
        return 0
    dlopen.argtypes, dlopen.restype = [ctypes.c_char_p, ctypes.c_int], ctypes.c_void_p
    return sum(dlopen(os.fsencode(path), _LAZY) is not None for path in libraries(package))
