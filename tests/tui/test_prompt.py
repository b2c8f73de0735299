"""The prompt: sending, new lines, history, completion, pastes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from textual import events as tev

from mindchat import commands
from mindchat.commands import Command, Reply
from mindchat.tui import complete


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> dict[str, Command]:
    """A command table of our own, so that these tests say what they depend on."""

    def run(session: Any, args: str) -> Iterator[Reply]:
        yield Reply("working [/x]")
        yield Reply(f"done {args}")

    made = {
        name: Command(
            name, f"/{name} [WORDS]", f"does {name}", run, (lambda _: ["search", "list"]) if name == "memory" else None
        )
        for name in ("memory", "model", "help", "index", "new", "quit")
    }
    made["new"] = Command(
        "new", "/new", "new", lambda session, args: iter([session.new() or Reply("A new session.", action="new")])
    )
    monkeypatch.setattr(commands, "COMMANDS", made)
    for module in ("complete", "slash", "palette"):
        monkeypatch.setattr(f"mindchat.tui.{module}.COMMANDS", made)
    monkeypatch.setattr("mindchat.tui.slash.nearest", lambda name: "memory" if name.startswith("mem") else "")
    return made


@pytest.mark.parametrize("key", ["ctrl+j", "shift+enter", "alt+enter"])
async def test_new_line_keys_do_not_send(stage: Any, key: str) -> None:
    async with stage() as s:
        await s.pilot.press("a", key, "b")
        assert s.chat.query_one("Prompt").draft == "a\nb"
        assert not s.chat.turns


async def test_input_grows_and_stops_growing(stage: Any) -> None:
    async with stage() as s:
        low = s.chat.query_one("#input").size.height
        s.chat.query_one("#input").insert("\n".join("line" for _ in range(30)))
        await s.pilot.pause()
        assert low < s.chat.query_one("#input").size.height <= 10


async def test_tab_completes_and_never_sends(stage: Any) -> None:
    async with stage() as s:
        await s.ready()
        await s.pilot.press("slash", "m", "e", "m")
        assert s.chat.query_one("#completions").display
        await s.pilot.press("tab")
        assert s.chat.query_one("Prompt").draft == "/memory "
        await s.until(lambda: s.chat.query_one("#completions").option_count == 2)
        await s.pilot.press("down", "tab")
        assert s.chat.query_one("Prompt").draft == "/memory list"
        assert not s.chat.notes


async def test_escape_closes_the_list_first(stage: Any) -> None:
    async with stage() as s:
        await s.pilot.press("slash", "m")
        await s.pilot.press("escape")
        assert not s.chat.query_one("#completions").display
        assert s.chat.query_one("Prompt").draft == "/m"


async def test_unknown_command_keeps_the_text_and_names_the_nearest(stage: Any) -> None:
    async with stage() as s:
        await s.ready()
        await s.say("/memroy list [x")
        await s.until(lambda: "Did you mean /memory?" in s.text())
        assert s.chat.query_one("Prompt").draft == "/memroy list [x"
        assert not s.chat.turns


async def test_command_reports_progress_and_result(stage: Any) -> None:
    async with stage() as s:
        await s.ready()
        await s.say("/index a[/b]")
        await s.until(lambda: "done a[/b]" in s.text())


async def test_new_empties_the_transcript(stage: Any) -> None:
    async with stage() as s:
        await s.answer("x")
        await s.say("/new")
        await s.until(lambda: not s.chat.turns)
        await s.until(lambda: "Try" in s.text())


async def test_a_paste_never_sends(stage: Any) -> None:
    async with stage() as s:
        s.app.post_message(tev.Paste("/quit\nrm -rf x\n" * 200))
        await s.until(lambda: s.chat.query_one("Prompt").draft)
        assert s.chat.query_one("Prompt").draft.count("rm -rf x") == 200
        assert not s.chat.turns
        assert s.app.is_running


async def test_a_megabyte_is_pasted_whole_and_quickly(stage: Any) -> None:
    text = "\n".join(f"line {n} of the paste" for n in range(50_000))
    async with stage() as s:
        before = time.monotonic()
        s.app.post_message(tev.Paste(text))
        await s.until(lambda: s.chat.query_one("Prompt").draft == text)
        assert time.monotonic() - before < 3
        assert "characters]" in s.text()


async def test_history_goes_up_and_down_and_survives(stage: Any) -> None:
    async with stage() as s:
        await s.answer("first")
        await s.answer("second\nline")
        s.chat.query_one("Prompt").restore("draft")
        await s.pilot.press("up")
        assert s.chat.query_one("Prompt").draft == "second\nline"
        await s.pilot.press("up", "up")
        assert s.chat.query_one("Prompt").draft == "first"
        await s.pilot.press("down", "down", "down")
        assert s.chat.query_one("Prompt").draft == "draft"
        s.chat.query_one("Prompt").restore("")
        await s.pilot.press("ctrl+q")
    async with stage() as s:
        await s.pilot.press("up")
        assert s.chat.query_one("Prompt").draft == "second\nline"


def test_fuzzy_order() -> None:
    assert complete.fitting("mo", ["memo", "model", "mxo"]) == ["model", "memo", "mxo"]
    assert complete.fitting("zz", ["model"]) == []


def test_paths_complete(tmp_path: Any) -> None:
    (tmp_path / "a b ü.md").write_text("x")
    (tmp_path / "all").mkdir()
    (tmp_path / ".hidden").write_text("x")
    assert complete.paths(f"{tmp_path}/a") == [f"{tmp_path}/all/", f"{tmp_path}/a b ü.md"]
    assert complete.paths(f"{tmp_path}/.") == [f"{tmp_path}/.hidden"]
    assert complete.paths(f"{tmp_path}/none/x") == []
