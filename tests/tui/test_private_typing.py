"""What is typed and copied is written down only while the conversation may be kept; and nothing is ever written into
the working folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mindchat.tui.clipboard import copy

SECRET = "Who is my secret admirer?"


def written(folder: Path) -> str:
    """Everything that stands in a folder's files."""
    return (
        "\n".join(file.read_text(errors="replace") for file in folder.rglob("*") if file.is_file())
        if folder.exists()
        else ""
    )


@pytest.mark.parametrize(
    "lines",
    [
        ["/incognito"],
        ["/new", "/incognito"],
        ["/incognito off", "/incognito"],
        ["/incognito", "/new"],
        ["//incognito?", "/incognito"],
    ],
    ids=" ".join,
)
async def test_what_follows_incognito_is_not_kept_also_while_it_starts(
    stage: Any, tmp_path: Path, lines: list[str]
) -> None:
    async with stage(slow_load=True) as s:
        for line in (*lines, SECRET):  # the engine thread still loads: none of them has been carried out yet
            await s.say(line)
            await s.pilot.pause()
        s.session.may_load.set()
        await s.until(lambda: s.session.incognito and s.chat.view.incognito and not s.chat.busy)
        await s.say(SECRET + " And since when?")
        await s.until(lambda: len(s.session.turns) > 0 and not s.chat.busy)
        s.chat.query_one("Prompt").restore(SECRET + " A draft.")
        s.chat.keep_draft()
    assert "admirer" not in written(tmp_path / "state")


async def test_what_is_asked_after_incognito_has_ended_is_kept_again(stage: Any, tmp_path: Path) -> None:
    async with stage() as s:
        await s.ready()
        for line in ("/incognito", "/incognito off"):
            await s.say(line)
            await s.until(lambda: not s.chat.busy)
        await s.until(lambda: s.chat.keeps)
        await s.answer("Who directed Metropolis?")
    assert "Metropolis" in written(tmp_path / "state")


@pytest.mark.parametrize("state", [True, False], ids=["incognito typed", "incognito from the start"])
async def test_a_copy_of_an_incognito_answer_writes_no_file(
    stage: Any, fakes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: bool
) -> None:
    for name in ("SSH_CONNECTION", "SSH_TTY", "TMUX", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("mindchat.tui.clipboard.TOOLS", ())
    (here := tmp_path / "here").mkdir()
    monkeypatch.chdir(here)
    async with stage(app_options={} if state else {"state": None}) as s:
        await s.ready()
        await s.say("/incognito")
        await s.until(lambda: s.chat.view.incognito and not s.chat.busy)
        await s.answer(fakes.QUESTION)
        await s.pilot.press("f7")
        await s.until(lambda: any("No clipboard tool" in note.message for note in s.app._notifications))
    assert list(here.iterdir()) == []
    assert not (tmp_path / "state" / "last-copy.txt").exists()


@pytest.mark.parametrize("environ", [{}, {"TMUX": "1"}, {"SSH_TTY": "x"}])
@pytest.mark.parametrize("text", ["x", "y" * 80_000])
def test_no_copy_goes_into_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    copy(text, osc52=lambda _: None, folder=None, environ=environ)
    copy(text, osc52=None, folder=None, environ=environ)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("when", ["at the start", "after a command", "between turns"])
async def test_repairs_stand_in_the_transcript(stage: Any, fakes: Any, when: str) -> None:
    repair = "chats.db was damaged; a [bold]backup[/bold] was restored."
    async with stage(slow_load=True) as s:
        if when == "at the start":
            s.session.notices.append(repair)
        s.session.may_load.set()
        await s.ready()
        if when == "after a command":
            s.session.notices.append(repair)
            await s.say("/settings k")
        elif when == "between turns":
            await s.answer(fakes.QUESTION)
            s.session.notices.append(repair)
            await s.answer(fakes.QUESTION)
        await s.until(lambda: "chats.db was damaged; a [bold]backup" in " ".join(s.text().split()))
    assert s.session.closed
