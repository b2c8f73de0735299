"""What a query demands of documents and passages: its filters and phrases, for whichever engine searches.

Owns: whether a document passes, whether a passage has the phrases, the terms a passage with them must have. Does not
own: reading the typed line (queries), scoring.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec.structs import replace

from mindchat.corpus.search.analyze import unspaced
from mindchat.corpus.search.twins import content_key
from mindchat.document_ports import Registry
from mindchat.text.folding import fold
from mindchat.values import Filters, Passage, Query, Sought

_SUFFIX = re.compile(r"(\.[^./#]+)(?:#[^/]*)?$")
Times = Callable[[], Mapping[str, int]]
"""Gives when each document's file was changed, by uri; asked only for filters of time."""


class Narrowing:
    """The demands of one query. Cheap to make."""

    def __init__(self, query: Query, within: Sequence[str] = (), times: Times = dict) -> None:
        sought = query if isinstance(query, Sought) else Sought(query.text, query.by)
        roots = tuple(os.path.realpath(os.path.expanduser(path)) for path in within)
        self._given = _starts(roots)
        self.filters = sought.filters
        self.within = roots
        self.phrases = sought.phrases
        self._exact = [_pattern(phrase) for phrase in sought.phrases]
        self._times = times() if sought.filters.after_ns is not None or sought.filters.before_ns is not None else {}
        self._own = _starts(sought.filters.within)
        self._paths = [part.casefold() for part in sought.filters.paths]

    @property
    def documents(self) -> bool:
        """Whether some document may not pass."""
        return bool(self.filters or self.within)

    @property
    def key(self) -> tuple[tuple[str, ...], Filters]:
        """Equal for queries that let the same documents pass as long as no file changes its time."""
        return self.within, self.filters

    @property
    def lasting(self) -> bool:
        """Whether the answer depends on nothing but the uri, so that it may be kept."""
        return self.filters.after_ns is None and self.filters.before_ns is None

    def unseen(self, terms: Sequence[bytes]) -> bool:
        """Whether the phrases must be looked for in every text (scan), since no index has these terms of the query."""
        return bool(self.phrases) and all(map(lone, terms))

    def allows(self, uri: str) -> bool:
        """Whether a document passes all filters."""
        if not (_at(uri, self._given) and _at(uri, self._own)):
            return False
        filters = self.filters
        if filters.types and ((suffix := _SUFFIX.search(uri)) is None or suffix[1].lower() not in filters.types):
            return False
        if self._paths and not any(_matches(uri.casefold(), part) for part in self._paths):
            return False
        changed = self._times.get(uri, 0)
        return changed >= (filters.after_ns or changed) and (filters.before_ns is None or changed < filters.before_ns)

    def accepts(self, passage: Passage) -> bool:
        """Whether every phrase stands in the passage's title, heading or text."""
        if not self._exact:
            return True
        whole = comparable(f"{passage.title}\n{passage.heading}\n{passage.text}")
        return all(pattern.search(whole) for pattern in self._exact)


def comparable(text: str) -> str:
    """Folded; a line end is a blank."""
    return fold(text)


def lone(term: bytes) -> bool:
    """Whether a term is one character of a script without spaces: in longer runs it stands inside other terms."""
    text = term.decode()
    return len(text) == 1 and unspaced(text)


def _pattern(phrase: str) -> re.Pattern[str]:
    """The phrase between word boundaries; scripts without spaces have none."""
    words = comparable(phrase)
    before = r"(?<![^\W_])" if words[0].isalnum() and not unspaced(words[0]) else ""
    after = r"(?![^\W_])" if words[-1].isalnum() and not unspaced(words[-1]) else ""
    return re.compile(before + re.escape(words) + after)


def _starts(roots: Sequence[str]) -> tuple[frozenset[str], tuple[str, ...]] | None:
    return (
        (frozenset(roots), tuple(root.rstrip(os.sep) + end for root in roots for end in (os.sep, "#")))
        if roots
        else None
    )


def _at(uri: str, starts: tuple[frozenset[str], tuple[str, ...]] | None) -> bool:
    return starts is None or uri in starts[0] or uri.startswith(starts[1])


def _matches(uri: str, part: str) -> bool:
    return fnmatchcase(uri, f"*{part}*") if "*" in part or "?" in part else part in uri


def scan(registry: Registry, collection: str, narrowing: Narrowing, k: int) -> list[Passage]:
    """At most k passages that the demands let pass, in the registry's order: for phrases of stop words alone, which no
    index has.

    About five seconds for 40,000 passages.
    """
    found: dict[bytes, Passage] = {}
    for passage in registry.passages(collection) if narrowing.phrases and k > 0 else ():
        if narrowing.allows(passage.document) and narrowing.accepts(passage):
            found.setdefault(content_key(passage), replace(passage, rank=len(found) + 1))
        if len(found) == k:
            break
    return list(found.values())


def times_of(registry: Registry, collection: str) -> Times:
    """Times from the registry."""
    return lambda: {row.uri: row.mtime_ns for row in registry.documents(collection)}


def missing_phrases(search: Callable[[Query, int], Sequence[Passage]], query: Query) -> tuple[str, ...]:
    """Those phrases of a query that no passage has, the filters being as they are. Raises IndexMissingError."""
    if not isinstance(query, Sought):
        return ()
    return tuple(phrase for phrase in query.phrases if not search(replace(query, text=phrase, phrases=(phrase,)), 1))
