"""The sessions screen: list, full-text search, resume, rename, fork, export, delete.

Owns: the list and its keys. Does not own: the store: every call goes to the session's chats in the engine thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from mindchat.errors import MindChatError, UsageError
from mindchat.session import Session
from mindchat.tui.drawable import ACCENT, MUTED, TITLE, WARN, line, lines, short
from mindchat.tui.screens.sheet import Sheet

MOST = 200


class ChatBook(Protocol):
    """What this screen needs of the store beyond session.Chats."""

    def list(self, n: int = 50, project: str | None = None) -> Sequence[Any]:
        """Rows with id, title, project, updated_at and turns, newest first."""
        ...

    def search(self, words: str, n: int = 20) -> Sequence[Any]:
        """Turns with chat, title, question and answer, best first."""
        ...

    def rename(self, session: str, title: str) -> str:
        """The new title."""
        ...

    def fork(self, session: str, upto: int | None = None) -> str:
        """The copy's id."""
        ...

    def delete(self, session: str) -> None:
        """Erase."""
        ...

    def export(self, session: str, form: Literal["md", "json"] = "md") -> str:
        """The text."""
        ...


def book(session: Session) -> ChatBook:
    """The session's store; raises UsageError in an incognito session."""
    if session.rooms.chats is None:
        raise UsageError("An incognito session keeps and shows no chats.", "/incognito ends it.")
    return cast(ChatBook, session.rooms.chats)


class Entry:
    """One row: a session, or a turn found in one."""

    def __init__(self, id: str, title: str, note: str, detail: str = "") -> None:
        self.id, self.title, self.note, self.detail = id, title, note, detail

    def painted(self, current: str | None) -> Content:
        """Title, then when and which (or the turn that was found)."""
        head = line(("● " if self.id == current else "  ", ACCENT), short(self.title or "(untitled)", 70))
        note = f"{self.note}  {self.id}" + (f"  {short(self.detail, 60)}" if self.detail else "")
        return lines([head, line(("    " + note, MUTED))])


def list_all(session: Session, words: str) -> list[Entry]:
    """Sessions whose title holds the words, then turns found by full text. Runs in the engine thread."""
    chats = book(session)
    needle = words.casefold().strip()
    rows = [row for row in chats.list(MOST) if needle in row.title.casefold()]
    entries = [
        Entry(row.id, row.title, f"{row.turns} turn{'s' * (row.turns != 1)} · {row.updated_at[:16].replace('T', ' ')}")
        for row in rows
    ]
    if needle:
        try:
            hits = chats.search(words)
        except MindChatError:  # nothing but marks was typed: there is no word to search for, titles still match
            hits = ()
        entries += [Entry(hit.chat, hit.title, "found in", f"{hit.question} → {hit.answer}") for hit in hits]
    return entries


class SessionsScreen(Sheet):
    """All sessions; the search field has the focus, ↑ ↓ move in the list."""

    NAME = "Sessions"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "resume", "Resume", id="sessions.resume", priority=True),
        Binding("up", "move(-1)", "Up", show=False, priority=True),
        Binding("down", "move(1)", "Down", show=False, priority=True),
        Binding("ctrl+e", "rename", "Rename", id="sessions.rename", priority=True),
        Binding("ctrl+f", "fork", "Fork", id="sessions.fork", priority=True),
        Binding("ctrl+s", "export('md')", "Save .md", id="sessions.markdown", priority=True),
        Binding("ctrl+j", "export('json')", "Save .json", id="sessions.json", priority=True),
        Binding("ctrl+d", "delete", "Delete", id="sessions.delete", priority=True),
    ]

    def __init__(
        self,
        call: Callable[[Callable[[Session], Any]], Awaitable[Any]],
        resumed: Callable[[str], Awaitable[None]],
        current: str | None,
    ) -> None:
        super().__init__(id="sessions")
        self._call_session, self._resumed, self._session_now = call, resumed, current
        self._entries: list[Entry] = []
        self._renaming: Entry | None = None
        self._doomed: str | None = None

    def body(self) -> ComposeResult:
        """Search, list, a line of news."""
        yield Input(id="sessions-search")
        yield OptionList(id="sessions-list", markup=False)
        yield Static(markup=False, id="sessions-news")

    def on_mount(self) -> None:
        """Everything, newest first."""
        super().on_mount()
        self.query_one(OptionList).can_focus = False
        self.query_one(Input).placeholder = str(line("search titles, questions and answers"))
        self.query_one(Input).focus()
        self._refresh()

    def _refresh(self, words: str = "") -> None:
        self.run_worker(self._list(words), exclusive=True, exit_on_error=False)

    async def _list(self, words: str) -> None:
        if (found := await self._try(lambda session: list_all(session, words))) is None:
            return
        self._entries = found
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(Option(entry.painted(self._session_now)) for entry in found)
        options.highlighted = 0 if found else None
        if not found:
            self._say("Nothing found." if words else "There are no sessions yet.")

    async def _try(self, function: Callable[[Session], Any]) -> Any:
        """The result, or None after saying what went wrong."""
        try:
            return await self._call_session(function)
        except (MindChatError, OSError) as error:
            self._say(str(error), WARN)
            return None

    def _say(self, text: str, style: str = MUTED) -> None:
        self.query_one("#sessions-news", Static).update(line((text, style)))

    @property
    def chosen(self) -> Entry | None:
        """The highlighted row."""
        at = self.query_one(OptionList).highlighted
        return self._entries[at] if at is not None and at < len(self._entries) else None

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search as one types, unless a new title is being typed."""
        self._doomed = None
        if self._renaming is None:
            self._say("")
            self._refresh(event.value)

    def on_option_list_option_selected(self) -> None:
        """A click resumes."""
        self.action_resume()

    def action_move(self, by: int) -> None:
        """Move in the list."""
        self._doomed = None
        options = self.query_one(OptionList)
        options.action_cursor_up() if by < 0 else options.action_cursor_down()

    def action_close_sheet(self) -> None:
        """Esc ends renaming first."""
        if self._renaming is not None:
            self._end_rename()
        else:
            self.dismiss()

    def action_resume(self) -> None:
        """Continue the chosen session, or take the new title."""
        if self._renaming is not None:
            self.run_worker(self._rename(self._renaming, self.query_one(Input).value), exit_on_error=False)
        elif (entry := self.chosen) is not None:
            self.run_worker(self._resume(entry.id), exit_on_error=False)

    async def _resume(self, id: str) -> None:
        try:
            await self._resumed(id)
        except (MindChatError, OSError) as error:  # another process may have deleted it
            self._say(str(error), WARN)
        else:
            self.dismiss()

    def action_rename(self) -> None:
        """The search field takes the new title."""
        if (entry := self.chosen) is not None:
            self._renaming = entry
            field = self.query_one(Input)
            field.value = entry.title
            field.cursor_position = len(entry.title)
            self.entitle(("New title", TITLE))
            self._say("Enter renames, Esc leaves it as it is.")

    async def _rename(self, entry: Entry, title: str) -> None:
        if await self._try(lambda session: book(session).rename(entry.id, title)) is not None:
            self._end_rename()
            self._say("Renamed.")

    def _end_rename(self) -> None:
        self._renaming = None
        self.entitle((self.NAME, TITLE))
        self._say("")
        self.query_one(Input).value = ""
        self._refresh()

    def action_fork(self) -> None:
        """Copy a session and continue the copy."""
        if (entry := self.chosen) is not None:
            self.run_worker(self._fork(entry), exit_on_error=False)

    async def _fork(self, entry: Entry) -> None:
        if (copy := await self._try(lambda session: book(session).fork(entry.id))) is not None:
            await self._resume(str(copy))

    def action_export(self, form: Literal["md", "json"]) -> None:
        """Write the session into the current folder."""
        if (entry := self.chosen) is not None:
            self.run_worker(self._export(entry, form), exit_on_error=False)

    async def _export(self, entry: Entry, form: Literal["md", "json"]) -> None:
        target = Path.cwd() / f"{entry.id}.{form}"
        if target.exists():
            self._say(f"{target} exists; it is not overwritten.", WARN)
            return
        text = await self._try(lambda session: book(session).export(entry.id, form))
        if text is None:
            return
        try:
            target.write_text(text, encoding="utf-8")
        except OSError as error:
            self._say(f"Could not write {target}: {error}", WARN)
        else:
            self._say(f"Saved {target}.")

    def action_delete(self) -> None:
        """The same key twice: a lost session does not come back."""
        if (entry := self.chosen) is None:
            return
        if entry.id == self._session_now:
            self._say("This session is open; /new first.", WARN)
        elif self._doomed != entry.id:
            self._doomed = entry.id
            self._say(f"Delete “{short(entry.title, 40)}” for good? The same key again does it.", WARN)
        else:
            self.run_worker(self._delete(entry), exit_on_error=False)

    async def _delete(self, entry: Entry) -> None:
        self._doomed = None
        await self._try(lambda session: book(session).delete(entry.id) or True)  # type: ignore[func-returns-value]
        self._say("Deleted.")
        self._refresh(self.query_one(Input).value)
