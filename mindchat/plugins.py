"""Tables that installed packages can extend: what each room offers by name, its own entries and those of plug-ins.

Owns: Table, the groups of entry points, finding plug-ins, telling which are broken. Does not own: the tables' own
entries (each room). A plug-in is an entry point of a group below, in any installed package: its name is the entry's
name, its value "module:attribute". Nothing is imported and no package is looked through before a name is asked for that
the room itself does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from msgspec import Struct

from mindchat.errors import ConfigError
from mindchat.text.clean import clean_line

TABLES = {
    "mindchat.policies": "mindchat.policies:POLICIES",
    "mindchat.filters": "mindchat.entities:FILTERS",
    "mindchat.readers": "mindchat.corpus.reading.readers:READERS",
    "mindchat.rankers": "mindchat.corpus.search.rankers:RANKERS",
    "mindchat.copies": "mindchat.prompts:COMPOSERS",
    "mindchat.models": "mindchat.models:MODELS",
    "mindchat.datasets": "mindchat.lab.evals.datasets:DATASETS",
    "mindchat.commands": "mindchat.commands:PLUGGED",
}
"""Group of entry points → where its table is."""


class Plugin(Struct, frozen=True):
    """One entry point of one of the groups."""

    group: str
    name: str
    target: str
    """module:attribute."""
    package: str
    """Name and version of the package that brings it."""
    refused: str = ""
    """Why it is not used; "" if it is."""


class Table(Mapping[str, str]):
    """Name → "module:attribute": the room's own entries, then those of plug-ins. A plug-in never takes the place of an
    own entry.
    """

    def __init__(self, group: str, own: Mapping[str, str]) -> None:
        self.group, self.own = group, dict(own)
        self._plugged: dict[str, str] | None = None

    def __getitem__(self, name: str) -> str:
        if name in self.own:
            return self.own[name]
        return self._found()[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self.own, *self._found()])

    def __len__(self) -> int:
        return len(self.own) + len(self._found())

    def _found(self) -> dict[str, str]:
        if self._plugged is None:
            self._plugged = {found.name: found.target for found in named(self.group, self.own) if not found.refused}
        return self._plugged


def named(group: str, own: Mapping[str, str]) -> list[Plugin]:
    """The plug-ins of a group by name, those refused for their name or form included; nothing is imported."""
    found: list[Plugin] = []
    for entry in sorted(entry_points(group=group), key=lambda entry: (entry.name, _package(entry))):
        refused = ""
        if entry.name in own:
            refused = f"the name {clean_line(entry.name, 40)} is MindChat's own"
        elif any(other.name == entry.name and not other.refused for other in found):
            refused = f"another package brings {clean_line(entry.name, 40)}, too"
        elif not entry.attr:
            refused = "its entry point names no attribute (module:attribute)"
        found.append(Plugin(group, entry.name, f"{entry.module}:{entry.attr}", _package(entry), refused))
    return found


def _package(entry: EntryPoint) -> str:
    return clean_line(f"{entry.dist.name} {entry.dist.version}", 80) if entry.dist is not None else "?"


def resolve(target: str) -> Any:
    """What stands at "module:attribute". Raises ConfigError, in one sentence, if it cannot be had."""
    module, _, attribute = target.partition(":")
    try:
        found: Any = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:  # a foreign module may raise anything while it is imported
        if module.partition(".")[0] == "mindchat":
            raise
        why = f"{type(error).__name__}: {clean_line(str(error), 200)}"
        raise ConfigError(
            f"The plug-in {clean_line(target, 100)} cannot be loaded ({why}).",
            "mindchat plugins lists all; update or remove its package.",
        ) from error
    return found


def all_plugins() -> list[Plugin]:
    """Every plug-in of every group, each loaded once to see whether it can be."""
    found = []
    for group, place in TABLES.items():
        table = resolve(place)
        for plugin in named(group, table.own):
            try:
                refused = plugin.refused or (
                    "" if callable(resolve(plugin.target)) else "it can neither be made nor called"
                )
            except ConfigError as error:
                refused = error.message
            found.append(Plugin(group, plugin.name, plugin.target, plugin.package, refused))
    return found
