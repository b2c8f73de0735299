"""Asking before something is erased.

Owns: confirm. Does not own: what is erased.
"""

from __future__ import annotations

import sys

import typer

from mindchat.errors import RefusedError


def confirm(question: str, yes: bool) -> None:
    """Ask on a terminal; raises RefusedError on no, or if nobody can be asked and --yes was not given."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise RefusedError(f"{question} Nobody can be asked here.", "Add --yes.")
    if not typer.confirm(question, err=True):
        raise RefusedError("Nothing was erased.")
