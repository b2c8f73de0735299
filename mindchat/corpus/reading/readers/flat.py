"""Nested data as lines of text.

Owns: one line a leaf, "path.to.key: value". Does not own: parsing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_DEEPEST = 60


def flatten(value: Any) -> str:
    """Every leaf of dicts and lists on its own line, named by its path; null is left out."""
    return "\n".join(_leaves(value, "", 0))


def _leaves(value: Any, name: str, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        yield f"{name}: …"
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{key}" if name else str(key), depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, name, depth + 1)
    elif value is not None:
        yield f"{name}: {value}" if name else str(value)
