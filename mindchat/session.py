"""A conversation: its settings, its history, and the recording of what passes through.

Owns: Session and Rooms. Does not own: how engine and model are built (both are injected by wiring), commands, screens.
A Session is used from one thread at a time; only Cancel may be touched from another one.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from mindchat import config as settings
from mindchat.config import Config
from mindchat.corpus.search.queries import parse
from mindchat.errors import Interrupted, MindChatError, UsageError
from mindchat.events import LAST, Event, ModelLoading, TurnCancelled, TurnFailed, to_json
from mindchat.pace import Extra, Forecast, PaceFile, cost_of_copies, forecast, measure
from mindchat.paths import Paths
from mindchat.ports import NEVER, Cancel, Engine, Memory, Model, Registry, Retriever, Settles
from mindchat.trace import Trace, fold, report
from mindchat.values import Sought

STATUS: dict[str, Literal["done", "failed", "cancelled"]] = {"answered": "done", "failed": "failed", "cancelled": "cancelled"}
"""Trace.state → status of the written turn."""
POLL_SECONDS = 0.1
PARTIAL_SECONDS = 1.0
"""Most seconds of a streaming answer that a kill may cost."""


class Chats(Protocol):
    """Where turns are written down (memory/chats.py); the user's turn is committed before generation starts."""

    def create(self, project: str = "", title: str = "") -> str:
        """A new session's id."""
        ...

    def begin_turn(self, session: str, question: str) -> int:
        """Write the user's turn down; its number."""
        ...

    def save_partial(self, turn: int, text: str) -> None:
        """What can be read of the answer so far."""
        ...

    def finish_turn(self, turn: int, answer: str, report: str, events: bytes, status: Literal["running", "done", "failed", "cancelled"]) -> None:
        """The answer, the report as JSON, the events as JSON lines."""
        ...

    def history(self, session: str) -> Sequence[tuple[str, str]]:
        """(question, answer) of the finished turns."""
        ...

    def past(self, session: str) -> Sequence[tuple[str, str, str]]:
        """(question, answer, status) of every turn: also of one that was stopped, failed, or was being written when MindChat was killed."""
        ...


class Library(Retriever, Protocol):
    """The documents that are searched now, and how to add some."""

    def status(self) -> dict[str, Any]:
        """collection, documents, passages, generation, roots … as `index status --json` prints it."""
        ...

    def add(self, paths: Sequence[Path], cancel: Cancel = NEVER) -> Iterator[Any]:
        """Index files and folders; yields corpus.ingest events, the last one carries the report."""
        ...

    def sync(self, cancel: Cancel = NEVER) -> Iterator[Any]:
        """Look again at everything that was indexed."""
        ...

    def remove(self, path: Path) -> Iterator[Any]:
        """Forget what stands under the path; the files stay."""
        ...


class Rooms(msgspec.Struct, frozen=True):
    """What a session can reach; put together by wiring."""

    paths: Paths
    registry: Registry
    library: Library
    memory: Memory | None
    """None: memory is off or the session is incognito."""
    chats: Chats | None
    """None: nothing is written down."""
    project: str
    """Name of the memory's project scope: the folder MindChat was started in."""


class Session:
    """ask() yields the news of one turn, writes the turn down, and remembers it for the next question."""

    def __init__(
        self,
        config: Config,
        rooms: Rooms,
        *,
        open_model: Callable[[Config, Callable[[ModelLoading], None]], Model],
        build_engine: Callable[[Config, Rooms, Model], Engine],
        open_rooms: Callable[[Config, str | None, bool], Rooms],
        id: str | None = None,
        incognito: bool = False,
        paces: PaceFile | None = None,
    ) -> None:
        self.config = config
        self.rooms = rooms
        self.incognito = incognito
        self.id = id
        self.turns: list[Trace] = []
        self.events: list[Event] = []
        """Events of the newest turn, for /trace."""
        self.history, self.past = self._recalled(id)
        """(question, answer) that the next prompt may hold; (question, answer, status) of the turns before this program opened the conversation."""
        self._open_model = open_model
        self._build_engine = build_engine
        self._open_rooms = open_rooms
        self._paces = paces
        self._model: Model | None = None
        self._engine: Engine | None = None

    # ── the model ────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def model(self) -> Model | None:
        """The loaded model, or None."""
        return self._model

    def load(self, *, cancel: Cancel = NEVER) -> Iterator[ModelLoading]:
        """Load (fetch, convert) the model if it is not loaded yet, with progress; raises what the loader raises, and on cancel.

        A cancelled load stops at its next report of progress; weights that are being mapped are not waited for.
        """
        if self._model is not None:
            return
        news: queue.Queue[ModelLoading | None] = queue.Queue()
        outcome: list[Model | BaseException] = []

        def tell(item: ModelLoading) -> None:
            cancel.check()
            news.put(item)

        def work() -> None:
            try:
                outcome.append(self._open_model(self.config, tell))
            except BaseException as error:  # noqa: BLE001 - carried over to the calling thread and raised there
                outcome.append(error)
            news.put(None)

        threading.Thread(target=work, name="mindchat-load", daemon=True).start()
        while True:
            try:
                item = news.get(timeout=POLL_SECONDS)
            except queue.Empty:
                cancel.check()
                continue
            if item is None:
                break
            yield item
        if isinstance(outcome[0], BaseException):
            raise outcome[0]
        self._model = outcome[0]

    def _settle(self, cancel: Cancel) -> Iterator[ModelLoading]:
        """Before the turn's clocks start: what the load left is neither reading nor writing."""
        if isinstance(self._model, Settles) and not self._model.settled:
            started = time.monotonic()
            yield ModelLoading("arranging weights")
            self._model.settle(cancel=cancel)
            yield ModelLoading("ready", 1, 1, time.monotonic() - started)

    def _ready(self) -> Engine:
        assert self._model is not None
        if self._engine is None:
            self._engine = self._build_engine(self.config, self.rooms, self._model)
        return self._engine

    def read_ahead(self, *, cancel: Cancel = NEVER) -> int:
        """Have the loaded model read what every question of these settings begins with; the tokens of it, 0 if there is nothing to gain.

        Raises Interrupted when cancelled (what was read is kept), and what ask() would report of an engine that cannot be built.
        """
        return 0 if self._model is None else self._ready().read_ahead(cancel)

    def forecast(self) -> tuple[Forecast | None, Extra | None]:
        """What the next question will about cost on this machine, and what of it is due to repeating the context; None: never measured."""
        if self._paces is None:
            return None, None
        pace, repeat = self._paces.read(self.config), self.config.layout.repeat
        return forecast(pace, self.config), cost_of_copies(pace, repeat) if isinstance(repeat, int) else None

    # ── turns ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def ask(self, text: str, *, cancel: Cancel = NEVER) -> Iterator[Event]:
        """One turn; exactly one of AnswerReady, TurnFailed, TurnCancelled comes last. Filters and phrases of the text hold for its searches."""
        sought = parse(text)
        if not sought.text.strip():
            raise UsageError("The question is empty.", 'Type one, for example: mindchat ask "Who directed Metropolis?"')
        chats, trace = self.rooms.chats, Trace()
        recorded: list[Event] = []
        if chats is not None and self.id is None:
            self.id = chats.create(self.rooms.project, text)
            self._apply(self.config)  # memory now learns under this conversation's id
        turn = chats.begin_turn(self.id, text) if chats is not None and self.id else None
        saved = time.monotonic()
        for event in self._events(sought, cancel):
            trace = fold(trace, event)
            recorded.append(event)
            if chats is not None and turn is not None and time.monotonic() - saved > PARTIAL_SECONDS and not isinstance(event, LAST):
                chats.save_partial(turn, partial_text(trace))
                saved = time.monotonic()
            if isinstance(event, LAST):
                self._finish(text, trace, recorded, turn)
            yield event

    def _events(self, sought: Sought, cancel: Cancel) -> Iterator[Event]:
        try:
            yield from self.load(cancel=cancel)
            yield from self._settle(cancel)
            engine = self._ready()
        except Interrupted:
            yield TurnCancelled("", "loading")
            return
        except MindChatError as error:
            yield TurnFailed(error.code, error.message, error.hint, error.exit_code)
            return
        # a plain question stays a plain string
        wants = sought if sought.phrases or sought.filters else sought.text
        yield from engine.run(wants, history=tuple(self.history), cancel=cancel)

    def _finish(self, text: str, trace: Trace, recorded: list[Event], turn: int | None) -> None:
        self.turns.append(trace)
        self.events = recorded
        answer = trace.answer.text if trace.answer else partial_text(trace)
        if trace.answer is not None:
            self.history.append((text, trace.answer.text))
            if self._paces is not None and not self.incognito:
                self._paces.add(self.config, measure(recorded, self.config))
        if self.rooms.chats is not None and turn is not None:
            body = msgspec.json.encode(report(trace)).decode()
            lines = "\n".join(to_json(event) for event in recorded).encode()
            self.rooms.chats.finish_turn(turn, answer, body, lines, STATUS[trace.state])

    def retry(self, *, cancel: Cancel = NEVER) -> Iterator[Event]:
        """Ask the newest question again, also one that was asked before this program opened the conversation."""
        question = self.newest_question
        if question is None:
            raise UsageError("There is no question to repeat.", "Ask one first.")
        answered = self.turns[-1].answer is not None if self.turns else self.past[-1][2] == "done"
        if self.history and answered:
            self.history.pop()
        return self.ask(question, cancel=cancel)

    @property
    def newest_question(self) -> str | None:
        """What was asked last in this conversation; None: nothing yet."""
        return self.turns[-1].question if self.turns else self.past[-1][0] if self.past else None

    # ── settings ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def change(self, key: str, value: str) -> Config:
        """Set section.key for this session; the model is loaded again only if its own section changed."""
        self._apply(settings.change(self.config, key, value))
        return self.config

    def _apply(self, config: Config) -> None:
        if config.model != self.config.model or config.server != self.config.server:
            self._model = None
        self.config = config
        self.rooms = self._open_rooms(config, self.id, self.incognito)
        self._engine = None

    def go_incognito(self, on: bool) -> None:
        """Start or end incognito, in a fresh conversation: nothing is read from or written to memory and chats, and nothing is carried out of it."""
        self.incognito = on
        self.resume(None)

    def new(self) -> None:
        """Begin a fresh conversation with the same settings."""
        self.resume(None)

    def resume(self, id: str | None) -> None:
        """Continue another conversation (None: a new one). Raises NotFoundError if there is none of this id, and stays in this one."""
        history, past = self._recalled(id)
        self.id, self.turns, self.events = id, [], []
        self._apply(self.config)
        self.history, self.past = history, past

    def _recalled(self, id: str | None) -> tuple[list[tuple[str, str]], tuple[tuple[str, str, str], ...]]:
        """History and past of a conversation."""
        chats = self.rooms.chats
        return (list(chats.history(id)), tuple(chats.past(id))) if chats is not None and id else ([], ())


def partial_text(trace: Trace) -> str:
    """What a reader has seen so far: accepted reasoning, then words being written."""
    return trace.answer_text or (trace.reasoning + trace.draft_text)


__all__ = ["Chats", "Library", "Rooms", "Session", "partial_text"]
