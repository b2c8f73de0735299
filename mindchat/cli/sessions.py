"""`mindchat sessions`: past conversations.

Owns: its verbs and their output. Does not own: the store (memory.chats).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from mindchat.cli import options
from mindchat.cli.app import sub_app
from mindchat.cli.command_runner import Reported
from mindchat.cli.confirm import confirm
from mindchat.cli.narrate import tell_notices
from mindchat.cli.output import plural, write, write_json, write_table
from mindchat.errors import NotFoundError
from mindchat.paths import find_paths
from mindchat.text.clean import clean_line

app = sub_app("List, search, export and erase past conversations.")

Id = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="A session id, or enough of its beginning.", autocompletion=options.complete_sessions
    ),
]


@contextmanager
def _chats() -> Iterator[Any]:
    from mindchat import wiring

    chats = wiring.open_chats(find_paths())
    try:
        yield chats
    finally:
        tell_notices(chats)
        chats.close()


@app.command("list")
def list_(
    n: Annotated[int, typer.Option("-n", min=1, help="How many, newest first.")] = 50,
    json: options.Json = False,
) -> None:
    """The conversations used last."""
    with _chats() as chats:
        found = chats.list(n)
    if json:
        write_json({"sessions": found})
    else:
        write_table(
            [
                (chat.id, _minute(chat.updated_at), plural(chat.turns, "turn"), clean_line(chat.title, 80))
                for chat in found
            ]
        )


@app.command()
def search(
    words: Annotated[list[str], typer.Argument(help="Any of these words; accents and case do not matter.")],
    n: Annotated[int, typer.Option("-n", min=1, help="How many turns, best first.")] = 20,
    json: options.Json = False,
) -> None:
    """Full-text search over questions and answers."""
    with _chats() as chats:
        found = chats.search(" ".join(words), n)
    if json:
        write_json({"query": " ".join(words), "hits": found})
    else:
        for hit in found:
            write(f"{hit.chat} #{hit.turn}  {clean_line(hit.question, 100)}\n    {clean_line(hit.answer, 160)}")
    if not found and json:
        raise Reported(NotFoundError.exit_code)
    if not found:
        raise NotFoundError("No conversation holds these words.", "Try a name or a rarer word.")


@app.command()
def show(session: Id, json: options.Json = False) -> None:
    """One conversation, all of it."""
    with _chats() as chats:
        if json:
            write_json(chats.show(session))
        else:
            write(chats.export(session, "md").rstrip("\n"))


@app.command()
def rename(
    session: Id, title: Annotated[list[str], typer.Argument(help="The new title.")], json: options.Json = False
) -> None:
    """Give a conversation a title."""
    with _chats() as chats:
        uid, new = chats.resolve(session), chats.rename(session, " ".join(title))
    _say({"id": uid, "title": new}, f"{uid}  {new}", json)


@app.command()
def export(
    session: Id,
    file: Annotated[
        Path | None, typer.Argument(dir_okay=False, help="A .md or .json file; default: Markdown on standard output.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Write a conversation as Markdown or JSON."""
    form: Literal["md", "json"] = "json" if json or (file is not None and file.suffix == ".json") else "md"
    with _chats() as chats:
        text = chats.export(session, form)
    if file is None:
        write(text.rstrip("\n"))
    else:
        file.write_text(text, encoding="utf-8")
        write(str(file))


@app.command()
def delete(session: Id, yes: options.Yes = False, json: options.Json = False) -> None:
    """Erase a conversation; facts learned in it stay."""
    with _chats() as chats:
        transcript = chats.show(session)
        confirm(
            f"Erase {transcript.chat.id} ({plural(transcript.chat.turns, 'turn')},"
            f" {clean_line(transcript.chat.title, 60)})?",
            yes,
        )
        chats.delete(transcript.chat.id)
    _say({"deleted": [transcript.chat.id]}, f"erased {transcript.chat.id}", json)


@app.command()
def purge(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="Not used since this long: 30d, 12w, 48h.")
    ],
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Erase every conversation that was not used for a while."""
    with _chats() as chats:
        confirm(f"Erase every conversation not used for {older_than}?", yes)
        count = chats.purge(older_than)
    _say({"deleted": count}, f"erased {count}", json)


def _say(value: object, line: str, json: bool) -> None:
    if json:
        write_json(value)
    else:
        write(line)


def _minute(moment: str) -> str:
    return moment[:16].replace("T", " ")
