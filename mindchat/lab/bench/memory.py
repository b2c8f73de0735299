"""Peak memory of this process.

Owns: reading it from the system. Does not own: which process is measured (each caller starts its own where that
matters).
"""

from __future__ import annotations

import sys
from pathlib import Path


def peak_resident_mb() -> int:
    """Most memory that this process has had resident so far, MB; pages of mapped weight files that were read count too."""
    if sys.platform == "win32":
        import psutil

        return int(psutil.Process().memory_info().peak_wset) >> 20
    if sys.platform == "linux":  # getrusage would count what the starting process had, too
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) >> 10
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 20
