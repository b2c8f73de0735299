"""From a typed line to a query: words, "quoted phrases" and filters. The one parser, whoever was typed to.

Owns: the forms `"exact words"`, `type:pdf`, `path:notes`, `before:2025-01-01`, `after:2024`, and of command lines `--in
PATH` and `-k N`.
Does not own: what a filter does to a search (narrow). Nothing is an error: what is no known filter, or has no meaning
as one, is a word.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mindchat.corpus.reading.readers import READERS
from mindchat.values import Filters, Sought

_PHRASE = re.compile(r"[\"“”„]([^\"“”„]+)[\"“”]|«([^«»]+)»")
_VALUE = r"(?:\"([^\"]*)\"|'([^']*)'|(\S+))"
_FILTER = re.compile(rf"(?<!\S)([a-z]+):{_VALUE}(?!\S)")
_OPTION = re.compile(rf"(?<!\S)(--in|-k)[ \t=]+{_VALUE}(?!\S)")
_DAY = re.compile(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?")


class Line(Struct, frozen=True):
    """A command line that searches."""

    sought: Sought
    k: int | None = None
    """Passages wanted; None: not said."""


def parse(text: str, within: Sequence[str] = ()) -> Sought:
    """The query of a text. Its `text` is what was typed without the filters; phrases stay in it, since their words are
    searched too.

    `within`: paths that were given otherwise (--in).
    """
    filters = Filters(within=tuple(os.path.realpath(os.path.expanduser(path)) for path in within))

    def take(match: re.Match[str]) -> str:
        nonlocal filters
        changed = _FILTERS[match[1]](filters, _value(match)) if match[1] in _FILTERS else None
        filters = filters if changed is None else changed
        return match[0] if changed is None else ""

    rest = _FILTER.sub(take, text)
    if filters:
        rest = re.sub(r"[ \t]{2,}", " ", rest).strip()
    phrases = (" ".join((match[1] or match[2]).split()) for match in _PHRASE.finditer(rest))
    return Sought(
        rest, "question", tuple(dict.fromkeys(phrase for phrase in phrases if any(map(str.isalnum, phrase)))), filters
    )


def parse_line(line: str) -> Line:
    """The same of a line with `--in PATH` and `-k N` in it, as it is typed after a command."""
    within: list[str] = []
    k: int | None = None

    def take(match: re.Match[str]) -> str:
        nonlocal k
        value = _value(match)
        if match[1] == "--in":
            within.append(value)
        elif value.isdecimal() and int(value):
            k = int(value)
        else:
            return match[0]
        return ""

    rest = _OPTION.sub(take, line)
    return Line(parse(rest.strip(), within), k)


def join_arguments(arguments: Sequence[str]) -> str:
    """Arguments of a shell as the line that was meant: of several, one with blanks was quoted there. A single one is
    the line itself.
    """
    if len(arguments) < 2:
        return "".join(arguments)
    return " ".join(_quoted(argument) if re.search(r"\s", argument.strip()) else argument for argument in arguments)


def _quoted(argument: str) -> str:
    name, colon, value = argument.partition(":")
    if '"' in argument:
        return argument
    return f'{name}:"{value}"' if colon and name in _FILTERS else f'"{argument}"'


def described(filters: Filters) -> str:
    """The filters in words for people, "" without any; not cleaned for a screen."""
    parts = [f"type {', '.join(suffix[1:] for suffix in filters.types)}"] * bool(filters.types)
    parts += [f"in {', '.join(filters.within)}"] * bool(filters.within) + [f"path {', '.join(filters.paths)}"] * bool(
        filters.paths
    )
    for word, ns in (("after", filters.after_ns), ("before", filters.before_ns)):
        parts += [f"{word} {datetime.fromtimestamp(ns / 1e9):%Y-%m-%d}"] if ns is not None else []
    return " · ".join(parts)


def _value(match: re.Match[str]) -> str:
    return next(group for group in match.groups()[1:] if group is not None)


def _types(filters: Filters, value: str) -> Filters | None:
    suffixes = tuple("." + part.removeprefix(".").lower() for part in value.split(","))
    known = all(suffix in READERS for suffix in suffixes)
    return replace(filters, types=(*filters.types, *suffixes)) if known else None


def _paths(filters: Filters, value: str) -> Filters | None:
    return replace(filters, paths=(*filters.paths, value)) if value.strip() else None


def _within(filters: Filters, value: str) -> Filters | None:
    return (
        replace(filters, within=(*filters.within, os.path.realpath(os.path.expanduser(value))))
        if value.strip()
        else None
    )


def _after(filters: Filters, value: str) -> Filters | None:
    start = _start(value)
    return None if start is None else replace(filters, after_ns=max(start, filters.after_ns or start))


def _before(filters: Filters, value: str) -> Filters | None:
    start = _start(value)
    return None if start is None else replace(filters, before_ns=min(start, filters.before_ns or start))


_FILTERS: dict[str, Callable[[Filters, str], Any]] = {
    "type": _types,
    "path": _paths,
    "in": _within,
    "after": _after,
    "before": _before,
}
"""Name → the filters with one more; None if the value has no meaning."""


def _start(value: str) -> int | None:
    """When a year, month or day begins on this machine's clock, in nanoseconds; None for anything else."""
    match = _DAY.fullmatch(value)
    if match is None:
        return None
    try:
        return int(datetime(int(match[1]), int(match[2] or 1), int(match[3] or 1)).timestamp() * 1e9)
    except (ValueError, OverflowError, OSError):
        return None
