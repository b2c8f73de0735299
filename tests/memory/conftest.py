"""A small library about real people and films, a model that says yes to the first claim, and harvests from them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import mindchat
from mindchat.config import MemorySection
from mindchat.memory.facts import FactMemory
from mindchat.storage.document_registry import DocumentRegistry
from mindchat.storage.sqlite_file import Store
from mindchat.values import Choice, Chunk, Document, Draft, Harvest, Passage, Prompt, Signal, Token

FILM = (
    "Polish-Russian War is a 2009 Polish film directed by Xawery Żuławski. It is based on a novel by Dorota Masłowska."
)
PERSON = (
    "Xawery Żuławski (born 22 December 1971 in Warsaw) is a Polish film director. "
    "He is the son of the actress Małgorzata Braunek and the director Andrzej Żuławski."
)
ACTRESS = (
    "Małgorzata Braunek (30 January 1947 – 23 June 2014) was a Polish film and stage actress. She was born in"
    " Szamotuły."
)


class YesAsk:
    """Ask whose model prefers the claimed value to its distractors by `yes` nats; counts its calls."""

    provides: frozenset[Signal] = frozenset()

    def __init__(self, yes: float = 5.0) -> None:
        self.yes, self.calls, self.prompts = yes, 0, []  # type: ignore[var-annotated]

    def choose(self, prompt: Prompt, options: Sequence[str], *, kind: str) -> Sequence[Choice]:
        assert kind == "verify"
        self.calls += 1
        self.prompts.append((prompt, tuple(options)))
        return [Choice(option, -1.0 - (self.yes if i else 0.0), 9) for i, option in enumerate(options)]


def draft(text: str, entropy: float | None = 0.1) -> Draft:
    """A sentence with one token a word."""
    return Draft(text, tuple(Token(i, i, word, -0.1, entropy) for i, word in enumerate(re.findall(r"\s*\S+", text))))


class World:
    """Files, registry and memory of one test."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.db = folder, folder / "memory.db"
        self.registry = DocumentRegistry(self.db)
        self.open: list[FactMemory] = []

    def write(self, name: str, text: str, title: str = "") -> Path:
        """A file, indexed as one passage."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        self.index(path, title)
        return path

    def index(self, path: Path, title: str = "") -> None:
        text = path.read_text(encoding="utf-8")
        status = path.stat()
        self.registry.put(
            [
                (
                    Document(str(path), title, text, mtime_ns=status.st_mtime_ns, size=status.st_size),
                    [Chunk(0, len(text))],
                )
            ]
        )

    def passages(self) -> tuple[Passage, ...]:
        return tuple(self.registry.passages())

    def memory(self, session: str = "s1", project: str = "thesis", **section: object) -> FactMemory:
        memory = FactMemory(self.db, MemorySection(**{"audit": 0.0, **section}), project=project, session=session)  # type: ignore[arg-type]
        self.open.append(memory)
        return memory

    def harvest(self, question: str, answer: str, hop: int = 1, entropy: float | None = 0.1) -> Harvest:
        return Harvest(hop, question, draft(answer, entropy), self.passages())

    def learn(
        self, memory: FactMemory, question: str, answer: str, ask: object | None = None
    ) -> tuple[list[str], dict[str, int]]:
        """(ids learned, reasons refused)."""
        learned, refused = memory.learn([self.harvest(question, answer)], ask or YesAsk())  # type: ignore[arg-type]
        return [item.fact.id for item in learned], dict(refused)

    def close(self) -> None:
        for memory in self.open:
            memory.close()
        self.registry.close()


def check(store: Store) -> None:
    """The file is sound: SQLite, foreign keys, and full text equal to the facts."""
    assert store.value("PRAGMA integrity_check") == "ok"
    assert store.rows("PRAGMA foreign_key_check") == []
    with store.write() as connection:
        connection.execute("INSERT INTO fact_fts(fact_fts, rank) VALUES('integrity-check', 1)")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """An empty library; checked for soundness at the end."""
    made = World(tmp_path)
    yield made
    check(made.registry.store)
    made.close()


@pytest.fixture
def films(world: World) -> World:
    """Three documents: a film, its director, his mother."""
    world.write("films.txt", FILM, "Polish-Russian War (film)")
    world.write("people.txt", PERSON, "Xawery Żuławski")
    world.write("actress.txt", ACTRESS, "Małgorzata Braunek")
    return world


def run_together(code: str, *arguments: str, processes: int = 3) -> list[int]:
    """Exit codes of the same Python code run in several processes at once."""
    root = str(Path(mindchat.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": root}
    started = [subprocess.Popen([sys.executable, "-c", code, *arguments], env=environment) for _ in range(processes)]
    return [process.wait(timeout=120) for process in started]


DIRECTOR = ("Who is the director of Polish-Russian War?", "The director of Polish-Russian War is Xawery Żuławski.")
MOTHER = ("Who is the mother of Xawery Żuławski?", "The mother of Xawery Żuławski is Małgorzata Braunek.")


@pytest.fixture
def taught(films: World) -> tuple[World, FactMemory]:
    """The film's director and his mother are known."""
    memory = films.memory()
    learned, refused = memory.learn([films.harvest(*DIRECTOR), films.harvest(*MOTHER, hop=2)], YesAsk())
    assert len(learned) == 2
    assert not refused
    return films, memory


Learn = Callable[[FactMemory, str, str], tuple[list[str], dict[str, int]]]
