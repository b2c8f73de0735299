"""The line mode."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from mindchat import commands
from mindchat.commands import Command, Reply
from mindchat.errors import ModelMissingError
from mindchat.tui import line_mode


def chat(session: Any, *lines: str, prompt: bool = False) -> tuple[int, str]:
    written: list[str] = []
    rest = iter([*(line + "\n" for line in lines), ""])
    code = line_mode.run(lambda: session, read=lambda: next(rest), write=written.append, prompt=prompt)
    return code, "".join(written)


def test_a_turn_in_plain_lines(fakes: Any, tmp_path: Any) -> None:
    code, out = chat(fakes.FakeSession(tmp_path), fakes.QUESTION)
    assert code == 0
    assert "Looking up: father of Jean Bretagne Charles de La Trémoille\n" in out
    assert f"Assistant: {fakes.ANSWER}\n" in out
    assert "Source [2]: Jean Bretagne Charles de La Trémoille: Charles Armand René de La Trémoille\n" in out
    assert not set(out) & set("\x1b╭│█▸●")


def test_a_source_says_its_page_and_heading(fakes: Any, tmp_path: Any) -> None:
    _, out = chat(fakes.FakeSession(tmp_path, script=lambda _: paged(fakes)), fakes.QUESTION)
    assert "Source [2]: Jean Bretagne Charles de La Trémoille › Youth, page 7: Charles Armand René" in out


def paged(fakes: Any) -> list[Any]:
    """The turn of the fakes over passages with a page and a heading."""
    import mindchat.events as ev

    there = tuple(replace(passage, page=7, heading="Youth") for passage in fakes.PASSAGES)
    return [replace(event, passages=there) if isinstance(event, ev.PassagesFound) else event for event in fakes.turn()]


def test_missing_names_are_told(fakes: Any, tmp_path: Any) -> None:
    import mindchat.events as ev
    from mindchat.values import Absent

    news = [
        ev.NamesAbsent((Absent("Zep\x1b[2Jpelin"), Absent("Metropolis", ("Metropolitan Opera",)))),
        ev.TurnCancelled(""),
    ]
    _, out = chat(fakes.FakeSession(tmp_path, script=lambda _: news), "x")
    assert "No document names “Zeppelin”.\nNo document names “Metropolis”. Near: “Metropolitan Opera”.\n" in out


def test_failure_gives_its_exit_code(fakes: Any, tmp_path: Any) -> None:
    import mindchat.events as ev

    session = fakes.FakeSession(
        tmp_path, script=lambda _: [ev.TurnFailed("index_missing", "Nothing is indexed.", "Index a folder.", 3)]
    )
    assert chat(session, "x") == (3, "Model: load\nFailed: Nothing is indexed. Index a folder.\n")


def test_no_session_is_said(tmp_path: Any) -> None:
    def make() -> Any:
        raise ModelMissingError("The model is not here.", "mindchat models pull x")

    written: list[str] = []
    assert line_mode.run(make, read=lambda: "", write=written.append, prompt=False) == 3
    assert written == ["The model is not here. mindchat models pull x\n"]


def test_slash_lines(fakes: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(session: Any, args: str) -> Iterator[Reply]:
        yield Reply("half\x1b[2J")
        yield Reply(f"done {args}")

    table = {"index": Command("index", "/index", "index", run)}
    monkeypatch.setattr(commands, "COMMANDS", table)
    monkeypatch.setattr(line_mode, "COMMANDS", table)
    _, out = chat(fakes.FakeSession(tmp_path), "/index [x", "/idnex", "/quit", "never read")
    assert out.splitlines()[:2] == ["half", "done [x"]
    assert "There is no /idnex." in out
    assert "never" not in out


def test_prompt_only_for_people(fakes: Any, tmp_path: Any) -> None:
    assert "You: " in chat(fakes.FakeSession(tmp_path), "/quit", prompt=True)[1]
    assert "You: " not in chat(fakes.FakeSession(tmp_path), "/quit")[1]


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill with SIGINT is a Unix thing")
def test_ctrl_c_stops_the_turn_and_the_chat_goes_on(fakes: Any, tmp_path: Any) -> None:
    session = fakes.FakeSession(tmp_path, pause=0.02)
    timer = threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    code, out = chat(session, "x")
    timer.join()
    assert "Stopped." in out
    assert code == 0


def test_no_screen_library_is_imported() -> None:
    code = "import sys, mindchat.tui.line_mode; print({'textual', 'rich', 'torch'} & set(sys.modules))"
    assert (
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
        == "set()"
    )


def test_an_encoding_without_the_letters_does_not_break() -> None:
    code = "from mindchat.tui.line_mode import write_stdout; write_stdout('Trémoille 日本 θ\\n')"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "cp1252"}
    )
    assert done.stdout == "Trémoille ?? ?\n".encode("cp1252")
