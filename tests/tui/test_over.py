"""Screens over the chat: passage, sessions, log, debug, compare, models; and the keys of the memory pane."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from mindchat import commands
from mindchat import events as ev
from mindchat.commands import Command, Reply
from mindchat.errors import NotFoundError
from mindchat.tui.bridge import SessionChanged, read_view
from mindchat.tui.sources import find_source
from mindchat.values import Answer, Citation


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> dict[str, Command]:
    made: dict[str, Command] = {}
    monkeypatch.setattr(commands, "COMMANDS", made)
    for module in ("complete", "slash", "palette"):
        monkeypatch.setattr(f"mindchat.tui.{module}.COMMANDS", made)
    return made


def add(table: dict[str, Command], name: str, *replies: Reply) -> list[str]:
    """A command that yields the replies; the arguments it was called with."""
    called: list[str] = []

    def run(session: Any, args: str) -> Iterator[Reply]:
        called.append(args)
        yield from replies

    table[name] = Command(name, f"/{name}", name, run)
    return called


async def test_citation_opens_its_passage(stage: Any, fakes: Any, snapshot: Any) -> None:
    async with stage((80, 24)) as s:
        await s.ready()
        await s.answer(fakes.QUESTION)
        s.chat.query(".citation").last().focus()
        await s.pilot.press("enter")
        await s.until(lambda: "/docs/jean.md" in s.text() and "[2] Jean" in s.text())
        await snapshot(s)
        await s.pilot.press("n")
        await s.until(lambda: "/docs/charles.md" in s.text())
        await s.pilot.press("escape")
        assert s.app.screen is s.chat


async def test_mark_in_the_answer_opens_its_passage(stage: Any, fakes: Any) -> None:
    async with stage() as s:
        await s.answer(fakes.QUESTION)
        from textual.widgets import Markdown

        view = s.chat.newest
        view.on_markdown_link_clicked(Markdown.LinkClicked(view.query_one(".answer"), "mindchat://citation/2"))
        await s.until(lambda: s.app.screen.id == "passage")


@pytest.mark.parametrize(("typed", "opens"), [("[2]", True), (" [2] ", True), ("[9]", False)])
async def test_a_mark_at_the_prompt_opens_its_passage_and_is_never_a_question(
    stage: Any, fakes: Any, typed: str, opens: bool
) -> None:
    async with stage() as s:
        await s.answer(fakes.QUESTION)
        turns = len(s.chat.turns)
        await s.say(typed)
        await s.until(
            lambda: (
                s.app.screen.id == "passage"
                if opens
                else any("unverified" in note.message for note in s.app._notifications)
            )
        )
        assert len(s.chat.turns) == turns


async def test_unknown_mark_is_called_unverified(stage: Any, fakes: Any) -> None:
    async with stage() as s:
        await s.answer(fakes.QUESTION)
        s.chat.slash.open_citation(s.chat.newest.trace, 9)
        await s.pilot.pause()
        assert s.app.screen is s.chat
        assert any("unverified" in note.message for note in s.app._notifications)


async def test_links_never_open_by_themselves(stage: Any, fakes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    async with stage() as s:
        monkeypatch.setattr(s.app, "open_url", lambda url, **_: opened.append(url))
        await s.answer(fakes.QUESTION)
        from textual.widgets import Markdown

        s.chat.post_message(Markdown.LinkClicked(s.chat.newest.query_one(".answer"), "http://evil/[x]"))
        await s.until(lambda: any("http://evil/[x]" in note.message for note in s.app._notifications))
        assert not opened


def test_changed_and_removed_documents_are_flagged(fakes: Any, tmp_path: Any) -> None:
    session = fakes.FakeSession(tmp_path)
    file = tmp_path / "a.md"
    file.write_text("new words")
    session.rooms.registry.texts[str(file)] = "old words"
    stored = SimpleNamespace(uri=str(file), mtime_ns=1, size=9)
    session.rooms.registry.documents = lambda: iter([stored])
    citation = Citation(1, str(file), "p", 0, 3, "old", "span")
    assert find_source(session, None, citation).warnings == (
        "The file changed after it was read; /sync reads it again.",
    )
    assert (
        "no longer stand" in find_source(session, None, Citation(1, str(file), "p", 0, 3, "new", "span")).warnings[-1]
    )
    file.unlink()
    assert "gone" in find_source(session, None, citation).warnings[0]
    del session.rooms.registry.texts[str(file)]
    assert "removed from the index" in find_source(session, fakes.PASSAGES[0], citation).warnings[-1]


async def test_sessions_list_search_and_resume(stage: Any, snapshot: Any) -> None:
    async with stage((80, 24)) as s:
        await s.ready()
        await s.until(lambda: "ready" in s.text())
        await s.pilot.press("ctrl+r")
        await s.until(lambda: "Grandfathers" in s.text())
        await snapshot(s)
        await s.pilot.press(*"loire")
        await s.until(lambda: "found in" in s.text() and "Grandfathers" not in s.text())
        await s.pilot.press("enter")
        await s.until(lambda: s.session.id == "s2bbbbb" and "Which river is longest?" in s.text())
        assert "The Volga." in s.text()


LEFT: dict[str, Any] = {
    "a new session": None,
    "another": "s1aaaaa",
    "the same": "s2bbbbb",
    "one with turns": "asked",
    "the same with turns": "asked s2bbbbb",
}


@pytest.mark.parametrize("left", LEFT.values(), ids=LEFT)
async def test_late_news_of_the_session_that_was_left_takes_nothing_from_the_resumed_one(
    stage: Any, left: str | None
) -> None:
    """Every job is followed by the session as it was then (a search of the sessions screen, a look at the files); it
    may come at any moment.
    """
    async with stage((80, 24)) as s:
        await s.ready()
        await s.chat.slash.resume((left or "").replace("asked", "").strip() or None)
        if left is not None and "asked" in left:
            await s.answer("Who was it?")
        call, asked = s.chat.bridge.call, ["Which river is longest?", "And in Europe?"]

        async def late(function: Any) -> Any:
            before = SessionChanged(read_view(s.session))
            for _ in range(2):
                s.chat.post_message(before)
                await s.pilot.pause()
            done = await call(function)
            await s.pilot.pause()
            return done

        for way in (late, call):
            s.chat.bridge.call = way
            await s.chat.slash.resume("s2bbbbb")
            await s.until(lambda: s.chat.view.id == "s2bbbbb" and "Which river is longest?" in s.text())
            assert [turn.question for turn in s.chat.query("PastTurn")] == asked
            assert not s.chat.query_one("Welcome").display
            await s.chat.slash.resume(None)
            await s.until(lambda: s.chat.view.id is None and "Which river is longest?" not in s.text())
            assert s.chat.query_one("Welcome").display


async def test_a_session_that_cannot_be_resumed_is_said_and_takes_nothing(stage: Any) -> None:
    async with stage((80, 24)) as s:
        await s.ready()
        await s.chat.slash.resume("s2bbbbb")
        await s.answer("Who was it?")
        shown = s.text()
        await s.pilot.press("ctrl+r")
        await s.until(lambda: "Grandfathers" in s.text())

        def gone(id: str) -> None:
            raise NotFoundError(f"There is no session {id}.", "")

        s.session.resume = gone
        await s.pilot.press("enter")
        await s.until(lambda: "There is no session s1aaaaa." in s.text())
        await s.pilot.press("escape")
        await s.until(lambda: s.text() == shown)


async def test_a_fork_leaves_the_past_above_what_came_after_it(stage: Any) -> None:
    async with stage((80, 24)) as s:
        await s.ready()
        await s.chat.slash.resume("s2bbbbb")
        await s.until(lambda: "Which river is longest?" in s.text())
        await s.chat.note("", "a note")
        s.session.id = "s9fork"
        s.chat.post_message(SessionChanged(read_view(s.session)))
        await s.until(lambda: s.chat.view.id == "s9fork")
        kinds = [type(child).__name__ for child in s.chat.query_one("#flow").children if child.display]
        assert kinds == ["PastTurn", "PastTurn", "Note"]


async def test_a_resumed_session_shows_turns_without_an_end_and_asks_again(stage: Any) -> None:
    async with stage((80, 24)) as s:
        await s.ready()
        past = [
            ("First?", "Half an answer [/x]", "cancelled"),
            ("Second?", "", "failed"),
            ("Who was Metropolis by?", "It was directed", "running"),
        ]
        s.session.rooms.chats.past = lambda id: past
        await s.pilot.press("ctrl+r")
        await s.until(lambda: "Grandfathers" in s.text())
        await s.pilot.press("enter")
        await s.until(lambda: "It was directed" in s.text())
        shown = s.text()
        assert [
            shown.index(words) for words in ("[/x]", "stopped", "Second?", "failed", "It was directed", "not finished")
        ] == sorted(
            shown.index(words) for words in ("[/x]", "stopped", "Second?", "failed", "It was directed", "not finished")
        )
        await s.say("/retry")
        await s.until(lambda: s.session.turns and s.session.turns[-1].question == "Who was Metropolis by?")


async def test_sessions_rename_fork_export_delete(stage: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with stage() as s:
        await s.ready()
        chats = s.session.rooms.chats
        await s.pilot.press("ctrl+r")
        await s.until(lambda: "Grandfathers" in s.text())
        await s.pilot.press("ctrl+e", "end", "!", "enter")
        await s.until(lambda: chats.sessions["s1aaaaa"][0] == "Grandfathers!")
        await s.until(lambda: "Grandfathers!" in s.text())
        await s.pilot.press("ctrl+s")
        await s.until(lambda: (tmp_path / "s1aaaaa.md").is_file())
        await s.pilot.press("ctrl+s")
        await s.until(lambda: "not overwritten" in s.text())
        await s.pilot.press("ctrl+d")
        assert "s1aaaaa" in chats.sessions
        await s.pilot.press("ctrl+d")
        await s.until(lambda: "s1aaaaa" not in chats.sessions)
        await s.until(lambda: s.app.screen.query_one("OptionList").option_count == 1)
        await s.pilot.press("ctrl+f")
        await s.until(lambda: s.session.id == "s3copy")


async def test_log_and_debug(stage: Any, tmp_path: Any) -> None:
    async with stage() as s:
        await s.ready()
        log_file = s.session.rooms.paths.log_file
        log_file.parent.mkdir(parents=True, exist_ok=True)
        log_file.write_text("one\n[two\x1b[2J\n")
        await s.pilot.press("ctrl+l")
        await s.until(lambda: "[two" in s.text())
        await s.pilot.press("escape", "f12")
        await s.until(lambda: "mindchat-engine" in s.text())
        assert "smollm2-135m, ready" in s.text()


async def test_compare_asks_again_and_leaves_the_session_as_it_was(stage: Any, fakes: Any) -> None:
    async with stage((120, 40)) as s:
        await s.ready()
        await s.answer(fakes.QUESTION)
        before = (s.session.config, s.session.id, list(s.session.history), list(s.session.turns))
        s.session.script = lambda text: [
            ev.TurnStarted(text, text, "m", "none", "none", 0, "user", "same"),
            ev.AnswerReady(
                Answer(
                    "I am not sure",
                    s.session.config.engine.policy + " " + s.session.config.memory.mode,
                    True,
                    "unresolved",
                ),
                "answered",
                2.0,
            ),
        ]
        await s.say("/compare engine.policy=mind layout.repeat=0")
        await s.until(lambda: s.app.screen.id == "compare" and "≠ answers differ" in s.text())
        text = s.text()
        assert "now: auto/auto" in text
        assert "engine.policy=mind layout.repeat=0" in text
        assert "mind readonly" in text
        assert "◂ fewest" in text
        await s.pilot.press("escape")
        assert (s.session.config, s.session.id, s.session.history, s.session.turns) == before
        assert len(s.chat.turns) == 1


async def test_compare_with_a_wrong_setting_says_so(stage: Any, fakes: Any) -> None:
    async with stage((120, 40)) as s:
        await s.answer(fakes.QUESTION)
        await s.say("/compare engine.polcy=once")
        await s.until(lambda: "engine.policy" in s.text() and "unknown setting" in s.text())


async def test_model_picker_switches(stage: Any, table: dict[str, Command]) -> None:
    models = [
        SimpleNamespace(
            id=f"model-{n}",
            title=f"Model [{n}]",
            installed=n == 0,
            needs_bytes=5_000_000 * n,
            memory_bytes=10**9,
            window=4096,
            licence="MIT",
        )
        for n in range(3)
    ]
    called = add(table, "model", Reply("not shown", action="model", data=models))
    async with stage() as s:
        await s.ready()
        await s.say("/model")
        await s.until(lambda: "to fetch: 5.0 MB" in s.text())
        await s.pilot.press("down", "enter")
        await s.until(lambda: called == ["", "model-1"])


async def test_memory_keys(stage: Any, fakes: Any, table: dict[str, Command]) -> None:
    listed = SimpleNamespace(facts=(fakes.FACT, fakes.LEARNT))
    memory = add(table, "memory", Reply("two facts", data=listed))
    forget = add(table, "forget", Reply("Forgotten."))
    undo = add(table, "undo", Reply("Undone."))
    async with stage((120, 60)) as s:
        await s.ready()
        pane = s.chat.query_one("#memory")
        pane.focus()
        await s.pilot.press("a")
        await s.until(lambda: "All facts" in s.pane("memory"))
        assert "two facts" not in s.text()
        await s.pilot.press("down", "down", "f")
        await s.until(lambda: forget == [fakes.LEARNT.id])
        await s.until(lambda: len(memory) == 2)
        await s.pilot.press("u")
        await s.until(lambda: undo == [""])
        await s.pilot.press("slash")
        assert s.chat.query_one("Prompt").draft == "/memory search "


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_letters_reach_the_prompt_wherever_the_focus_is(stage: Any, size: tuple[int, int]) -> None:
    async with stage(size) as s:
        await s.ready()
        prompt = s.chat.query_one("Prompt")
        for key, name in (("f2", "uncertainty"), ("f3", "hops"), ("f4", "context"), ("f5", "memory")):
            pane = s.chat.query_one(f"#{name}")
            if not pane.region:
                await s.pilot.press(key)
            await s.until(lambda pane=pane: pane.region)
            pane.focus()
            await s.pilot.press(key, "x", "y")  # the key hides the pane that has the focus
            await s.until(lambda: prompt.draft == "xy")
            prompt.input.clear()
        s.chat.query_one("Transcript").focus()
        await s.pilot.press("H", "i")
        await s.until(lambda: prompt.draft == "Hi")
        s.chat.set_focus(None)
        await s.pilot.press("!")
        await s.until(lambda: prompt.draft == "Hi!")


async def test_copy_says_which_way(stage: Any, fakes: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSH_CONNECTION", "SSH_TTY", "TMUX", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("mindchat.tui.clipboard.TOOLS", ())
    async with stage() as s:
        await s.answer(fakes.QUESTION)
        await s.pilot.press("f7")
        await s.until(lambda: any("last-copy.txt" in note.message for note in s.app._notifications))
        assert (tmp_path / "state" / "last-copy.txt").read_text() == fakes.ANSWER


def test_osc52_only_in_remote_shells(tmp_path: Any) -> None:
    from mindchat.tui.clipboard import copy, local_tool

    sent: list[str] = []
    said = copy("x", osc52=sent.append, folder=tmp_path, environ={"SSH_CONNECTION": "1", "DISPLAY": ":0"})
    assert sent == ["x"]
    assert "OSC 52" in said
    assert "last-copy.txt" in copy("y" * 80_000, osc52=sent.append, folder=tmp_path, environ={"TMUX": "1"})
    assert local_tool({"DISPLAY": ":0"}, "linux", lambda name: f"/bin/{name}") == (
        "/bin/xclip",
        "-selection",
        "clipboard",
    )
    assert local_tool({"DISPLAY": ":0", "SSH_TTY": "x"}, "linux", lambda name: f"/bin/{name}") is None
    assert local_tool({}, "darwin", lambda name: f"/bin/{name}") == ("/bin/pbcopy",)


async def test_palette_lists_screens_and_commands(stage: Any, table: dict[str, Command]) -> None:
    add(table, "status", Reply("fine"))
    async with stage() as s:
        await s.ready()
        titles = [command.title for command in s.app.get_system_commands(s.app.screen)]
        assert {"Uncertainty pane", "Sessions", "/status"} <= set(titles)
        next(command for command in s.app.get_system_commands(s.app.screen) if command.title == "/status").callback()
        await s.until(lambda: "fine" in s.text())


def test_engine_bugs_are_logged_with_their_traceback(caplog: pytest.LogCaptureFixture) -> None:
    from mindchat.tui.bridge import failure

    with caplog.at_level(logging.ERROR):
        told = failure(ZeroDivisionError("x"))
    assert told.code == "bug"
    assert caplog.records[0].exc_info is not None
