"""A hundred kills of the real program, with all that it started, at random moments of five commands.

Held after each kill: the next commands work, and show what had been acknowledged; nothing is broken, or it is repaired
by the very next command, which says so. With the other kills of the soak (index 50, name graph 50, conversations and
facts 200) that makes 400.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .program import TAPE, kill, run, start, write

pytestmark = [pytest.mark.soak, pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")]
KILLS = 20
"""Of each command."""
killed: list[str] = []


class Desk:
    """A home with documents, a fact and a conversation, all of them acknowledged."""

    def __init__(self, folder: Path) -> None:
        self.home, self.docs, self.tape = folder / "home", folder / "docs", folder / "tape.toml"
        self.tape.write_text(TAPE)
        write(self.docs, {"good.md": "The weir is old.", **{f"n{n}.md": f"Crane {n}. " * 40 for n in range(200)}})
        self.ask = ("ask", "Where is the weir?", "-m", f"scripted:{self.tape}", "--policy", "once")
        self.facts, self.turns, self.trusted = 1, 1, False
        for arguments in (("index", "add", str(self.docs)), ("memory", "add", "Ann | sibling | Bob"), self.ask):
            assert run(self.home, self.docs, *arguments).code == 0

    def command(self, kind: str, number: int) -> tuple[str, ...]:
        """A command of this kind that has something to do."""
        if kind == "index add":
            write(self.docs, {f"n{n}.md": f"Crane {n} of {number}. " * 40 for n in range(200)})
            return "index", "add", str(self.docs)
        if kind == "memory forget":
            assert run(self.home, self.docs, "memory", "add", f"Ann | sibling | {needle(number)}").code == 0
        return {
            "index rebuild": ("index", "rebuild"),
            "ask": self.ask,
            "memory add": ("memory", "add", f"Person {number} | sibling | Brother {number}"),
            "memory forget": ("memory", "forget", "--match", needle(number), "--hard", "--yes"),
        }[kind]

    def check(self, kind: str, number: int, finished: bool) -> None:
        """What had been acknowledged is there, and what was forgotten is nowhere."""
        hits = run(self.home, self.docs, "index", "search", "weir", "--json")
        assert (hits.code, hits.faults) == (0, []), hits.err
        assert [Path(hit["document"]).name for hit in hits.told["hits"]] == ["good.md"]
        listed = run(self.home, self.docs, "memory", "list", "--json")
        assert listed.faults == []
        facts, turns = int(listed.told["total"]), self._turns()
        more = finished and kind == "memory add"
        most = kind == "memory add" or (kind == "memory forget" and not finished)
        assert self.facts + more <= facts <= self.facts + most
        if kind == "memory forget" and facts == self.facts:
            word = needle(number).encode()
            left = [path for path in self.home.rglob("*") if path.is_file() and word in path.read_bytes()]
            assert left == []
        assert self.turns + (finished and kind == "ask") <= turns <= self.turns + (kind == "ask")
        self.facts, self.turns = facts, turns
        doctor = run(self.home, self.docs, "doctor")
        if doctor.code and kind.startswith("index"):  # stored and not indexed yet: said, and the next sync mends it
            assert "An earlier update did not finish; mindchat index sync resumes it." in doctor.out
            assert run(self.home, self.docs, "index", "sync").code == 0
            doctor = run(self.home, self.docs, "doctor")
        assert (doctor.code, doctor.faults) == (0, []), doctor.out

    def _turns(self) -> int:
        told = run(self.home, self.docs, "sessions", "list", "--json").told
        return sum(int(session["turns"]) for session in told["sessions"])


def needle(number: int) -> str:
    """A name that stands nowhere else."""
    return f"Zanzibar{number}Quixote"


@pytest.fixture(scope="module", autouse=True)
def table() -> Iterator[None]:
    """One line about all that ran in this process."""
    yield
    print(f"\n{len(killed)} kills, {sum(end == 'killed' for end in killed)} of them before the command had ended")  # noqa: T201


@pytest.mark.parametrize("kind", ["index add", "index rebuild", "ask", "memory add", "memory forget"])
def test_a_killed_command_loses_nothing(tmp_path: Path, kind: str) -> None:
    desk, chance = Desk(tmp_path), random.Random(kind)
    began = time.monotonic()
    assert run(desk.home, desk.docs, *desk.command(kind, 0)).code == 0
    usual = time.monotonic() - began
    desk.facts, desk.turns = desk.facts + (kind == "memory add"), desk.turns + (kind == "ask")
    for number in range(1, KILLS + 1):
        process = start(desk.home, desk.docs, *desk.command(kind, number))
        time.sleep(chance.uniform(0.3, 1.0) * usual)
        finished = process.poll() == 0
        if process.poll() is None:
            kill(process)
        killed.append("ended" if finished else "killed")
        desk.check(kind, number, finished)
    assert run(desk.home, desk.docs, "index", "sync").code == 0
    assert run(desk.home, desk.docs, "index", "verify").code == 0
