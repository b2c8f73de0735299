"""The outer edge of every command: streams, signals, the log, and the one place where failures become exit codes.

Owns: run, exit codes (errors.py), what an error looks like on either stream, the log file. Does not own: any command.
Catching broadly is right here and nowhere else in the command line: whatever arrives becomes one sentence, and the rest
is in the log.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import logging.handlers
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import typer

from mindchat.cli.output import Narrator, prepare_streams, write_json
from mindchat.errors import Interrupted, MindChatError, UsageError
from mindchat.events import TurnFailed, to_json
from mindchat.paths import find_paths, private
from mindchat.ports import Cancel
from mindchat.text.clean import clean_line

LOG_BYTES = 1_000_000
FULL = frozenset(getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG") if hasattr(errno, name))
"""What the system says when no more can be written: no space, a user's quota, a file's largest size."""
CLICK_ERROR: type[Exception] = typer.BadParameter.__mro__[2]
"""Base of what the argument parser raises; typer carries its own copy of click, so it is reached through a name that
typer exports.
"""

_MEMORY, _REMEMBER = re.compile(r"(?<![^\s(])/memory(?= )"), re.compile(r"(?<![^\s(])/remember(?= )")

log = logging.getLogger("mindchat")


class Reported(Exception):
    """A command has written its own failure; only the exit code remains."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


def run(arguments: list[str]) -> int:
    """One command from its arguments to its exit code; never raises."""
    prepare_streams()
    with _logging(), _signals():
        try:
            code = _invoke(arguments)
        except BaseException as error:  # noqa: BLE001 - the outer edge
            code = report_error(error, arguments)
    return _flush(code)


def leave(code: int) -> int:
    """The exit code, unless torch is loaded or a worker still sits in native code: then the process ends here.

    Waiting for a forward pass would make Ctrl+C slow, tearing the interpreter down around it can crash, and unloading
    torch takes seconds; what must last is on disk by now.
    """
    if "torch" in sys.modules or any(thread.name.startswith("mindchat") for thread in threading.enumerate()):
        os._exit(code)
    return code


def _invoke(arguments: list[str]) -> int:
    from mindchat.cli.app import app

    result: Any = typer.main.get_command(app).main(arguments, prog_name="mindchat", standalone_mode=False)
    if result == Interrupted.exit_code:  # typer turns KeyboardInterrupt into this number, and says nothing
        raise KeyboardInterrupt
    return result if isinstance(result, int) else 0


# ── failures
# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def report_error(error: BaseException, arguments: list[str]) -> int:
    """Write the failure where the command's consumer looks for it, and give its exit code."""
    if isinstance(error, Reported):
        return error.exit_code
    if isinstance(error, BrokenPipeError) or isinstance(
        error.__context__, BrokenPipeError
    ):  # typer turns it into SystemExit(1)
        return _quiet_pipe()
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    failure = as_failure(error)
    if failure is None:
        log.error("unexpected failure", exc_info=error)
        failure = MindChatError(f"Something unexpected went wrong ({type(error).__name__}).", _where_to_look(error))
    write_failure(failure, arguments)
    return failure.exit_code


def _where_to_look(error: BaseException) -> str:
    """Where the traceback is, or, if the log cannot be written, where it happened."""
    broken = next((handler.broken for handler in logging.getLogger().handlers if isinstance(handler, _PrivateLog)), "")
    if not broken:
        return f"Details are in {find_paths().log_file}; please report them."
    frame = traceback.extract_tb(error.__traceback__)[-1:]
    place = f"{Path(frame[0].filename).name}:{frame[0].lineno}" if frame else "no place is known"
    return f"The log could not be written ({broken}). Please report this: {place}, {clean_line(str(error), 200)}"


def as_failure(error: BaseException) -> MindChatError | None:
    """The failure that the user should read; None for a bug."""
    if isinstance(error, MindChatError):
        return error
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return Interrupted("Interrupted.", "Nothing that was finished is lost.")
    if isinstance(error, CLICK_ERROR):
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "mindchat"
        return UsageError(error.format_message(), f"See {path} --help.")  # type: ignore[attr-defined]
    if isinstance(error, OSError) and error.errno in FULL:
        where = f" {error.filename} cannot be written." if error.filename is not None else ""
        return MindChatError(
            f"The disk is full, or a limit of it is reached.{where}", "Free some space, then try again."
        )
    if isinstance(error, OSError) and error.filename is not None:
        return MindChatError(f"{error.filename}: {error.strerror or error}.", "Check the path and its permissions.")
    if isinstance(error, MemoryError):
        return MindChatError(
            "There was not enough memory.", "Choose a smaller model (mindchat models list) or lower model.cache_mb."
        )
    return None


def told_here(hint: str) -> str:
    """A hint that names a conversation's commands, as the command line has them."""
    return _REMEMBER.sub("mindchat memory add", _MEMORY.sub("mindchat memory", hint))


def write_failure(failure: MindChatError, arguments: list[str], partial: object = None) -> None:
    """An object with --json, a last event with --events, a sentence and a hint otherwise."""
    before = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if "--events" in before:
        event = TurnFailed(failure.code, failure.message, told_here(failure.hint), failure.exit_code)
        sys.stdout.write(to_json(event) + "\n")
    elif "--json" in before:
        body: dict[str, object] = {
            "error": {"code": failure.code, "message": failure.message, "hint": told_here(failure.hint)}
        }
        if partial is not None:
            body["partial"] = partial
        write_json(body)
    else:
        narrator = Narrator()
        narrator.clear()
        narrator.warn(failure.message + (f"\n{told_here(failure.hint)}" if failure.hint else ""))


def _quiet_pipe() -> int:
    """The reader has gone: nothing more can be said to it, and nothing is wrong."""
    # Python would complain at shutdown when it flushes what is left, so what is left goes nowhere.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _flush(code: int) -> int:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            return _quiet_pipe() or code
        except (OSError, ValueError):
            return code or 1
    return code


# ── signals
# ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _handlers(handler: Any) -> dict[int, Any]:
    """Install the handler for Ctrl+C and SIGTERM; the handlers that stood there before. Only the main thread may."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    before = _handlers(_interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def cancelling(cancel: Cancel) -> Iterator[None]:
    """Inside, the first Ctrl+C or SIGTERM asks the work to stop, so that it can write down what it has; a second one
    interrupts.
    """

    def stop(signum: int, frame: FrameType | None) -> None:
        if cancel.cancelled:
            raise KeyboardInterrupt
        cancel.set()

    before = _handlers(stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# ── the log
# ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


class _PrivateLog(logging.handlers.RotatingFileHandler):
    """Created with its folder only when there is something to write, readable by its owner only. It never fails and
    never writes elsewhere.
    """

    broken = ""
    """Why the log cannot be written, once that was seen."""

    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk must not bring a traceback to the terminal: the reason is kept, and nothing more is tried in this
        run.
        """
        error = sys.exc_info()[1]
        self.broken = getattr(error, "strerror", None) or type(error).__name__
        self.setLevel(logging.CRITICAL + 1)

    def close(self) -> None:
        """What a full disk does not take is lost."""
        with contextlib.suppress(OSError):
            super().close()

    def _open(self) -> Any:
        private(find_paths().state)
        stream = super()._open()
        with contextlib.suppress(OSError):
            os.chmod(self.baseFilename, 0o600)
        return stream


@contextlib.contextmanager
def _logging() -> Iterator[None]:
    """Library warnings and our tracebacks go to the log, never to the terminal."""
    handler = _PrivateLog(find_paths().log_file, maxBytes=LOG_BYTES, backupCount=2, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handler.setLevel(logging.WARNING)
    root = logging.getLogger()
    root.addHandler(handler)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.removeHandler(handler)
        handler.close()
