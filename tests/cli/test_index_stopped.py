"""Ctrl+C while the index is written: within the step, in words that say what to do, and nothing is lost."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from mindchat.corpus.search.whoosh_index import Record, Writer

from .board import Run


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(("owner", "name"), [(Writer, "commit"), (Record, "dump")])
def test_ctrl_c_while_the_index_is_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("The weir is old.")
    assert run("index", "add", str(tmp_path / "docs")).code == 0
    (tmp_path / "docs" / "b.md").write_text("The crane is tall.")
    original, ended = getattr(owner, name), []

    def pressed(self: Any, *arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        found = original(self, *arguments)
        ended.append(name)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, pressed)
        stopped = run("index", "add", str(tmp_path / "docs"))
    assert (stopped.code, ended) == (130, []), "heard inside the step"
    assert "mindchat index sync goes on from there" in stopped.err


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_what_was_stopped_is_found_after_a_sync(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.md").write_text("The weir is old.")
    original = Writer.commit

    def pressed(self: Any, *arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return original(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "commit", pressed)
        assert run("index", "add", str(tmp_path / "a.md")).code == 130
    assert run("index", "sync").code == 0
    assert run("index", "search", "weir").out.startswith("1. a")
