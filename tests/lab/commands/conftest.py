"""The laboratory's commands are run as the other commands are."""

from __future__ import annotations

from ...cli.conftest import board, run

__all__ = ["board", "run"]
