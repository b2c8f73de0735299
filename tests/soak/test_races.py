"""Twelve races: commands that run at the same time on one home, a few rounds each.

Held after each round: every command ended by itself with a code that says how; `doctor` finds nothing broken; index and
registry agree once the writers have ended; and what only this race can hurt is whole.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from .program import TAPE, run, together, write

pytestmark = [pytest.mark.soak, pytest.mark.skipif(os.name != "posix", reason="named pipes")]
ROUNDS = 5
TEXTS = {f"n{number}.md": f"# Note {number}\n\nThe weir {number} is old.\n" for number in range(120)}


class Desk:
    """A home and a folder of documents."""

    def __init__(self, folder: Path) -> None:
        self.home, self.docs, self.more = folder / "home", folder / "docs", folder / "more"
        write(self.docs, TEXTS)
        write(self.more, {f"m{number}.md": f"A crane {number}." for number in range(120)})
        (folder / "tape.toml").write_text(TAPE)
        self.tape = f"scripted:{folder / 'tape.toml'}"
        assert self.run("index", "add", str(self.docs)) == 0

    def run(self, *arguments: str) -> int:
        ended = run(self.home, self.docs, *arguments)
        assert ended.faults == [], ended.out + ended.err
        return ended.code

    def total(self, *arguments: str) -> int:
        return int(run(self.home, self.docs, *arguments, "--json").told["total"])

    def together(self, *commands: Sequence[str], ends: Sequence[int] = (0,)) -> list[int]:
        """Exit codes; each one of `ends`."""
        codes = together(self.home, self.docs, commands)
        assert set(codes) <= set(ends), codes
        return codes

    def check(self) -> None:
        """Nothing is broken, and everything is found."""
        assert self.run("index", "sync") == 0
        assert self.run("index", "verify") == 0
        assert self.run("doctor") == 0
        assert self.run("memory", "doctor") == 0
        assert run(self.home, self.docs, "index", "search", "weir", "--json").told["hits"]


@contextlib.contextmanager
def meanwhile(act: Callable[[int], None]) -> Iterator[None]:
    """`act(number)` again and again in another thread."""
    done = threading.Event()

    def go() -> None:
        number = 0
        while not done.is_set():
            with contextlib.suppress(OSError):
                act(number)
            number += 1
            done.wait(0.002)

    thread = threading.Thread(target=go)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def add_and_add(desk: Desk) -> None:
    desk.together(*[["index", "add", str(desk.docs)]] * 3)


def add_two_folders(desk: Desk) -> None:
    desk.run("index", "remove", str(desk.more), "--yes")
    desk.together(["index", "add", str(desk.more)], ["index", "sync"])
    assert run(desk.home, desk.docs, "index", "search", "crane", "--json").told["hits"]


def add_and_search(desk: Desk) -> None:
    write(desk.docs, {"n0.md": "The weir is new.\n" * os.getpid().bit_count()})
    desk.together(["index", "add", str(desk.docs)], *[["index", "search", "weir"]] * 3)


def add_and_rebuild(desk: Desk) -> None:
    desk.together(["index", "rebuild"], ["index", "add", str(desk.more)], ["index", "rebuild"])


def add_and_remove(desk: Desk) -> None:
    desk.together(["index", "add", str(desk.more)], ["index", "remove", str(desk.more), "--yes"], ends=(0, 1, 2, 3))


def files_vanish(desk: Desk) -> None:
    def act(number: int) -> None:
        path = desk.docs / f"n{number % 120}.md"
        path.unlink()
        path.write_text(f"The weir {number} is young.")

    with meanwhile(act):
        desk.together(["index", "add", str(desk.docs)], ["index", "sync"])
    write(desk.docs, TEXTS)


def files_become_pipes(desk: Desk) -> None:
    def act(number: int) -> None:
        path = desk.docs / f"n{number % 120}.md"
        path.unlink()
        os.mkfifo(path)

    with meanwhile(act):
        desk.together(["index", "add", str(desk.docs)])
    for name in TEXTS:
        (desk.docs / name).unlink(missing_ok=True)
    write(desk.docs, TEXTS)


def folders_become_links(desk: Desk) -> None:
    inner, aside = desk.docs / "inner", desk.docs.parent / "aside"
    write(inner, {"x.md": "An inner weir."})
    write(aside, {"secret.md": "xylophonecanary"})

    def act(number: int) -> None:
        inner.rename(desk.docs.parent / "moved")
        inner.symlink_to(aside)
        inner.unlink()
        (desk.docs.parent / "moved").rename(inner)

    with meanwhile(act):
        desk.together(["index", "add", str(desk.docs)])
    assert run(desk.home, desk.docs, "index", "search", "xylophonecanary", "--json").told["hits"] == []


def facts_and_facts(desk: Desk) -> None:
    before = desk.total("memory", "list")
    desk.together(*[["memory", "add", f"Person {before} {n} | sibling | Brother {n}"] for n in range(4)])
    assert desk.total("memory", "list") == before + 4


def facts_and_forgetting(desk: Desk) -> None:
    desk.run("memory", "add", "Ann Lee | sibling | Bob Lee")
    desk.together(
        ["memory", "add", "Cid Roe | sibling | Dan Roe", "--resolve", "keep"],
        ["memory", "forget", "--entity", "Ann Lee", "--hard", "--yes"],
        ["memory", "list"],
    )
    listed = run(desk.home, desk.docs, "memory", "list", "--json").told["facts"]
    assert "Ann Lee" not in [fact["subject"] for fact in listed]
    assert "Cid Roe" in [fact["subject"] for fact in listed]


def questions_and_indexing(desk: Desk) -> None:
    ask = ["ask", "Where is the weir?", "-m", desk.tape, "--policy", "once"]
    before = turns(desk)
    desk.together(ask, ["index", "rebuild"], ask, ["index", "add", str(desk.more)])
    assert turns(desk) == before + 2


def questions_and_erasing(desk: Desk) -> None:
    ask = ["ask", "Where is the weir?", "-m", desk.tape, "--policy", "once"]
    desk.run(*ask)
    desk.together(ask, ["memory", "forget", "--all", "--hard", "--chats", "--yes"], ask, ends=(0, 1))
    turns(desk)


def turns(desk: Desk) -> int:
    found = run(desk.home, desk.docs, "sessions", "list", "--json").told["sessions"]
    return sum(int(session["turns"]) for session in found)


RACES = (
    add_and_add, add_two_folders, add_and_search, add_and_rebuild, add_and_remove, files_vanish, files_become_pipes,
    folders_become_links, facts_and_facts, facts_and_forgetting, questions_and_indexing, questions_and_erasing,
)  # fmt: skip


@pytest.mark.parametrize("race", RACES, ids=lambda race: race.__name__)
def test_a_race_hurts_nothing(tmp_path: Path, race: Callable[[Desk], None]) -> None:
    desk = Desk(tmp_path)
    for _ in range(ROUNDS):
        race(desk)
        desk.check()


def test_there_are_twelve() -> None:
    assert len(RACES) == 12
