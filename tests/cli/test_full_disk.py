"""A disk that takes nothing more: the log and the list of trusted files. Every write fails as it does there (a size
limit of 0, /dev/full).
"""

from __future__ import annotations

import errno
import logging
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mindchat.cli import command_runner
from mindchat.cli.load_settings import trusted_files
from mindchat.paths import find_paths

from .board import Board, Run

pytestmark = [pytest.mark.skipif(os.name != "posix", reason="limits and /dev/full are POSIX's"), pytest.mark.slow]


@pytest.fixture
def full() -> Iterator[None]:
    """No file of this process can grow."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def refuse_folder(self: logging.FileHandler) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.baseFilename)


FULL = {
    "bytes": lambda self: open("/dev/full", "w"),  # noqa: SIM115 - the handler closes it
    "the file itself": refuse_folder,
}


@pytest.mark.parametrize("what", FULL)
@pytest.mark.parametrize("warnings", [0, 1, 500])
def test_a_log_that_cannot_be_written_says_nothing_in_between(
    run: Run, board: Board, monkeypatch: pytest.MonkeyPatch, what: str, warnings: int
) -> None:
    """A command that works goes on working; one that fails unexpectedly says so in its own words, without a traceback."""
    monkeypatch.setattr(logging.FileHandler, "_open", FULL[what])
    opened = board.open_session

    def warned(*args: Any, **rest: Any) -> Any:
        for n in range(warnings):
            logging.getLogger("mindchat.somewhere").warning("warning %d", n)
        return opened(*args, **rest)

    monkeypatch.setattr(board, "open_session", warned)
    fine = run("ask", "Who?")
    assert fine.code == 0
    assert "Fritz Lang" in fine.out
    assert "Traceback" not in fine.err
    assert "Logging error" not in fine.err
    monkeypatch.setattr(board, "open_session", lambda *_, **__: {}["\x1b[31mnobody"])
    failed = run("ask", "Who?")
    assert failed.code == 1
    assert "Traceback" not in failed.err
    assert "Logging error" not in failed.err
    assert "\x1b" not in failed.err
    assert "The log could not be written (No space left on device)" in failed.err
    assert "test_full_disk.py:" in failed.err


def test_a_log_that_can_be_written_still_holds_the_traceback(
    run: Run, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board, "open_session", lambda *_, **__: {}["nobody"])
    assert "Details are in" in run("ask", "Who?").err
    assert "KeyError: 'nobody'" in find_paths().log_file.read_text()


def test_trust_that_cannot_be_written_is_not_given(run: Run, tmp_path: Path, home: Path, full: None) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    project = tmp_path / "mindchat.toml"
    project.write_text("[memory]\nmode = 'off'\n")
    run("config", "trust")
    before = trusted_files(find_paths())
    project.write_text("[memory]\nmode = 'readonly'\n")
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    failed = run("config", "trust", "--json")
    assert failed.code == 1
    assert "trusted.json cannot be written: File too large." in failed.json["error"]["message"]
    assert trusted_files(find_paths()) == before
    assert sorted(path.name for path in home.iterdir()) == ["trusted.json"], "no half file is left"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize("named", [False, True])
def test_a_full_disk_anywhere_is_a_sentence(number: int, named: bool) -> None:
    """Writing raises without a file's name, opening with it."""
    error = OSError(number, os.strerror(number), "some.file") if named else OSError(number, os.strerror(number))
    failure = command_runner.as_failure(error)
    assert failure is not None
    assert failure.message.startswith("The disk is full")
    assert ("some.file" in failure.message) is named
