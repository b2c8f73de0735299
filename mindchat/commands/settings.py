"""Commands that change how questions are answered: set, settings, model, policy, filter, repeat.

Owns: these. Does not own: the settings (config.py), loading models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from mindchat.commands.reply import Command, Reply
from mindchat.config import keys
from mindchat.entities import FILTERS
from mindchat.errors import UsageError
from mindchat.pace import said_of_copies
from mindchat.policies import POLICIES
from mindchat.session import Session
from mindchat.text.addresses import without_secrets
from mindchat.text.nearest_name import unknown


def _values(session: Session) -> dict[str, object]:
    return without_secrets(
        {f"{s}.{k}": v for s, section in msgspec.to_builtins(session.config).items() for k, v in section.items()}
    )


def known(name: str, table: Mapping[str, str], kind: str) -> str:
    """The name if the table has it; raises UsageError with the nearest one."""
    if name not in table:
        raise unknown(kind, name, table)
    return name


def set_(session: Session, args: str) -> Iterator[Reply]:
    """section.key=value, or `section.key value`, for this session; with --save also in the user's file."""
    words = args.replace("=", " ", 1).split(maxsplit=1)
    if len(words) != 2:
        raise UsageError("What should be set?", "/set section.key=value; /settings lists all.")
    key, value = words
    value, save = (value.removesuffix("--save").strip(), True) if value.endswith("--save") else (value, False)
    tables: dict[str, tuple[Mapping[str, str], str]] = {
        "engine.policy": (POLICIES, "policy"),
        "engine.filter": (FILTERS, "filter"),
    }
    if key in tables:
        known(value, *tables[key])
    session.change(key, value)
    if save:
        from mindchat.storage.settings_file import save_setting

        save_setting(session.rooms.paths.config_file, key, value)
    kept = f"saved in {session.rooms.paths.config_file}" if save else "this session; --save keeps it"
    yield Reply(f"{key} = {_values(session)[key]} ({kept})")


def settings(session: Session, args: str) -> Iterator[Reply]:
    """All settings, or those that hold the words."""
    lines = [f"{key} = {value}" for key, value in _values(session).items() if args.strip().casefold() in key]
    yield Reply("\n".join(lines) or "No such setting.", ok=bool(lines))


def model(session: Session, args: str) -> Iterator[Reply]:
    """The catalogue, or another model for this session."""
    from mindchat.models.install.model_store import Store

    store = Store(session.rooms.paths.models)
    if not args.strip():
        marks = {session.config.model.name: "*"}
        lines = [
            f"{marks.get(info.id, ' ')} {info.id.ljust(28)} {'installed' if info.installed else ''}"
            for info in store.list()
            if info.role == "chat"
        ]
        yield Reply("\n".join(lines) + "\n/model NAME switches; what is missing is fetched first", action="model")
        return
    name = args.strip()
    store.info(name)
    session.change("model.name", name)
    yield Reply(f"model.name = {name}; it is loaded before the next question")


def _shortcut(key: str, table: Mapping[str, str] | None, kind: str) -> Callable[[Session, str], Iterator[Reply]]:
    def run(session: Session, args: str) -> Iterator[Reply]:
        value = args.strip()
        if not value:
            choices = f" · {', '.join(table)}" if table else ""
            yield Reply(f"{key} = {_values(session)[key]}{choices}")
            return
        if table is not None:
            known(value, table, kind)
        session.change(key, value)
        yield Reply(f"{key} = {_values(session)[key]}")

    return run


def repeat(session: Session, args: str) -> Iterator[Reply]:
    """layout.repeat, and what that costs a question where it was measured."""
    for reply in _shortcut("layout.repeat", None, "number")(session, args):
        _, copies = session.forecast()
        yield (
            replace(reply, text=f"{reply.text}: {said_of_copies(copies)} a question")
            if copies is not None and copies.tokens
            else reply
        )


REPEATS = ["0", "1", "2", "auto"]


def _models(session: Session) -> list[str]:
    from mindchat.models.install.model_store import Store

    return [info.id for info in Store(session.rooms.paths.models).list() if info.role == "chat"]


COMMANDS = (
    Command("set", "/set KEY=VALUE [--save]", "change a setting for this session", set_, lambda _: list(keys())),
    Command("settings", "/settings [WORDS]", "list settings", settings),
    Command("model", "/model [NAME]", "list models, or switch", model, _models),
    Command(
        "policy",
        "/policy [NAME]",
        "when to retrieve",
        _shortcut("engine.policy", POLICIES, "policy"),
        lambda _: list(POLICIES),
    ),
    Command(
        "filter",
        "/filter [NAME]",
        "which entities to ask about",
        _shortcut("engine.filter", FILTERS, "filter"),
        lambda _: list(FILTERS),
    ),
    Command("repeat", "/repeat [N|auto]", "extra copies of the context", repeat, lambda _: REPEATS.copy()),
)
