"""torch's shared libraries mapped into the process before torch is imported, so that the screens go on meanwhile.

Owns: map_libraries(). Does not own: the import, and what must be set before it (loader). An import holds the
interpreter lock while the loader maps and relocates a library and runs its constructors: for torch's half a gigabyte
that is up to 0.8 s, in which no other thread moves. A foreign call through ctypes gives the lock back, hence the C
library's own dlopen. The import finds the same files in place. torch's extension itself is left to the import: its
constructors may use Python, which needs the lock.
"""

from __future__ import annotations

import ctypes
import os
import sys
from importlib.util import find_spec
from pathlib import Path

_FIRST = "libtorch_global_deps"
"""Opened for all, as torch does itself: its symbols are looked up there."""
_SECOND = "libtorch"
"""Small, but it needs all the large ones, also those of a graphics card."""


def library_folder() -> Path | None:
    """torch's folder of libraries, found without importing torch; None if there is none."""
    try:
        spec = find_spec("torch")
    except (ImportError, ValueError):
        return None
    places = spec.submodule_search_locations if spec is not None else None
    return Path(places[0]) / "lib" if places else None


def map_libraries(folder: Path | None = None) -> bool:
    """Map torch's libraries with the interpreter lock given back; whether that was done. Whatever is in the way, the
    import does it later.

    Call it after the environment is set: OpenMP reads its policy here. Does nothing on Windows, where torch opens its
    libraries this way itself.
    """
    folder = folder or library_folder()
    if folder is None or "torch" in sys.modules or os.name != "posix" or "TORCH_USE_RTLD_GLOBAL" in os.environ:
        return False
    try:
        opener = ctypes.CDLL(None).dlopen
    except (OSError, AttributeError):  # a program linked statically
        return False
    opener.argtypes, opener.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
    suffix = ".dylib" if sys.platform == "darwin" else ".so"
    for name, flags in ((_FIRST, os.RTLD_NOW | os.RTLD_GLOBAL), (_SECOND, os.RTLD_NOW | os.RTLD_LOCAL)):
        if opener(os.fsencode(folder / f"{name}{suffix}"), flags) is None:
            return False
    return True
