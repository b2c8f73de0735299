"""A scripted session behind a plug board of our own, and what a command leaves behind."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from mindchat import events as ev
from mindchat.events import Event
from mindchat.pace import Extra, Forecast
from mindchat.ports import NEVER, Cancel
from mindchat.values import Answer, Citation, Fact, Passage, Query, Token

PASSAGE = Passage("p1", "films.txt", "Metropolis", "Metropolis is a film by Fritz Lang.", 0, 35, score=3.5, rank=1)
FACT = Fact("f7k2q9a", "Metropolis", "director", "Fritz Lang", 0.93, passage="p1", quote="by Fritz Lang")


def turn(question: str) -> list[Event]:
    """A whole turn with one hop."""
    return [
        ev.TurnStarted(question, question, "scripted", "mind", "auto", 1, "user", "same"),
        ev.StepStarted("draft"),
        ev.TokenDrafted(Token(0, 1, "Somebody"), "reasoning"),
        ev.TextRetracted("Somebody", "", 1),
        ev.RetrievalTriggered(1, "Somebody", 3.5, 1.5, 2.0, 1.0, "uncertain"),
        ev.QueryFormed(Query("director of Metropolis"), 1),
        ev.FactsRecalled(()),
        ev.PassagesFound("director of Metropolis", (PASSAGE,), 1),
        ev.DraftAccepted("Fritz Lang directed it.", "reasoning", 5),
        ev.ModelAsked("draft", 10, 0, 5),
        ev.FactsLearned((ev.FactLearned(FACT, True),)),
        ev.AnswerReady(
            Answer(
                "Fritz Lang",
                "Fritz Lang",
                False,
                "sourced",
                (Citation(1, "films.txt", "p1", 24, 34, "Fritz Lang", "span"),),
            ),
            "answered",
            1.5,
            0.5,
        ),
    ]


class FakeSession:
    """Answers with a script: a list of events, or a function of the question and the cancel token."""

    def __init__(self, script: Callable[[str, Cancel], Iterator[Event] | Sequence[Event]]) -> None:
        self.script = script
        self.asked: list[str] = []
        self.closed = False
        self.foreseen: tuple[Forecast | None, Extra | None] = (None, None)

    def close(self) -> None:
        self.closed = True

    def forecast(self) -> tuple[Forecast | None, Extra | None]:
        return self.foreseen

    def ask(self, text: str, *, cancel: Cancel = NEVER) -> Iterator[Event]:
        self.asked.append(text)
        yield from self.script(text, cancel)


class Result(msgspec.Struct):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as one JSON value."""
        return msgspec.json.decode(self.out)


Run = Callable[..., Result]


class Board(types.ModuleType):
    """A plug board whose sockets a test fills; it keeps what it was asked for."""

    def __init__(self) -> None:
        super().__init__("mindchat.wiring")
        self.script: Callable[[str, Cancel], Any] = lambda text, cancel: turn(text)
        self.opened: list[dict[str, Any]] = []
        self.sessions: list[FakeSession] = []
        self.foreseen: tuple[Forecast | None, Extra | None] = (None, None)

    def open_session(self, config: Any, paths: Any, **rest: Any) -> FakeSession:
        self.opened.append({"config": config, "paths": paths, **rest})
        self.sessions.append(FakeSession(lambda text, cancel: self.script(text, cancel)))
        self.sessions[-1].foreseen = self.foreseen
        return self.sessions[-1]

    def project_name(self) -> str:
        return "here"

    def open_evaluation(self, config: Any, paths: Any) -> Any:
        return lambda arm, corpus: self.open_session(arm, paths, corpus=corpus)

    def open_store(self, config: Any, paths: Any) -> Any:
        from mindchat.models.install.model_store import Store

        return Store(paths.models)

    def open_facts(self, config: Any, paths: Any, project: str) -> Any:
        from mindchat.memory.facts import FactMemory

        return FactMemory(paths.memory_db, config.memory, project=project, session="s000000")

    def open_library(self, config: Any, paths: Any) -> Any:
        from mindchat.library import DocumentLibrary
        from mindchat.storage.document_registry import DocumentRegistry

        return DocumentLibrary(paths.index, config.index, DocumentRegistry(paths.memory_db))

    def open_chats(self, paths: Any) -> Any:
        from mindchat.storage.chats import ChatStore

        return ChatStore(paths.chats_db)
