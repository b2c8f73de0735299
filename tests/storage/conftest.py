"""Storage is tried with memory's small library."""

from __future__ import annotations

from ..memory.conftest import films, taught, world

__all__ = ["films", "taught", "world"]
