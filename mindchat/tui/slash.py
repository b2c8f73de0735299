"""Slash lines: from the prompt to the command table, and from a reply's action to the screen.

Owns: finding the command, the nearest match for a mistyped one (the text goes back into the prompt), ACTIONS. Does not
own: what commands do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from mindchat.commands import COMMANDS, Reply, nearest
from mindchat.errors import MindChatError
from mindchat.session import Session
from mindchat.text.clean import clean_line
from mindchat.trace import Trace
from mindchat.tui import complete
from mindchat.tui.sources import find_source
from mindchat.tui.trial import trial
from mindchat.tui.widgets.memory import MemoryPane, rows_of
from mindchat.tui.widgets.prompt import Prompt, Submitted
from mindchat.values import Citation, Passage

if TYPE_CHECKING:
    from mindchat.tui.app import MindChatApp
    from mindchat.tui.screens.chat import ChatScreen

Place = tuple[str, Passage | None, Citation | None]
MEMORY_COMMANDS = frozenset({"memory", "remember", "forget", "undo"})
ALIASES = {"exit": "quit", "q": "quit", "?": "help"}


OPENS_SCREEN = frozenset({"sessions", "model", "compare"})
"""Actions whose screen shows what the reply's text would say."""


def list_models(session: Session) -> list[Any]:
    """Models of the catalogue and installed ones, those that answer."""
    from mindchat.models.install.model_store import Store

    return [info for info in Store(session.rooms.paths.models).list() if info.role == "chat"]


class Slash:
    """The slash side of one chat screen."""

    def __init__(self, chat: ChatScreen) -> None:
        self._chat = chat
        self._choices: dict[str, list[str]] = {}
        self._asked: set[str] = set()

    @property
    def _app(self) -> MindChatApp:
        app = self._chat.app
        assert hasattr(app, "open_sheet")
        return cast("MindChatApp", app)

    # ── completion ───────────────────────────────────────────────────────────────────────────────────────────────────

    def suggest(self, text: str) -> list[complete.Suggestion]:
        """Suggestions for the prompt; argument values are asked of the session once and remembered until a command ran."""
        return complete.suggest(text, self._known)

    def _known(self, name: str) -> list[str]:
        command = COMMANDS[name]
        if command.choices is not None and name not in self._asked:
            self._asked.add(name)
            self._chat.run_worker(self._learn(name), group="choices", exit_on_error=False)
        return self._choices.get(name, [])

    async def _learn(self, name: str) -> None:
        choices = COMMANDS[name].choices
        assert choices is not None
        self._choices[name] = [clean_line(value) for value in await self._chat.bridge.call(choices)]
        self._chat.query_one(Prompt).refresh_list()

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self, text: str) -> None:
        """Run a slash line."""
        name, _, args = text[1:].partition(" ")
        name = ALIASES.get(name.strip().lower(), name.strip().lower())
        if name == "quit":  # must work while the engine thread is busy
            self._app.leave()
            return
        command = COMMANDS.get(name)
        if command is None:
            guess = nearest(name)
            said = f"There is no /{clean_line(name, 40)}." + (
                f" Did you mean /{guess}?" if guess else " /help lists all commands."
            )
            await self._chat.note("", said, ok=False)
            self._chat.query_one(Prompt).restore(text)
            return
        self._asked.clear()
        self._chat.begin_command(name)
        self._chat.bridge.command(command, args.strip())

    async def act(self, name: str, reply: Reply) -> None:
        """What a screen does besides showing the reply's text."""
        if name in MEMORY_COMMANDS:
            await self._refresh_memory(name, reply)
        action, _, rest = reply.action.partition(":")
        if not action:
            return
        handler = ACTIONS.get(action)
        if handler is None:
            await self._chat.note("", f"This screen cannot {clean_line(reply.action, 40)} yet.", ok=False)
            return
        await handler(self, rest, reply.data)

    async def _refresh_memory(self, name: str, reply: Reply) -> None:
        """A list of facts goes to the memory pane; after a change the list there is read again."""
        pane = self._chat.query_one(MemoryPane)
        rows = rows_of(reply.data)
        if rows is not None:
            pane.list_facts("Facts", rows)
        elif reply.ok and pane.listing:
            await self.list_memory()

    async def list_memory(self) -> None:
        """All facts, in the memory pane alone."""
        if "memory" not in COMMANDS:
            return
        try:
            reply = await self.fetch("memory", "list")
        except MindChatError as error:
            self._app.notify(f"{error.message} {error.hint}", severity="warning")
            return
        self._chat.query_one(MemoryPane).list_facts("All facts", rows_of(reply.data) or [])

    async def fetch(self, name: str, args: str) -> Reply:
        """Run a command for its data alone; nothing is said in the transcript."""

        def last(session: Session) -> Reply:
            *_, reply = (Reply(), *COMMANDS[name].run(session, args))
            return reply

        return await self._chat.bridge.call(last)

    # ── actions ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _quit(self, _: str, __: Any) -> None:
        self._app.leave()

    async def _new(self, _: str, __: Any) -> None:
        await self._chat.clear(session=True)

    async def _clear(self, _: str, __: Any) -> None:
        await self._chat.clear(session=False)

    async def _ask(self, _: str, data: Any) -> None:
        await self._chat.ask(str(data))

    async def _retry(self, _: str, data: Any) -> None:
        await self._chat.retry(as_typed="typed" in data, anyway="anyway" in data)

    async def _more(self, _: str, __: Any) -> None:
        await self._chat.more()

    async def _edit(self, _: str, data: Any) -> None:
        self._chat.query_one(Prompt).restore(str(data or ""))

    async def _pane(self, name: str, data: Any) -> None:
        self._chat.open_pane(name)

    async def _copy(self, _: str, data: Any) -> None:
        if isinstance(data, str) and data:
            self._app.copy_text(data)
        else:
            self.copy_newest()

    def copy_newest(self) -> None:
        """Copy the newest answer."""
        newest = self._chat.newest
        if newest is None or newest.trace.answer is None:
            self._app.notify("There is no answer to copy yet.")
        else:
            self._app.copy_text(newest.trace.answer.text)

    def open_citation(self, trace: Trace, number: int) -> None:
        """The passage screen, at a citation of a turn."""
        citations = trace.answer.citations if trace.answer else ()
        at = next((index for index, citation in enumerate(citations) if citation.n == number), None)
        if at is None:
            self._app.notify(f"[{number}] has no source in this answer: unverified.", severity="warning")
            return
        known = {passage.id: passage for passage in trace.passages}
        self._open_places([(f"[{citation.n}]", known.get(citation.passage), citation) for citation in citations], at)

    def _open_places(self, places: list[Place], at: int) -> None:
        from mindchat.tui.screens.passage import PassageScreen

        call = self._chat.bridge.call
        self._app.open_sheet(
            PassageScreen(
                places, at, lambda passage, citation: call(lambda session: find_source(session, passage, citation))
            )
        )

    async def _passage(self, detail: str, data: Any) -> None:
        """`passage`: data is a Passage, a Citation, or several; `passage:N`: citation N of the newest answer."""
        if detail.isdigit():
            newest = self._chat.newest
            self.open_citation(newest.trace if newest is not None else Trace(), int(detail))
            return
        items = list(data) if isinstance(data, list | tuple) else [data]
        places: list[Place] = [(f"[{item.n}]", None, item) for item in items if isinstance(item, Citation)]
        places += [("", item, None) for item in items if isinstance(item, Passage)]
        if places:
            self._open_places(places, 0)
        else:
            await self._chat.note("", "There is no such passage.", ok=False)

    async def _compare(self, _: str, data: Any) -> None:
        """data: section.key=value changes; the newest question is asked again under them, beside the answer that
        stands.
        """
        newest = self._chat.newest
        if newest is None or newest.trace.state not in ("answered", "failed", "cancelled"):
            await self._chat.note("", "There is no finished answer to compare with.", ok=False)
            return
        from mindchat.tui.screens.compare import CompareScreen

        changes = [str(change) for change in data]
        view = self._chat.view
        screen = CompareScreen(
            [(f"now: {view.policy}/{view.filter}", newest.trace), (" ".join(changes), Trace())],
            self._chat.bridge.cancel,
        )
        self._chat.trials[self._chat.bridge.turn(lambda session, cancel: trial(session, changes, cancel))] = screen
        self._app.open_sheet(screen)

    async def _model(self, _: str, data: Any) -> None:
        """The model picker; data: models as `models list` has them, None: read here."""
        from mindchat.tui.screens.models import ModelsScreen

        models = list(data) if isinstance(data, list | tuple) else await self._chat.bridge.call(list_models)
        self._app.open_sheet(ModelsScreen(models, self._chat.view.model), self._picked)

    def _picked(self, name: str | None) -> None:
        if name:
            self._chat.query_one(Prompt).post_message(Submitted(f"/model {name}"))

    async def _sessions(self, _: str, __: Any) -> None:
        from mindchat.tui.screens.sessions import SessionsScreen

        self._app.open_sheet(SessionsScreen(self._chat.bridge.call, self.resume, self._chat.view.id))

    async def resume(self, id: str) -> None:
        """Continue another session: its history replaces the transcript. Raises NotFoundError, and leaves all as it is."""
        await self._chat.bridge.call(lambda session: session.resume(id))
        await self._chat.reopen(id)


ACTIONS: dict[str, Callable[[Slash, str, Any], Awaitable[None]]] = {
    "quit": Slash._quit,
    "new": Slash._new,
    "clear": Slash._clear,
    "ask": Slash._ask,
    "retry": Slash._retry,
    "more": Slash._more,
    "edit": Slash._edit,
    "pane": Slash._pane,
    "copy": Slash._copy,
    "passage": Slash._passage,
    "sessions": Slash._sessions,
    "compare": Slash._compare,
    "model": Slash._model,
}
"""Reply.action (before the colon) → what the screen does; after the colon stands a detail, Reply.data is its material.
"""
