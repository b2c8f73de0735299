"""Commands about the conversation itself: new, sessions, rename, fork, export, retry, edit, compare, incognito, quit,
help.

Owns: these. Does not own: where conversations are kept (memory/chats.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mindchat.commands.reply import Command, Reply, split
from mindchat.errors import UsageError
from mindchat.session import Session
from mindchat.text.clean import clean_line

if TYPE_CHECKING:
    from mindchat.storage.chats import ChatStore


def chats_of(session: Session) -> ChatStore:
    """The chat store. Raises UsageError in an incognito conversation."""
    if session.rooms.chats is None:
        raise UsageError("This conversation is incognito: nothing of it is kept.", "/incognito off ends it.")
    return session.rooms.chats  # type: ignore[return-value]


def current(session: Session) -> str:
    """Id of the running conversation; raises UsageError before the first question."""
    if session.id is None:
        raise UsageError("This conversation is not written down yet.", "Ask a question first.")
    return session.id


def help_(session: Session, args: str) -> Iterator[Reply]:
    """The table itself."""
    from mindchat.commands import COMMANDS, nearest

    name = args.strip().lstrip("/")
    if name and name not in COMMANDS:
        near = nearest(name)
        raise UsageError(
            f"There is no /{clean_line(name, 40)}." + (f" Did you mean /{near}?" if near else ""),
            "/help lists all commands.",
        )
    shown = [COMMANDS[name]] if name else list(COMMANDS.values())
    width = max(len(command.usage) for command in shown) if name else 30
    yield Reply("\n".join(f"{command.usage.ljust(width)}  {command.help}" for command in shown))


def new(session: Session, args: str) -> Iterator[Reply]:
    """A fresh conversation."""
    session.new()
    yield Reply("New conversation.", action="new")


def sessions(session: Session, args: str) -> Iterator[Reply]:
    """The list screen, or a search in all conversations."""
    chats = chats_of(session)
    if not args.strip():
        listed = [f"{chat.id}  {chat.updated_at[:16].replace('T', ' ')}  {chat.title}" for chat in chats.list(20)]
        yield Reply("\n".join(listed) or "No conversations yet.", action="sessions")
        return
    hits = chats.search(args)
    lines = [f"{hit.chat}  {hit.title} · turn {hit.turn}: {clean_line(hit.question, 80)}" for hit in hits]
    yield Reply("\n".join(lines) or "Nothing found.", ok=bool(hits))


def rename(session: Session, args: str) -> Iterator[Reply]:
    """A new title for this conversation."""
    if not args.strip():
        raise UsageError("The title is empty.", "/rename TITLE")
    yield Reply(f"Renamed to: {chats_of(session).rename(current(session), args.strip())}")


def fork(session: Session, args: str) -> Iterator[Reply]:
    """A copy that goes on from here; the old one stays."""
    copied = chats_of(session).fork(current(session))
    history, turns, past = list(session.history), list(session.turns), session.past
    session.resume(copied)
    session.history, session.turns, session.past = history, turns, past
    yield Reply(f"Forked: this is now {copied}.")


def export(session: Session, args: str) -> Iterator[Reply]:
    """Write the conversation to a file, by its suffix as Markdown or JSON."""
    words = split(args)
    path = Path(words[0]).expanduser() if words else Path(f"mindchat-{current(session)}.md")
    text = chats_of(session).export(current(session), "json" if path.suffix == ".json" else "md")
    if path.exists():
        raise UsageError(f"{path} exists.", "Give another name; nothing is overwritten.")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.", "/export FILE.md or FILE.json") from error
    yield Reply(f"Exported to {path.resolve()}")


def retry(session: Session, args: str) -> Iterator[Reply]:
    """Ask the newest question again; `typed`: in the words that were typed; `anyway`: also where the documents do not
    seem to say.
    """
    if session.newest_question is None:
        raise UsageError("There is no question to repeat.", "Ask one first.")
    yield Reply(action="retry", data=args.split())


def more(session: Session, args: str) -> Iterator[Reply]:
    """Go on with an answer that a limit cut."""
    if session.newest_cut() is None:
        raise UsageError("There is no cut answer to go on with.", "/more continues an answer that a limit ended.")
    yield Reply(action="more")


def edit(session: Session, args: str) -> Iterator[Reply]:
    """The newest question back into the prompt."""
    if session.newest_question is None:
        raise UsageError("There is no question to edit.", "Ask one first.")
    yield Reply(action="edit", data=session.newest_question)


def compare(session: Session, args: str) -> Iterator[Reply]:
    """The newest question under a second set of settings, side by side."""
    changes = split(args)
    if not session.turns:
        raise UsageError("There is no answer to compare with.", "Ask a question, then /compare engine.policy=once.")
    if not changes or any("=" not in change for change in changes):
        raise UsageError(
            "What should be different?",
            "/compare section.key=value …, for example /compare engine.policy=once layout.repeat=0",
        )
    yield Reply(f"Comparing with {' '.join(changes)}", action="compare", data=changes)


def incognito(session: Session, args: str) -> Iterator[Reply]:
    """Nothing is read from or written to memory and chats."""
    on = args.strip().lower() != "off"
    if on == session.incognito:
        yield Reply("Already incognito." if on else "Not incognito.")
        return
    session.go_incognito(on)
    told = "Incognito: nothing from this chat is read from or written to memory or history. /incognito off ends it."
    yield Reply(told if on else "Incognito has ended; this is a new conversation.", action="new")


def clear(session: Session, args: str) -> Iterator[Reply]:
    """An empty screen; the conversation goes on."""
    yield Reply(action="clear")


def copy(session: Session, args: str) -> Iterator[Reply]:
    """The newest answer to the clipboard; with a number, the quote of that citation."""
    answer = session.turns[-1].answer if session.turns else None
    if answer is None:
        raise UsageError("There is no answer to copy.", "Ask a question first.")
    number = args.strip().strip("[]")
    if not number:
        yield Reply(action="copy", data=answer.text)
        return
    quote = next((citation.quote for citation in answer.citations if str(citation.n) == number), None)
    if quote is None:
        raise UsageError(f"The answer has no citation [{clean_line(number, 10)}].", "/copy alone copies the answer.")
    yield Reply(action="copy", data=quote)


def quit_(session: Session, args: str) -> Iterator[Reply]:
    """Leave."""
    yield Reply(action="quit")


COMMANDS = (
    Command("help", "/help [COMMAND]", "this list", help_),
    Command("new", "/new", "start a new conversation", new),
    Command("sessions", "/sessions [WORDS]", "list, search and resume conversations", sessions),
    Command("rename", "/rename TITLE", "name this conversation", rename),
    Command("fork", "/fork", "go on in a copy of this conversation", fork),
    Command("export", "/export [FILE.md|FILE.json]", "write this conversation to a file", export),
    Command(
        "retry",
        "/retry [typed] [anyway]",
        "ask again; typed: as typed; anyway: though documents do not say",
        retry,
        lambda _: ["typed", "anyway"],
    ),
    Command("more", "/more", "go on with an answer that was cut", more),
    Command("edit", "/edit", "put the newest question back into the prompt", edit),
    Command("compare", "/compare KEY=VALUE…", "ask the newest question under other settings, side by side", compare),
    Command("incognito", "/incognito [off]", "keep nothing of this conversation", incognito, lambda _: ["off"]),
    Command("clear", "/clear", "empty the screen", clear),
    Command("copy", "/copy [N]", "copy the answer, or the quote of citation N", copy),
    Command("quit", "/quit", "leave", quit_),
)
