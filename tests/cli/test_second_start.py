"""A second start of the program answers from memory of the first, says so and shows the source passage. Own processes;
a tape for a model.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mindchat.cli import command_runner

from .test_process import run

FILM = (
    "Polish-Russian War is a 2009 Polish film directed by Xawery Żuławski. It is based on a novel by Dorota Masłowska."
)
FIRST, FOLLOW_UP, AGAIN = (
    "Who directed Polish-Russian War?",
    "And who is its director?",
    "Who is the director of the film Polish-Russian War?",
)
ANSWER = '[[reply]]\ntext = " Xawery Żuławski"\n'
SURE = '[[reply]]\nscores = {" Xawery Żuławski" = -0.01}\n'


class Desk:
    """A folder with one indexed film, and the program run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.film = folder / "film.txt"
        self.film.write_text(FILM, encoding="utf-8")
        self.index()

    def index(self) -> None:
        """As `mindchat index sync` after a change."""
        assert command_runner.run(["index", "add", str(self.film)]) == 0

    def ask(self, question: str, tape: str, *more: str) -> tuple[str, str]:
        """(stdout, stderr) of a process of its own."""
        file = self.folder / "tape.toml"
        file.write_text(tape, encoding="utf-8")
        arguments = ["ask", question, "-m", f"scripted:{file}", "--policy", "once", "--set", "memory.audit=0", *more]
        code, out, err = run(arguments, cwd=self.folder, env={"PYTHONIOENCODING": "utf-8"})
        assert code == 0, err
        return out.decode(), err.decode()

    def memory(self, *arguments: str) -> str:
        """`mindchat memory …` in a third process."""
        return run(["memory", *arguments], cwd=self.folder, env={"PYTHONIOENCODING": "utf-8"})[1].decode()


@pytest.fixture
def desk(tmp_path: Path) -> tuple[Desk, str]:
    """After the first start: the desk and the id of the fact that it saved."""
    made = Desk(tmp_path)
    _, told = made.ask(FIRST, ANSWER + SURE)
    saved = re.search(r"saved (\w{7})  Polish-Russian War — director — Xawery Żuławski .*mindchat memory undo", told)
    assert saved is not None, told
    assert "search skipped" not in told
    return made, saved[1]


@pytest.mark.parametrize(("question", "tape", "more"), [(AGAIN, ANSWER, ()), (FOLLOW_UP, ANSWER, ("-c",))])
def test_a_second_start_answers_from_memory_says_so_and_shows_the_passage(
    desk: tuple[Desk, str], question: str, tape: str, more: tuple[str, ...]
) -> None:
    made, uid = desk
    out, told = made.ask(question, tape, *more)
    assert f"search skipped: {uid} answers this" in told
    assert f"film: “{FILM}”" in told, "the passage that stands in for the search"
    assert "found " not in told, "nothing was searched"
    assert "Xawery Żuławski" in out
    assert re.search(r"\[1\] .*film\.txt \[53–68\]  “Xawery Żuławski”", out)
    assert f"memory {uid} → search skipped" in made.memory("why")
    shown = made.memory("show", uid)
    assert 'film.txt §1 [0–69]  "Polish-Russian War is a 2009 Polish film directed by Xawery' in shown
    assert "used 1×" in shown
    assert "support 1 source" in shown, "an answer from memory is no further source"


def test_the_object_for_programs_says_it_too(desk: tuple[Desk, str]) -> None:
    made, uid = desk
    body = json.loads(made.ask(AGAIN, ANSWER, "--json")[0])
    assert [(hop["memory"], hop["skipped"]) for hop in body["hops"]] == [([uid], True)]
    assert body["hops"][0]["passages"] == [citation["passage"] for citation in body["citations"]]
    assert body["counts"]["retrievals"] == 0
    assert body["counts"]["model_calls"] == {"answer": 1}, "what is known already is not verified again"


def test_a_changed_document_is_searched_again(desk: tuple[Desk, str]) -> None:
    made, uid = desk
    made.film.write_text(FILM.replace("Xawery Żuławski", "Agnieszka Holland"), encoding="utf-8")
    tape = (ANSWER + SURE).replace("Xawery Żuławski", "Agnieszka Holland")
    assert "search skipped" not in made.ask(AGAIN, tape)[1], "a file that changed since it was indexed is not trusted"
    made.index()
    out, told = made.ask(AGAIN, tape)
    assert "search skipped" not in told
    assert uid not in told
    assert "Agnieszka Holland" in out


def test_a_forgotten_fact_does_not_come_back(desk: tuple[Desk, str]) -> None:
    made, uid = desk
    made.memory("forget", uid, "--yes")
    for _ in range(2):
        told = made.ask(AGAIN, ANSWER + SURE)[1]
        assert "search skipped" not in told
        assert "saved " not in told


def test_what_is_not_sure_enough_is_called_a_candidate(tmp_path: Path) -> None:
    made = Desk(tmp_path)
    unsure = '[[reply]]\nscores = {" Xawery Żuławski" = -0.5, " unknown" = -0.6}\n'
    told = made.ask(FIRST, ANSWER + unsure)[1]
    assert re.search(r"saved \w{7} as candidate, not used yet  Polish-Russian War — director — Xawery Żuławski ", told)
    assert "search skipped" not in made.ask(AGAIN, ANSWER + unsure)[1]
