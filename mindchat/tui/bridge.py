"""The bridge between the screens' event loop and the one engine thread.

Owns: the thread, its queue of jobs, cancelling, batching of events (at most `fps` messages a second). Does not own:
what the news means. The session is made and used in the engine thread only. A thread cannot be stopped from outside,
hence Cancel; it is a daemon, so that quitting never waits for it longer than join() allows.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeVar

from msgspec import Struct
from textual.message import Message

from mindchat.commands import Command, Reply
from mindchat.config import Config
from mindchat.errors import MindChatError
from mindchat.events import LAST, Event, TurnFailed
from mindchat.ports import Cancel
from mindchat.session import Session
from mindchat.tui.watching import Watched, Watching

log = logging.getLogger(__name__)
T = TypeVar("T")
LOADING = 0
"""The turn id under which news of loading the model arrives."""


class SessionView(Struct, frozen=True):
    """What the screens show of a session; read in the engine thread after each job."""

    id: str | None = None
    model: str = ""
    model_ready: bool = False
    window: int = 0
    policy: str = ""
    filter: str = ""
    repeat: int | str = 0
    memory: str = ""
    """on, readonly, off."""
    incognito: bool = False
    library: dict[str, Any] = {}
    project: str = ""
    home: str = ""
    log_file: str = ""
    past: tuple[tuple[str, str, str], ...] = ()
    """(question, answer, status) of the turns before this program opened the session."""
    expected: float = 0.0
    """Seconds that the next question will about take; 0: never measured."""


class EventsArrived(Message):
    """News of one turn, in order."""

    def __init__(self, turn: int, events: tuple[Event, ...]) -> None:
        super().__init__()
        self.turn, self.events = turn, events


class SessionChanged(Message):
    """The session was made, or a job may have changed it."""

    def __init__(self, view: SessionView) -> None:
        super().__init__()
        self.view = view


class Told(Message):
    """Something was repaired or found damaged, outside a turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class StartFailed(Message):
    """No session could be made, or its model not loaded."""

    def __init__(self, error: TurnFailed, fatal: bool) -> None:
        super().__init__()
        self.error, self.fatal = error, fatal


class Replied(Message):
    """A slash command says something; `last` ends it."""

    def __init__(self, job: int, name: str, reply: Reply, last: bool) -> None:
        super().__init__()
        self.job, self.name, self.reply, self.last = job, name, reply, last


def failure(error: BaseException) -> TurnFailed:
    """An error as the screens show it; a bug is logged with its traceback and named as one."""
    if isinstance(error, MindChatError):
        return TurnFailed(error.code, error.message, error.hint, error.exit_code)
    log.error("unexpected error", exc_info=error)
    return TurnFailed(
        "bug",
        f"Something went wrong inside MindChat: {type(error).__name__}: {error}",
        "The log has the details (Ctrl+L).",
        1,
    )


def read_view(session: Session) -> SessionView:
    """The session as the screens show it."""
    config, rooms, model = session.config, session.rooms, session.model
    expected, _ = session.forecast()
    return SessionView(
        id=session.id,
        model=config.model.name,
        model_ready=model is not None,
        window=model.window if model is not None else 0,
        policy=config.engine.policy,
        filter=config.engine.filter,
        repeat=config.layout.repeat,
        memory=config.memory.mode if rooms.memory is not None else "off",
        incognito=session.incognito,
        library=dict(rooms.library.status()),
        project=rooms.project,
        home=str(rooms.paths.config),
        log_file=str(rooms.paths.log_file),
        past=session.past,
        expected=expected.seconds if expected is not None else 0.0,
    )


class Batcher:
    """Collects events and hands them over on the loop's thread, at most `fps` times a second, also if no further event
    comes.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, deliver: Callable[[int, tuple[Event, ...]], object], fps: float
    ) -> None:
        self._loop, self._deliver, self._pause = loop, deliver, 1.0 / fps
        self._lock = threading.Lock()
        self._waiting: list[tuple[int, Event]] = []
        self._arranged = False
        self._last = 0.0

    def put(self, turn: int, event: Event) -> None:
        """Called in the engine thread."""
        with self._lock:
            self._waiting.append((turn, event))
            arrange, self._arranged = not self._arranged, True
        if arrange:
            call_soon(self._loop, self._arrange)

    def _arrange(self) -> None:
        self._loop.call_later(max(0.0, self._last + self._pause - time.monotonic()), self._flush)

    def _flush(self) -> None:
        with self._lock:
            waiting, self._waiting, self._arranged = self._waiting, [], False
        self._last = time.monotonic()
        turns = dict.fromkeys(turn for turn, _ in waiting)
        for turn in turns:
            self._deliver(turn, tuple(event for owner, event in waiting if owner == turn))


def call_soon(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *args: object) -> None:
    """call_soon_threadsafe that tolerates a loop which has ended: then nobody is left to be told."""
    try:
        loop.call_soon_threadsafe(function, *args)
    except RuntimeError:
        log.debug("the screen is gone; dropped %s", function)


class Bridge:
    """The engine thread as the screens see it. All methods but those of the thread itself belong to the loop's thread."""

    def __init__(
        self,
        make_session: Callable[[], Session],
        post: Callable[[Message], object],
        *,
        fps: float = 10.0,
        load: bool = True,
    ) -> None:
        self._make, self._post, self._fps, self._load_first = make_session, post, fps, load
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._session: Session | None = None
        self._no_session: TurnFailed | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._batcher: Batcher | None = None
        self._cancels: dict[int, Cancel] = {}
        self._running: int | None = None
        self._count = LOADING
        self._stopping = False
        self._watching: Watching | None = None
        self._ahead = Cancel()
        """Set by whoever has something better to do than reading ahead."""
        self._read_for: Config | None = None
        """The settings for which was read ahead."""

    # ── on the loop's thread ─────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        """Start the thread; the session is made there, then its model loaded."""
        self._loop = asyncio.get_running_loop()
        self._batcher = Batcher(self._loop, lambda turn, events: self._post(EventsArrived(turn, events)), self._fps)
        self._thread = threading.Thread(target=self._work, name="mindchat-engine", daemon=True)
        self._thread.start()

    def ask(self, text: str) -> int:
        """Queue a question; its turn id."""
        return self._queue_turn(lambda session, cancel: session.ask(text, cancel=cancel))

    def retry(self, as_typed: bool = False, anyway: bool = False) -> int:
        """Queue the newest question again; its turn id."""
        return self._queue_turn(lambda session, cancel: session.retry(cancel=cancel, as_typed=as_typed, anyway=anyway))

    def turn(self, begin: Callable[[Session, Cancel], Iterator[Event]]) -> int:
        """Queue anything that yields a turn's events; its turn id."""
        return self._queue_turn(begin)

    def load(self) -> None:
        """Queue loading the model (after another one was chosen)."""
        self._put(self._load_model)

    def command(self, command: Command, args: str) -> int:
        """Queue a slash command; its job id."""
        job = self._number()
        self._put(lambda: self._command(job, command, args))
        return job

    async def call(self, function: Callable[[Session], T]) -> T:
        """Run a function over the session in the engine thread; raises what it raises."""
        assert self._loop is not None
        future: asyncio.Future[T] = self._loop.create_future()
        self._put(lambda: self._call(future, function))
        return await future

    def cancel(self) -> None:
        """Ask whatever is running to stop; before the engine thread has come to it, the oldest that waits: nothing
        asked to stop may start.
        """
        running = self._running
        wanted = running if running is not None else min(list(self._cancels), default=None)
        if wanted is not None and (cancel := self._cancels.get(wanted)) is not None:
            cancel.set()

    def stop(self) -> None:
        """Cancel everything and let the thread end; returns at once."""
        self._stopping = True
        if self._watching is not None:
            self._watching.stop()
        for cancel in list(self._cancels.values()):
            cancel.set()
        self._put(None)

    def join(self, seconds: float) -> bool:
        """Wait for the thread's end; False if it is still busy (it is a daemon and dies with the process)."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self._thread is None or not self._thread.is_alive()

    def _put(self, job: Callable[[], None] | None) -> None:
        """Queue a job; what is read ahead makes way at the next prefill chunk. In this order: _read_ahead() looks the
        other way round.
        """
        self._jobs.put(job)
        self._ahead.set()

    def _number(self) -> int:
        self._count += 1
        self._cancels[self._count] = Cancel()
        return self._count

    def _queue_turn(self, begin: Callable[[Session, Cancel], Iterator[Event]]) -> int:
        turn = self._number()
        self._put(lambda: self._turn(turn, begin))
        return turn

    # ── in the engine thread ─────────────────────────────────────────────────────────────────────────────────────────

    def _tell(self, message: Message) -> None:
        assert self._loop is not None
        call_soon(self._loop, self._post, message)

    def _work(self) -> None:
        self._begin()
        while not self._stopping and (job := self._jobs.get()) is not None:
            job()
            if self._session is not None and not self._stopping:
                self._tell_view(self._session)
                self._read_ahead(self._session)
        if self._session is not None:
            try:
                self._session.close()
            except Exception:  # the thread's edge: stores are whole after every transaction
                log.exception("closing the session failed")

    def _tell_view(self, session: Session) -> None:
        try:
            self._tell(SessionChanged(read_view(session)))
            for text in session.take_notices():
                self._tell(Told(text))
        except Exception as error:  # noqa: BLE001 - the thread's edge: a store that cannot be read is told
            self._tell(StartFailed(failure(error), fatal=False))

    def _begin(self) -> None:
        try:
            self._session = self._make()
        except BaseException as error:  # noqa: BLE001 - the thread's edge: told to the user, logged if it is a bug
            self._no_session = failure(error)
            self._tell(StartFailed(self._no_session, fatal=True))
            return
        self._tell_view(self._session)
        if self._load_first:
            self._load_model()
            self._tell_view(self._session)
        if not self._stopping:
            self._watch(self._session)
            self._read_ahead(self._session)

    def _watch(self, session: Session) -> None:
        """Keep the documents up to date from now on, in a thread of its own."""
        seconds, library = session.config.index.watch_seconds, session.rooms.library
        if seconds > 0 and hasattr(library, "watch"):
            self._watching = Watching(library, seconds, self._watched)

    def _watched(self, news: Watched) -> None:
        self._tell(news)
        if news.changed:
            self._jobs.put(_nothing)  # after each job the session is shown anew

    def _load_model(self) -> None:
        if self._session is None:
            return
        try:
            for event in self._session.load():
                self._news(LOADING, event)
                if self._stopping:
                    return
        except Exception as error:  # noqa: BLE001 - the thread's edge
            self._tell(StartFailed(failure(error), fatal=False))

    def _read_ahead(self, session: Session) -> None:
        """While nobody waits: what every question of these settings begins with. Once for each; a turn reads the rest
        itself.
        """
        self._ahead = cancel = Cancel()
        if session.model is None or session.config == self._read_for or not self._jobs.empty():
            return
        self._read_for = session.config
        try:
            session.read_ahead(cancel=cancel)
        except MindChatError as error:  # interrupted, or settings that do not fit together: the question says so
            log.debug("not read ahead: %s", error)
        except Exception:  # a head start must not end the thread
            log.exception("reading ahead failed")

    def _news(self, turn: int, event: Event) -> None:
        assert self._batcher is not None
        self._batcher.put(turn, event)

    def _turn(self, turn: int, begin: Callable[[Session, Cancel], Iterator[Event]]) -> None:
        if self._session is None:
            self._news(turn, self._no_session or TurnFailed("bug", "There is no session.", ""))
            return
        self._running, ended = turn, False
        try:
            for event in begin(self._session, self._cancels[turn]):
                ended = isinstance(event, LAST)
                self._news(turn, event)
        except Exception as error:  # noqa: BLE001 - the thread's edge
            if not ended:
                self._news(turn, failure(error))
        finally:
            self._running = None
            self._cancels.pop(turn, None)

    def _command(self, job: int, command: Command, args: str) -> None:
        if self._session is None:
            self._tell(Replied(job, command.name, _refusal(self._no_session), last=True))
            return
        self._running, last, told = job, Reply(), 0.0
        try:
            with contextlib.closing(_closable(command.run(self._session, args))) as replies:
                for reply in replies:
                    last = reply
                    if self._cancels[job].cancelled:
                        last = Reply("Stopped.", ok=False)
                        break
                    if time.monotonic() - told > 1.0 / self._fps:  # an ingestion reports every file
                        self._tell(Replied(job, command.name, reply, last=False))
                        told = time.monotonic()
        except Exception as error:  # noqa: BLE001 - the thread's edge
            last = _refusal(failure(error))
        finally:
            self._running = None
            self._cancels.pop(job, None)
        self._tell(Replied(job, command.name, last, last=True))

    def _call(self, future: asyncio.Future[T], function: Callable[[Session], T]) -> None:
        assert self._loop is not None
        try:
            if self._session is None:
                raise MindChatError("There is no session.", "See the message at the top.")
            result = function(self._session)
        except Exception as error:  # noqa: BLE001 - carried over to the awaiting screen
            call_soon(self._loop, _settle, future, None, error)
        else:
            call_soon(self._loop, _settle, future, result, None)


def _nothing() -> None:
    return None


def _closable(replies: Iterator[Reply]) -> Generator[Reply, None, None]:
    yield from replies


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


def _refusal(error: TurnFailed | None) -> Reply:
    if error is None:
        return Reply("There is no session.", ok=False)
    return Reply(f"{error.message}\n{error.hint}".strip(), ok=False)
