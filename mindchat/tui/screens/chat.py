"""The chat screen: transcript, panes, prompt, status.

Owns: layout (side by side from 100 columns, tabs below), which turn is shown, busy or not. Does not own: slash lines
(mindchat.tui.slash), what events mean (trace.fold). News comes as messages of the bridge; a turn id that is no longer
known is dropped.
"""

from __future__ import annotations

import re
import time
from typing import ClassVar

from textual import events as tev
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Footer, Markdown, Static

from mindchat.commands import Reply
from mindchat.trace import Trace, fold
from mindchat.tui import keys
from mindchat.tui.bridge import LOADING, Bridge, EventsArrived, Replied, SessionChanged, SessionView, StartFailed, Told
from mindchat.tui.drawable import FAINT, MUTED, clickable, line
from mindchat.tui.history import PromptHistory
from mindchat.tui.screens.compare import CompareScreen
from mindchat.tui.slash import OPENS_SCREEN, Slash
from mindchat.tui.watching import Watched
from mindchat.tui.widgets.context import Evidence
from mindchat.tui.widgets.hops import Hops
from mindchat.tui.widgets.memory import MemoryPane, MemoryWish
from mindchat.tui.widgets.pane import Pane
from mindchat.tui.widgets.prompt import Prompt, ScrollWanted, Submitted
from mindchat.tui.widgets.status import Status, StatusLine
from mindchat.tui.widgets.transcript import CitationOpened, Note, PastTurn, Reasoning, Transcript, TurnView
from mindchat.tui.widgets.uncertainty import Uncertainty
from mindchat.tui.widgets.welcome import Welcome

PANES = (("uncertainty", "Uncertainty"), ("hops", "Hops"), ("context", "Context"), ("memory", "Memory"))
WIDTHS = (42, 55, 30)
"""Shares of the side column in percent, in the order of the resize key."""
_CITED = re.compile(r"\[(\d{1,4})\]")


class ChatScreen(Screen[None]):
    """The one screen that is always there."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.CHAT]

    def __init__(self, bridge: Bridge, prompts: PromptHistory) -> None:
        super().__init__(id="chat")
        self.bridge, self.prompts = bridge, prompts
        self.view = SessionView()
        self.turns: dict[int, TurnView] = {}
        self.notes: dict[int, Note] = {}
        self.trials: dict[int, CompareScreen] = {}
        self.slash = Slash(self)
        self._loading = Trace()
        self._newest: int | None = None
        self._replied = 0
        """Number of the newest command that has ended; what was asked before it is over."""
        self._command, self._since, self._broken = "", 0.0, ""
        self._hiding = 0
        """How many /incognito were typed and have not ended."""
        self._unseen = False
        """Whether one has ended whose effect the view does not show yet."""
        self._past: tuple[tuple[str, str, str], ...] | None = None
        """What stands in the transcript of the time before; None: not known yet."""
        self._current = ""
        self._clock: Timer | None = None
        self._watched: Watched | None = None

    def compose(self) -> ComposeResult:
        """Tabs (narrow only), transcript beside panes, prompt, status, keys."""
        yield Static(id="tabs", markup=False)
        with Horizontal(id="main"):
            with Vertical(id="talk"):
                with Transcript(id="transcript"), Vertical(id="flow"):
                    yield Welcome()
                yield Static(line("↓ new text, End follows"), id="below", markup=False)
            with Vertical(id="side"):
                yield Uncertainty()
                yield Hops(id="hops")
                yield Evidence()
                yield MemoryPane()
        yield Prompt(self.slash.suggest)
        yield StatusLine()
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Typing goes straight to the prompt; hops are one key away."""
        self.query_one("#hops").add_class("off")
        prompt = self.query_one(Prompt)
        prompt.input.earlier = self.prompts.entries
        prompt.restore(self.prompts.take_draft())
        self._clock = self.set_interval(0.5, self._tick, pause=True)
        self.watch(self.query_one(Transcript), "scroll_y", self._show_below, init=False)
        self._show_tabs()
        self._say_status()

    # ── turns ────────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def busy(self) -> bool:
        """Whether a turn or a command is running or waiting."""
        return bool(self._command) or any(view.trace.state in ("waiting", "running") for view in self.turns.values())

    @property
    def keeps(self) -> bool:
        """Whether what is typed and copied may be written down: not while incognito, nor from the moment /incognito was
        typed.
        """
        return not (self.view.incognito or self._hiding or self._unseen)

    @property
    def newest(self) -> TurnView | None:
        """The newest turn of this session."""
        return self.turns[self._newest] if self._newest is not None else None

    async def on_submitted(self, event: Submitted) -> None:
        """A line from the prompt."""
        self.prompts.add(event.text, keep=self.keeps)
        if event.text.startswith("/") and not event.text.startswith("//"):
            await self.slash.run(event.text)
        elif cited := _CITED.fullmatch(event.text.strip()):
            self.slash.open_citation(self.newest.trace if self.newest is not None else Trace(), int(cited[1]))
        else:
            await self.ask(event.text.removeprefix("/") if event.text.startswith("//") else event.text)

    async def ask(self, text: str) -> None:
        """Ask the session; while a turn runs, the question waits its turn."""
        await self._begin(text, self.bridge.ask(text))

    async def retry(self, *, as_typed: bool = False, anyway: bool = False) -> None:
        """Ask the newest question again; `as_typed`, `anyway`: as for Session.ask."""
        question = (
            self.newest.question if self.newest is not None else self.view.past[-1][0] if self.view.past else None
        )
        if question is None:
            await self.note("", "There is no question to repeat.", ok=False)
        else:
            await self._begin(question, self.bridge.retry(as_typed, anyway))

    async def more(self) -> None:
        """Go on with the newest answer where it stands."""
        view, turn = self.newest, self.bridge.turn(lambda session, cancel: session.more(cancel=cancel))
        if view is None or self._newest is None:  # cut before this program opened the conversation
            await self._begin(self.view.past[-1][0] if self.view.past else "", turn)
            return
        idle = not self.busy
        del self.turns[self._newest]
        self.turns[turn], self._newest = view, turn
        view.go_on()
        self.query_one(Transcript).follow()
        if idle:
            self._start_clock()
        self._say_status()

    async def _begin(self, text: str, turn: int) -> None:
        view = TurnView(text)
        idle = not self.busy
        self.turns[turn], self._newest = view, turn
        self.query_one(Welcome).display = False
        await self.query_one("#flow").mount(view)
        self.query_one(Transcript).follow()
        if idle:
            self._start_clock()
        self._say_status()

    async def on_events_arrived(self, event: EventsArrived) -> None:
        """Fold the news and show the trace."""
        if event.turn == LOADING:
            for item in event.events:
                self._loading = fold(self._loading, item)
            self._say_status()
            return
        if event.turn in self.trials:
            self.trials[event.turn].take(event.events)
            self._say_status()
            return
        view = self.turns.get(event.turn)
        if view is None or view.trace.state in ("answered", "failed", "cancelled"):
            return
        trace = view.trace
        for item in event.events:
            trace = fold(trace, item)
        await view.show(trace)
        if trace.state in ("answered", "failed", "cancelled"):
            self._ended(trace)
        if self._under_way() in (event.turn, None):
            self.show_panes(trace)
        self._say_status()

    def _under_way(self) -> int | None:
        return next((turn for turn, view in self.turns.items() if view.trace.state in ("waiting", "running")), None)

    def _ended(self, trace: Trace) -> None:
        self._since = time.monotonic()
        if not self.busy and self._clock is not None:
            self._clock.pause()
        self.refresh_bindings()

    def show_panes(self, trace: Trace) -> None:
        """All four read the same trace."""
        for pane in self.query(Pane):
            pane.show(trace)

    # ── the session ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def on_session_changed(self, event: SessionChanged) -> None:
        """The session as it is after a job; another session id means another conversation."""
        before, self.view = self.view, event.view
        self._unseen = False
        self.query_one(Welcome).show(event.view)
        self.query_one(MemoryPane).set_mode("incognito" if event.view.incognito else event.view.memory)
        if event.view.model != before.model and before.model and not event.view.model_ready:
            self._loading, self._broken = Trace(), ""
            self.bridge.load()
        moved = before.id is not None and event.view.id is not None and before.id != event.view.id
        if moved and self.turns and before.past != event.view.past:
            await self.clear(session=True)  # a command went to another session
        await self._show_history()
        self._say_status()

    def on_watched(self, event: Watched) -> None:
        """The files were looked at; from the first look on, its age is kept current."""
        if self._watched is None:
            self.set_interval(5.0, self._say_status)
        self._watched = event
        self._say_status()

    async def _show_history(self) -> None:
        """What was said before. Told by its words: news of the session that was left may still come after clear()."""
        if self.view.past == self._past:
            return
        self._past = self.view.past
        if self.turns:
            return
        flow = self.query_one("#flow")
        if self._past or flow.query(PastTurn):
            self.query_one(Welcome).display = not self._past
        await flow.remove_children(".past")
        await flow.mount_all([PastTurn(question, answer, status) for question, answer, status in self._past])
        self.query_one(Transcript).follow()

    async def reopen(self, id: str | None) -> None:
        """An empty transcript for the session that was resumed, and its past if that is known by now."""
        await self.clear(session=True)
        if self.view.id == id:
            await self._show_history()

    async def clear(self, *, session: bool) -> None:
        """Empty the transcript; with `session`, panes and turns too (late news of old turns is dropped).

        Questions that were asked after the command stay: commands queue behind turns, the screen does not.
        """
        open_ = ("waiting", "running")
        later = {n: view for n, view in self.turns.items() if n > self._replied and view.trace.state in open_}
        for child in list(self.query_one("#flow").query(".turn, .note")):
            if child not in later.values():
                await child.remove()
        if session:
            self.turns, self.notes, self._past = later, {}, None
            self._newest = max(later, default=None)
            self.show_panes(Trace())
            self.query_one(Welcome).display = not later
        self._say_status()

    async def on_told(self, event: Told) -> None:
        """A repair or damage: it stays in the transcript."""
        await self.note("Note", event.text, ok=False)

    async def on_start_failed(self, event: StartFailed) -> None:
        """No session, or no model: said in the transcript, and the prompt stays usable."""
        self._broken = event.error.message
        if event.fatal:
            self.app.exit_status = event.error.exit_code  # type: ignore[attr-defined]
        await self.note(
            "MindChat cannot start" if event.fatal else "The model is not ready",
            f"{event.error.message}\n{event.error.hint}".strip(),
            ok=False,
        )
        self._say_status()

    # ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def note(self, title: str, text: str, *, ok: bool = True) -> Note:
        """Words of MindChat itself, in the transcript."""
        shown = Note(title, text, ok=ok)
        self.query_one(Welcome).display = False
        await self.query_one("#flow").mount(shown)
        self.query_one(Transcript).follow()
        return shown

    def begin_command(self, name: str) -> None:
        """The status line names the command until its last reply."""
        if name == "incognito":
            self._hiding += 1
        self._command = name
        self._start_clock()
        self._say_status()

    async def on_replied(self, event: Replied) -> None:
        """Progress or result of a command."""
        reply: Reply = event.reply
        action = reply.action.partition(":")[0]
        if reply.text and action == "new":  # the transcript is about to be emptied
            if event.last:
                self.app.notify(reply.text)
        elif reply.text and action not in OPENS_SCREEN:
            if event.job in self.notes:
                self.notes[event.job].say(reply.text, ok=reply.ok)
            else:
                self.notes[event.job] = await self.note(f"/{event.name}", reply.text, ok=reply.ok)
        if event.last:
            if event.name == "incognito":
                self._hiding, self._unseen = self._hiding - 1, True
            self._command = ""
            self.notes.pop(event.job, None)
            self._ended(Trace())
            self._replied = max(self._replied, event.job)
            await self.slash.act(event.name, reply)
        self._say_status()

    def offer(self, name: str, needs_argument: bool) -> None:
        """From the palette: run a command, or put it into the prompt if it wants words."""
        if needs_argument:
            self.query_one(Prompt).restore(f"/{name} ")
        else:
            self.query_one(Prompt).post_message(Submitted(f"/{name}"))

    async def on_memory_wish(self, event: MemoryWish) -> None:
        """A key of the memory pane."""
        if event.typed:
            self.query_one(Prompt).restore(f"/{event.name} {event.args}")
        elif (event.name, event.args) == ("memory", "list"):
            self.run_worker(self.slash.list_memory(), group="memory", exclusive=True, exit_on_error=False)
        else:
            if self.has_class("-narrow"):
                self.action_pane("")  # the reply stands in the chat
            await self.slash.run(f"/{event.name} {event.args}")

    # ── status ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _start_clock(self) -> None:
        self._since = time.monotonic()
        if self._clock is not None:
            self._clock.resume()
        self.refresh_bindings()

    def _tick(self) -> None:
        self._say_status()

    def _say_status(self) -> None:
        running = self._under_way()
        shown = self.turns[running] if running is not None else self.newest
        waiting = sum(1 for view in self.turns.values() if view.trace.state == "waiting")
        broken = self._broken if not self.view.model_ready and not self.busy else ""
        status = Status(
            self.view, shown.trace if shown else Trace(), self._loading, self.busy, self._command, time.monotonic() - self._since,
            max(0, waiting - (0 if running is None or self.turns[running].trace.state != "waiting" else 1)), broken,
            self._watched.line(time.monotonic()) if self._watched is not None else "",
        )  # fmt: skip
        try:
            self.query_one(StatusLine).say(status)
        except NoMatches:  # the screen is closing
            return

    def keep_draft(self) -> None:
        """An unsent text is there again at the next start."""
        if self.keeps:
            self.prompts.save_draft(self.query_one(Prompt).draft)

    # ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Stop is offered only while something runs, and the editor's own key only while nothing is typed."""
        if action == "anyway":
            return self._refused and not self.query_one(Prompt).input.text
        return self.busy if action == "cancel" else True

    @property
    def _refused(self) -> bool:
        answer = self.newest.trace.answer if self.newest is not None else None
        return answer is not None and answer.verdict == "not_in_documents"

    def action_cancel(self) -> None:
        """Esc: stop what runs; what was accepted stays."""
        self.bridge.cancel()

    def action_pane(self, name: str) -> None:
        """Show or hide a pane; under 100 columns it takes the chat's place."""
        pane = self.query_one(f"#{name}", Pane) if name in dict(PANES) else None
        if self.has_class("-narrow"):
            self._current = "" if pane is None or self._current == name else name
            self.set_class(bool(self._current), "pane-open")
            for other in self.query(Pane):
                other.set_class(other.id == self._current, "current")
        elif pane is not None:
            pane.toggle_class("off")
            self.set_class(all(other.has_class("off") for other in self.query(Pane)), "no-side")
        focused = self.focused
        if isinstance(focused, Pane) and (
            focused.id != self._current if self.has_class("-narrow") else focused.has_class("off")
        ):
            self.query_one(Prompt).input.focus()  # what is hidden would swallow keys
        self._show_tabs()

    def on_key(self, event: tev.Key) -> None:
        """A letter that nobody else wants is for the prompt, wherever the focus is."""
        field = self.query_one(Prompt).input
        if event.is_printable and event.character and not field.has_focus and event.key not in self.active_bindings:
            event.stop()
            field.focus()
            field.insert(event.character)

    def open_pane(self, name: str) -> None:
        """Make sure that a pane is seen."""
        pane = self.query_one(f"#{name}", Pane)
        hidden = self._current != name if self.has_class("-narrow") else pane.has_class("off")
        if hidden:
            self.action_pane(name)

    def _show_tabs(self) -> None:
        tabs = [("", "Chat"), *PANES]
        row = [
            clickable(f" {title} ", "bold reverse" if name == self._current else MUTED, f"screen.pane('{name}')")
            for name, title in tabs
        ]
        self.query_one("#tabs", Static).update(line(("│", FAINT)).join(row))

    def action_resize_side(self) -> None:
        """Another share for the side column."""
        side = self.query_one("#side")
        now = int(side.styles.width.value) if side.styles.width is not None else WIDTHS[0]
        side.styles.width = f"{WIDTHS[(WIDTHS.index(now) + 1) % len(WIDTHS)] if now in WIDTHS else WIDTHS[0]}%"

    def action_next_focus(self) -> None:
        """Walk through what can be focused."""
        self.focus_next()

    def action_reasoning(self) -> None:
        """Open all reasoning, or fold it if it is open."""
        views = list(self.query(Reasoning))
        opened = not any(view.opened for view in views)
        for view in views:
            view.fold(opened)

    def action_follow(self) -> None:
        """Back to the newest text."""
        self.query_one(Transcript).follow()

    def on_scroll_wanted(self, event: ScrollWanted) -> None:
        """Page keys of the prompt move the transcript, or the pane that has its place."""
        target = (
            self.query_one(f"#{self._current}", Pane)
            if self._current and self.has_class("-narrow")
            else self.query_one(Transcript)
        )
        if event.pages == 0:
            self.action_follow()
        elif event.pages < 0:
            target.scroll_page_up(animate=False)
        else:
            target.scroll_page_down(animate=False)

    def _show_below(self) -> None:
        self.query_one("#below").display = not self.query_one(Transcript).following

    async def action_as_typed(self) -> None:
        """The newest question once more, in the words that were typed."""
        if self.newest is not None and self.newest.trace.rewritten:
            await self.retry(as_typed=True)
        else:
            self.app.notify("The newest question was asked as typed.")

    async def action_anyway(self) -> None:
        """The newest question once more, though the documents do not seem to say."""
        if self._refused:
            await self.retry(anyway=True)
        else:
            self.app.notify("The newest question was not refused.")

    def action_copy_answer(self) -> None:
        """Copy the newest answer."""
        self.slash.copy_newest()

    async def action_new(self) -> None:
        """A fresh session."""
        await self.slash.run("/new")

    async def action_sessions(self) -> None:
        """The sessions screen; it opens while a turn runs, and lists when the engine thread is free."""
        await self.slash.act("sessions", Reply(action="sessions"))

    def on_citation_opened(self, event: CitationOpened) -> None:
        """Show where a citation stands."""
        self.slash.open_citation(event.trace, event.number)

    def on_markdown_link_clicked(self, event: Markdown.LinkClicked) -> None:
        """A link in an answer never opens by itself: it is shown in full and can be copied."""
        self.app.notify(f"Not opened: {event.href}", title="Link")
