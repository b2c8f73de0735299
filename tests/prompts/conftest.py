"""Prompts as the paper prints them, and the documents that the tests lay out."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mindchat.engine.loop import LoopEngine
from mindchat.values import Passage, Prompt

SNAPSHOTS = Path(__file__).parent / "snapshots"


def passages(count: int) -> tuple[Passage, ...]:
    """Documents whose texts occur nowhere else."""
    return tuple(
        Passage(f"p{n}", f"{n}.txt", f"Title {n}", f"Text of the document number {n}.", 0, 10, rank=n + 1)
        for n in range(count)
    )


def printed(prompt: Prompt) -> str:
    """A prompt as CoRe's tables print one."""
    return (
        "\n\n".join(f"[{message.role.capitalize()} role]\n\n{message.text}" for message in prompt.messages).rstrip()
        + "\n"
    )


def with_parts(loop: LoopEngine, **changes: Any) -> LoopEngine:
    """The same loop with other parts."""
    return LoopEngine(replace(loop._parts, **changes), loop._config)


@pytest.fixture
def same_as() -> Callable[[str, Prompt], None]:
    """Compare with the snapshot of a name; MINDCHAT_SNAP=1 writes it anew."""

    def compare(name: str, prompt: Prompt) -> None:
        path, text = SNAPSHOTS / f"{name}.txt", printed(prompt)
        if _WRITE:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == text

    return compare


_WRITE = bool(os.environ.get("MINDCHAT_SNAP"))
