"""Flags that several commands share, and what they set.

Owns: their names, help and completions. Does not own: checking values (mindchat.config and the tables that know the
names).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated

import typer

from mindchat.cli.load_settings import Setup
from mindchat.text.nearest_name import unknown

LAYOUTS = ("same", "reverse", "shuffle", "paraphrase", "summary", "core")
ROLES = ("user", "assistant")


def choices(*names: str) -> Callable[[str], list[str]]:
    """A completion among fixed names."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


def one_of(kind: str, names: Iterable[str], value: str) -> None:
    """Raise UsageError with the nearest name if the value is not among them."""
    known = list(names)
    if value not in known:
        raise unknown(kind, value, known)


def check_names(setup: Setup) -> None:
    """Refuse unknown plug-ins and models before anything is loaded. Raises UsageError with the nearest name."""
    from mindchat import wiring
    from mindchat.entities import FILTERS
    from mindchat.models import MODELS
    from mindchat.policies import POLICIES
    from mindchat.prompts import COMPOSERS

    config = setup.config
    one_of("policy", POLICIES, config.engine.policy)
    one_of("filter", FILTERS, config.engine.filter)
    one_of("role", COMPOSERS, config.layout.role)
    if not config.server.url and config.model.name.partition(":")[0] not in MODELS:
        wiring.open_store(config, setup.paths).info(config.model.name)


def _policies(incomplete: str) -> list[str]:
    from mindchat.policies import POLICIES

    return [name for name in POLICIES if name.startswith(incomplete)]


def _filters(incomplete: str) -> list[str]:
    from mindchat.entities import FILTERS

    return [name for name in FILTERS if name.startswith(incomplete)]


def _setting_keys(incomplete: str) -> list[str]:
    from mindchat.config import keys

    return [f"{key}=" for key in keys() if key.startswith(incomplete)]


def complete_models(incomplete: str) -> list[str]:
    """Model ids that begin like this."""
    from mindchat.models.install.catalogue import catalogue

    return [name for name in catalogue() if name.startswith(incomplete)]


def complete_sessions(incomplete: str) -> list[tuple[str, str]]:
    """Session ids that begin like this, with their titles."""
    from mindchat import wiring
    from mindchat.paths import find_paths

    paths = find_paths()
    if not paths.chats_db.exists():
        return []
    return [(chat.id, chat.title) for chat in wiring.open_chats(paths).list(50) if chat.id.startswith(incomplete)]


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of lines for people.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before erasing.")]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="SECTION.KEY=VALUE", help="Set anything in config.toml.", autocompletion=_setting_keys
    ),
]
ModelName = Annotated[
    str | None,
    typer.Option("-m", "--model", help="Model id, hub name, folder or GGUF file.", autocompletion=complete_models),
]
SessionId = Annotated[
    str | None,
    typer.Option("--session", metavar="ID", help="Continue this conversation.", autocompletion=complete_sessions),
]
Continue = Annotated[bool, typer.Option("-c", "--continue", help="Continue the newest conversation of this folder.")]
Incognito = Annotated[bool, typer.Option("--incognito", help="Read and write neither memory nor history.")]
Policy = Annotated[str | None, typer.Option("--policy", help="When to look something up.", autocompletion=_policies)]
Filter = Annotated[
    str | None, typer.Option("--filter", help="Which entities are worth a query.", autocompletion=_filters)
]
Repeat = Annotated[
    str | None,
    typer.Option(
        "--repeat",
        metavar="N|auto",
        help="Extra copies of the documents.",
        autocompletion=choices("0", "1", "2", "auto"),
    ),
]
Role = Annotated[
    str | None,
    typer.Option("--role", help="Who repeats the documents: user or assistant.", autocompletion=choices(*ROLES)),
]
As = Annotated[str | None, typer.Option("--as", help="What is repeated.", autocompletion=choices(*LAYOUTS))]
