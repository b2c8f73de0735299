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
from mindchat.document_ports import Registry
from mindchat.errors import Interrupted, MindChatError, UsageError
from mindchat.events import LAST, Event, ModelLoading, Notice, TurnCancelled, TurnFailed, from_json, to_json
from mindchat.pace import Extra, Forecast, PaceFile, cost_of_copies, forecast, measure
from mindchat.paths import Paths
from mindchat.ports import NEVER, Cancel, Closes, Engine, Memory, Model, Retriever, Settles, TellsRepairs
from mindchat.trace import Trace, cut_of, fold, fold_all, report
from mindchat.values import MAX_QUESTION, Cut, Sought

STATUS: dict[str, Literal["done", "failed", "cancelled"]] = {
    "answered": "done",
    "failed": "failed",
    "cancelled": "cancelled",
}
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

    def finish_turn(
        self,
        turn: int,
        answer: str,
        report: str,
        events: bytes,
        status: Literal["running", "done", "failed", "cancelled"],
    ) -> None:
        """The answer, the report as JSON, the events as JSON lines."""
        ...

    def history(self, session: str) -> Sequence[tuple[str, str]]:
        """(question, answer) of the finished turns."""
        ...

    def newest(self, session: str) -> tuple[int, bytes] | None:
        """Key and events (JSON lines) of the newest turn; None: there is none."""
        ...

    def past(self, session: str) -> Sequence[tuple[str, str, str]]:
        """(question, answer, status) of every turn: also of one that was stopped, failed, or was being written when
        MindChat was killed.
        """
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

    def encode_behind(self, arguments: Sequence[str]) -> int:
        """Make vectors in a process of its own; its id. `arguments`: for `mindchat index encode`. Raises
        IndexLockedError.
        """
        ...

    def pause_encoding(self) -> bool:
        """Ask that process to stop; whether there is one."""
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
        """(question, answer) that the next prompt may hold; (question, answer, status) of the turns before this program
        opened the conversation.
        """
        self._open_model = open_model
        self._build_engine = build_engine
        self._open_rooms = open_rooms
        self._paces = paces
        self._model: Model | None = None
        self._engine: Engine | None = None
        self._told: set[str] = set()
        """Notices that were given: what stands unrepaired is met again at each look."""
        self._untold: list[str] = []
        self._row: int | None = None
        """Where the newest turn is written down."""

    # ── the model ────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def model(self) -> Model | None:
        """The loaded model, or None."""
        return self._model

    def load(self, *, cancel: Cancel = NEVER) -> Iterator[ModelLoading]:
        """Load (fetch, convert) the model if it is not loaded yet, with progress; raises what the loader raises, and on
        cancel.

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

    def _unrefusing(self) -> Engine:
        """An engine for one turn that asks the model whatever the documents hold."""
        assert self._model is not None
        return self._build_engine(settings.change(self.config, "answer.refuse", "off"), self.rooms, self._model)

    def read_ahead(self, *, cancel: Cancel = NEVER) -> int:
        """Have the loaded model read what every question of these settings begins with; the tokens of it, 0 if there is
        nothing to gain.

        Raises Interrupted when cancelled (what was read is kept), and what ask() would report of an engine that cannot
        be built.
        """
        return 0 if self._model is None else self._ready().read_ahead(cancel)

    def forecast(self) -> tuple[Forecast | None, Extra | None]:
        """What the next question will about cost on this machine, and what of it is due to repeating the context; None:
        never measured.
        """
        if self._paces is None:
            return None, None
        pace, repeat = self._paces.read(self.config), self.config.layout.repeat
        return forecast(pace, self.config), cost_of_copies(pace, repeat) if isinstance(repeat, int) else None

    # ── turns ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def ask(
        self, text: str, *, cancel: Cancel = NEVER, as_typed: bool = False, anyway: bool = False
    ) -> Iterator[Event]:
        """One turn; exactly one of AnswerReady, TurnFailed, TurnCancelled comes last. Filters and phrases of the text
        hold for its searches.

        `as_typed`: no standalone form takes the question's place. `anyway`: the model is asked also where the documents
        do not seem to say.
        """
        if len(text) > MAX_QUESTION:
            raise UsageError(
                f"The question has {len(text):,} characters; at most {MAX_QUESTION:,} are read.",
                "Index the text as a document and ask about it.",
            )
        sought = parse(text)
        if not sought.text.strip():
            raise UsageError("The question is empty.", 'Type one, for example: mindchat ask "Who directed Metropolis?"')
        chats = self.rooms.chats
        if chats is not None and self.id is None:
            self.id = chats.create(self.rooms.project, text)
            self._apply(self.config)  # memory now learns under this conversation's id
        turn = chats.begin_turn(self.id, text) if chats is not None and self.id else None
        news = self._events(sought, cancel, as_typed, anyway)
        yield from self._recorded(news, Trace(), lambda trace, events: self._finish(text, trace, events, turn), turn)

    def take_notices(self) -> list[str]:
        """Repairs and damage of the stores and the index that nobody has been told yet; whoever calls shows them. A
        turn tells them itself.
        """
        self._gather()
        told, self._untold = self._untold, []
        return told

    def _gather(self) -> None:
        """Before the rooms are changed: what the old ones had to say must not go with them."""
        parts: tuple[object, ...] = (self.rooms.library, self.rooms.memory, self.rooms.chats)
        for text in [text for part in parts if isinstance(part, TellsRepairs) for text in part.take_notices()]:
            if text not in self._told:
                self._told.add(text)
                self._untold.append(text)

    def _with_notices(self, news: Iterator[Event]) -> Iterator[Event]:
        """The events, and a Notice of each repair as soon as it is known; the turn's last event stays the last."""
        for event in news:
            if not isinstance(event, LAST):
                yield event
            for text in self.take_notices():
                yield Notice(text, "warning")
            if isinstance(event, LAST):
                yield event

    def close(self) -> None:
        """Release the stores and the index; the last thing that is done with a session."""
        parts: tuple[object, ...] = (self.rooms.memory, self.rooms.chats, self.rooms.library)
        for part in parts:
            if isinstance(part, Closes):
                part.close()

    def _recorded(
        self, news: Iterator[Event], trace: Trace, finish: Callable[[Trace, list[Event]], None], turn: int | None
    ) -> Iterator[Event]:
        """Pass the events on; what can be read so far is kept, and `finish` is called with the whole before the last
        one is passed.
        """
        chats, recorded, saved = self.rooms.chats, list[Event](), time.monotonic()
        for event in self._with_notices(news):
            trace = fold(trace, event)
            recorded.append(event)
            if (
                chats is not None
                and turn is not None
                and time.monotonic() - saved > PARTIAL_SECONDS
                and not isinstance(event, LAST)
            ):
                chats.save_partial(turn, partial_text(trace))
                saved = time.monotonic()
            if isinstance(event, LAST):
                finish(trace, recorded)
            yield event

    def _events(self, sought: Sought, cancel: Cancel, as_typed: bool, anyway: bool) -> Iterator[Event]:
        try:
            yield from self.load(cancel=cancel)
            yield from self._settle(cancel)
            engine = self._unrefusing() if anyway else self._ready()
        except Interrupted:
            yield TurnCancelled("", "loading")
            return
        except MindChatError as error:
            yield TurnFailed(error.code, error.message, error.hint, error.exit_code)
            return
        # a plain question stays a plain string
        wants = sought if sought.phrases or sought.filters else sought.text
        yield from engine.run(wants, history=tuple(self.history), cancel=cancel, as_typed=as_typed)

    def _finish(self, text: str, trace: Trace, recorded: list[Event], turn: int | None) -> None:
        self.turns.append(trace)
        self.events, self._row = recorded, turn
        if trace.answer is not None:
            self.history.append(remembered(trace))
            if self._paces is not None and not self.incognito:
                self._paces.add(self.config, measure(recorded, self.config))
        self._write_down(trace, turn)

    def _write_down(self, trace: Trace, turn: int | None) -> None:
        if self.rooms.chats is None or turn is None:
            return
        answer = trace.answer.text if trace.answer else partial_text(trace)
        lines = "\n".join(to_json(event) for event in self.events).encode()
        self.rooms.chats.finish_turn(
            turn, answer, msgspec.json.encode(report(trace)).decode(), lines, STATUS[trace.state]
        )

    def newest_cut(self) -> tuple[Cut, Trace, list[Event], int | None] | None:
        """The newest turn if a limit cut its answer, also one of the time before this program opened the conversation:
        with events and place.
        """
        trace, events, row = (self.turns[-1], self.events, self._row) if self.turns else self._stored()
        cut = cut_of(trace)
        return None if cut is None else (cut, trace, events, row)

    def _stored(self) -> tuple[Trace, list[Event], int | None]:
        """The newest turn as it was written down."""
        found = self.rooms.chats.newest(self.id) if self.rooms.chats is not None and self.id else None
        if found is None:
            return Trace(), [], None
        try:
            events = [from_json(line) for line in found[1].splitlines() if line]
        except (msgspec.ValidationError, msgspec.DecodeError):  # of another version: nothing that could be gone on with
            return Trace(), [], None
        return fold_all(events), events, found[0]

    def more(self, *, cancel: Cancel = NEVER) -> Iterator[Event]:
        """Go on with the newest answer, which a limit cut: the events of the same turn. If it fails or is stopped, the
        answer stays as it was.

        Raises UsageError if it was not cut.
        """
        newest = self.newest_cut()
        if newest is None:
            raise UsageError("There is no cut answer to go on with.", "/more continues an answer that a limit ended.")
        cut, trace, before, row = newest

        def finish(whole: Trace, recorded: list[Event]) -> None:
            if whole.state != "answered" or whole.answer is None:
                return
            self.turns[-1:] = [whole]
            self._row = row
            self.events = [*(event for event in before if not isinstance(event, LAST)), *recorded]
            self.history[-1:] = [remembered(whole)]
            self._write_down(whole, row)

        return self._recorded(self._going_on(cut, cancel), trace, finish, None)

    def _going_on(self, cut: Cut, cancel: Cancel) -> Iterator[Event]:
        try:
            yield from self.load(cancel=cancel)
            yield from self._settle(cancel)
            engine = self._ready()
            if self._model is not None and self._model.id != cut.model:
                raise UsageError(
                    "Another model cannot go on with this answer.", f"/model {cut.model}, or /retry asks again."
                )
        except Interrupted:
            yield TurnCancelled("", "loading")
            return
        except MindChatError as error:
            yield TurnFailed(error.code, error.message, error.hint, error.exit_code)
            return
        yield from engine.more(cut, cancel=cancel)

    def retry(self, *, cancel: Cancel = NEVER, as_typed: bool = False, anyway: bool = False) -> Iterator[Event]:
        """Ask the newest question again, also one that was asked before this program opened the conversation.

        `as_typed`, `anyway`: as for ask().
        """
        question = self.newest_question
        if question is None:
            raise UsageError("There is no question to repeat.", "Ask one first.")
        answered = self.turns[-1].answer is not None if self.turns else self.past[-1][2] == "done"
        if self.history and answered:
            self.history.pop()
        return self.ask(question, cancel=cancel, as_typed=as_typed, anyway=anyway)

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
        self._gather()
        self.rooms = self._open_rooms(config, self.id, self.incognito)
        self._engine = None

    def go_incognito(self, on: bool) -> None:
        """Start or end incognito, in a fresh conversation: nothing is read from or written to memory and chats, and
        nothing is carried out of it.
        """
        self.incognito = on
        self.resume(None)

    def new(self) -> None:
        """Begin a fresh conversation with the same settings."""
        self.resume(None)

    def resume(self, id: str | None) -> None:
        """Continue another conversation (None: a new one). Raises NotFoundError if there is none of this id, and stays
        in this one.
        """
        history, past = self._recalled(id)
        self.id, self.turns, self.events = id, [], []
        self._apply(self.config)
        self.history, self.past = history, past

    def _recalled(self, id: str | None) -> tuple[list[tuple[str, str]], tuple[tuple[str, str, str], ...]]:
        """History and past of a conversation."""
        chats = self.rooms.chats
        return (list(chats.history(id)), tuple(chats.past(id))) if chats is not None and id else ([], ())


def remembered(trace: Trace) -> tuple[str, str]:
    """(question, answer) as later turns need them: the question that stands alone, and the few words that answer it."""
    answer = trace.answer
    said = "" if answer is None else answer.text if answer.abstained or not answer.short else answer.short
    return (trace.started.standalone if trace.started is not None else ""), said


def partial_text(trace: Trace) -> str:
    """What a reader has seen so far: accepted reasoning, then words being written."""
    return trace.answer_text or (trace.reasoning + trace.draft_text)


__all__ = ["Chats", "Library", "Rooms", "Session", "partial_text"]
