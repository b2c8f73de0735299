"""The real program in processes of its own: pipes, encodings, signals, terminals. The model replays a tape; everything
else is real.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

import mindchat
from mindchat.cli import command_runner
from mindchat.events import LAST, from_json

posix = pytest.mark.skipif(os.name != "posix", reason="signals and terminals are POSIX's here")
COMMAND = [sys.executable, "-m", "mindchat"]
PATIENCE = 120.0
"""Seconds to wait for a sign of life; nothing is asserted about time by it."""


def start(
    arguments: Sequence[str], *, cwd: Path, env: dict[str, str] | None = None, **pipes: object
) -> subprocess.Popen[bytes]:
    wanted = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **pipes}
    own = {"PYTHONPATH": str(Path(mindchat.__file__).parents[1])}  # the package that is tested, installed or not
    return subprocess.Popen([*COMMAND, *arguments], cwd=cwd, env={**os.environ, **own, **(env or {})}, **wanted)  # type: ignore[call-overload,no-any-return]


def run(arguments: Sequence[str], *, cwd: Path, env: dict[str, str] | None = None) -> tuple[int, bytes, bytes]:
    with start(arguments, cwd=cwd, env=env) as process:
        out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def opened(pipe: Path) -> int:
    """The writing end of a pipe, once somebody waits at its other end; nothing is written, so they go on waiting until
    it is closed.
    """
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with contextlib.suppress(OSError):  # nobody reads yet
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        time.sleep(0.05)
    raise AssertionError("nobody opened the pipe")


def come_to_rest(process: subprocess.Popen[bytes]) -> None:
    """Wait until the process has waited for something, without a moment's work, for half a second."""
    seen, end, quiet = psutil.Process(process.pid), time.monotonic() + PATIENCE, 0
    spent = seen.cpu_times()
    while quiet < 10:
        time.sleep(0.05)
        now = seen.cpu_times()
        quiet = quiet + 1 if seen.status() == psutil.STATUS_SLEEPING and now == spent and sum(now[:2]) > 0.1 else 0
        spent = now
        assert time.monotonic() < end


@pytest.fixture
def tape(tmp_path: Path) -> str:
    """A model that gives one answer, with letters that few encodings have, and doubts what might be remembered of it."""
    file = tmp_path / "tape.toml"
    file.write_text('[[reply]]\ntext = " Xawery Żuławski 日本"\n[[reply]]\n', encoding="utf-8")
    return f"scripted:{file}"


@pytest.fixture(autouse=True)
def documents(tmp_path: Path) -> None:
    """One indexed document, so that the demo need not be."""
    (tmp_path / "film.txt").write_text("Polish-Russian War is a film by Xawery Żuławski.", encoding="utf-8")
    assert command_runner.run(["index", "add", str(tmp_path / "film.txt")]) == 0


def ask(tape: str, *more: str) -> list[str]:
    return [
        "ask",
        "Who directed Polish-Russian War?",
        "-m",
        tape,
        "--policy",
        "once",
        "--set",
        "answer.refuse=off",
        *more,
    ]


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_no_encoding_breaks_an_answer(tmp_path: Path, tape: str, encoding: str) -> None:
    env = {"PYTHONIOENCODING": encoding}
    code, out, err = run(ask(tape), cwd=tmp_path, env=env)
    assert (code, b"Traceback" in err) == (0, False), err
    assert "Xawery" in out.decode(encoding)
    code, out, _ = run(ask(tape, "--json"), cwd=tmp_path, env=env)
    assert code == 0
    assert json.loads(out.decode(encoding))["answer"].strip() == "Xawery Żuławski 日本"


def test_a_whole_turn_in_events_ends_with_one_last_event(tmp_path: Path, tape: str) -> None:
    code, out, _ = run(ask(tape, "--events"), cwd=tmp_path)
    events = [from_json(line) for line in out.splitlines()]
    assert code == 0
    assert [isinstance(event, LAST) for event in events] == [False] * (len(events) - 1) + [True]


def test_equal_runs_differ_in_timings_only(tmp_path: Path, tape: str) -> None:
    first, second = (json.loads(run(ask(tape, "--json", "--incognito"), cwd=tmp_path)[1]) for _ in range(2))
    assert first.pop("timing").keys() == second.pop("timing").keys()
    assert first == second


def test_a_citation_is_the_text_of_the_file(tmp_path: Path, tape: str) -> None:
    (tmp_path / "tape.toml").write_text('[[reply]]\ntext = " Xawery Żuławski"\n[[reply]]\n', encoding="utf-8")
    answer = json.loads(run(ask(tape, "--json"), cwd=tmp_path)[1])
    citation = answer["citations"][0]
    assert (
        (tmp_path / "film.txt").read_text(encoding="utf-8")[citation["start"] : citation["end"]]
        == citation["quote"]
        == "Xawery Żuławski"
    )


def test_the_next_process_continues_the_conversation(tmp_path: Path, tape: str) -> None:
    run(ask(tape), cwd=tmp_path)
    code, out, _ = run(["sessions", "list", "--json"], cwd=tmp_path)
    assert code == 0
    assert json.loads(out)["sessions"][0]["turns"] == 1
    code, _, err = run(ask(tape, "-c", "--set", "engine.rewrite=false"), cwd=tmp_path)
    assert code == 0, err
    assert json.loads(run(["sessions", "list", "--json"], cwd=tmp_path)[1])["sessions"][0]["turns"] == 2


@posix
def test_a_reader_that_leaves_is_no_error(tmp_path: Path, tape: str) -> None:
    for arguments in (["config", "schema"], ask(tape, "--events")):
        reading, writing = os.pipe()
        os.close(reading)
        with start(arguments, cwd=tmp_path, stdout=writing) as process:
            os.close(writing)
            _, err = process.communicate(timeout=60)
        assert process.returncode == 0
        assert b"Broken" not in err
        assert b"Traceback" not in err


@posix
@pytest.mark.parametrize(
    ("number", "form"), [(signal.SIGINT, []), (signal.SIGINT, ["--json"]), (signal.SIGTERM, ["--events"])]
)
def test_a_signal_while_the_model_loads(tmp_path: Path, number: int, form: list[str]) -> None:
    pipe = tmp_path / "tape"
    os.mkfifo(pipe)  # opening it blocks until somebody writes: a load that never ends and looks at nothing
    with start(["ask", "Who?", "-m", f"scripted:{pipe}", "--policy", "once", *form], cwd=tmp_path) as process:
        held = opened(pipe)
        began = time.monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    os.close(held)
    assert time.monotonic() - began < 5
    assert process.returncode == 130
    assert b"Traceback" not in err
    if form == ["--json"]:
        assert json.loads(out)["error"]["code"] == "interrupted"
    elif form == ["--events"]:
        assert isinstance(from_json(out.splitlines()[-1]), LAST)
    else:
        assert (out, err.decode().startswith("Interrupted before the answer.")) == (b"", True)


@posix
def test_ctrl_c_before_anything_has_begun(tmp_path: Path) -> None:
    with start(["ask", "-"], cwd=tmp_path, stdin=subprocess.PIPE) as process:
        come_to_rest(process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err.decode() == "Interrupted.\nNothing that was finished is lost.\n"


@posix
def test_timeout_while_the_model_loads(tmp_path: Path) -> None:
    pipe = tmp_path / "tape"
    os.mkfifo(pipe)
    code, out, _ = run(
        ["ask", "Who?", "-m", f"scripted:{pipe}", "--policy", "once", "--json", "--timeout", "1"], cwd=tmp_path
    )
    assert (code, json.loads(out)["error"]["code"]) == (4, "timeout")


def on_a_terminal(arguments: Sequence[str], *, cwd: Path, env: dict[str, str]) -> tuple[int, str, str]:
    """Run with standard error on a terminal: (exit code, standard output, what the terminal was sent)."""
    import pty

    controller, terminal = pty.openpty()
    with start(arguments, cwd=cwd, env=env, stderr=terminal) as process:
        os.close(terminal)
        out = process.stdout.read() if process.stdout else b""
        process.wait(60)
    sent = b""
    try:
        while piece := os.read(controller, 65536):
            sent += piece
    except OSError:  # the other side has gone: Linux says so with EIO
        pass
    os.close(controller)
    return process.returncode, out.decode(), sent.decode()


@posix
@pytest.mark.parametrize(
    ("env", "moves", "colours"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, False, False),
    ],
)
def test_a_terminal_gets_a_progress_line_and_a_pipe_does_not(
    tmp_path: Path, tape: str, env: dict[str, str], moves: bool, colours: bool
) -> None:
    code, out, sent = on_a_terminal(ask(tape), cwd=tmp_path, env=env)
    assert code == 0
    assert "\x1b" not in out
    assert ("\r\x1b[K" in sent) is moves
    assert ("\x1b[2m" in sent) is colours
    assert ("\x1b" in sent) is (moves or colours)
    assert b"\x1b" not in run(ask(tape), cwd=tmp_path, env=env)[2]
