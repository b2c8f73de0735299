"""One search as somebody asks for it by command: the hits, and in words what nothing has.

Owns: look, Looked. Does not own: searching (the retriever), the query's form (queries), how hits are drawn (cli,
commands).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from mindchat.corpus.search.narrow import missing_phrases
from mindchat.corpus.search.queries import described
from mindchat.ports import KnowsNames, Retriever
from mindchat.text.language import Language
from mindchat.trace import absent_words
from mindchat.values import Absent, Passage, Sought


class Places(Protocol):
    """Who knows where a passage stands (ports.Registry, the library)."""

    def places(self, id: str) -> tuple[str, ...]:
        """See ports.Registry.places."""
        ...


class Looked(Struct, frozen=True):
    """What a search gave."""

    hits: Sequence[Passage]
    also: tuple[tuple[str, ...], ...]
    """For each hit, uris of further documents with the same text."""
    absent: tuple[Absent, ...]
    """Names of the query that no document has, and phrases that no passage has word for word."""
    notes: tuple[str, ...]
    """The same for people, a sentence each, and why there is no hit; not cleaned for a screen."""


def look(retriever: Retriever, registry: Places, sought: Sought, k: int, words: Language) -> Looked:
    """Search once, and say what is missing. Raises IndexMissingError."""
    hits = retriever.search(sought, k)
    names = retriever.absent(sought.text, words, sought.filters) if isinstance(retriever, KnowsNames) else ()
    lost = () if hits else missing_phrases(retriever.search, sought)
    unnamed = [phrase for phrase in lost if phrase not in {item.name for item in names}]
    notes = [absent_words(item) for item in names] + [f"No passage has “{phrase}” word for word." for phrase in unnamed]
    if not hits:
        limits = described(sought.filters)
        together = "No passage has all phrases together." if len(sought.phrases) > 1 and not lost else ""
        notes.append(together or f"Nothing found{f' with {limits}' if limits else ''}.")
    also = tuple(tuple(uri for uri in registry.places(hit.id) if uri != hit.document) for hit in hits)
    return Looked(hits, also, (*names, *(Absent(phrase) for phrase in unnamed)), tuple(notes))
