"""Where a citation stands: the document's stored text, the passage and the quote in it, and whether the file changed
since.

Owns: find_source (runs in the engine thread), Source. Does not own: drawing it (screens.passage).
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from mindchat.session import Session
from mindchat.trace import found_words
from mindchat.tui.drawable import short
from mindchat.values import Citation, Passage


class Source(Struct, frozen=True):
    """A place in a document."""

    document: str
    title: str
    text: str | None
    """The document's text as it was read; None: the document was removed."""
    start: int
    end: int
    """The passage, characters of `text`."""
    quote_start: int = 0
    quote_end: int = 0
    """The quoted words; equal: none."""
    score: float = 0.0
    rank: int = 0
    page: int | None = None
    heading: str = ""
    why: str = ""
    """By which name it was found, if its own words did not bring it."""
    warnings: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    """Uris of further documents with the same text."""


def changed(session: Session, uri: str) -> str:
    """Why the file no longer is what was read; "" if it is."""
    path = Path(uri.partition("#")[0])
    stored = next((item for item in session.rooms.registry.documents() if item.uri == uri), None)
    if stored is None or not path.is_absolute():
        return ""
    try:
        stat = path.stat()
    except OSError:
        return "The file is gone; this is the text that was read." if stored.mtime_ns else ""
    same = stat.st_size == stored.size or not stored.size
    return (
        ""
        if same and (stat.st_mtime_ns == stored.mtime_ns or not stored.mtime_ns)
        else "The file changed after it was read; /sync reads it again."
    )


def _also(session: Session, passage: Passage | None, uri: str) -> tuple[str, ...]:
    return (
        () if passage is None else tuple(other for other in session.rooms.registry.places(passage.id) if other != uri)
    )


def _why(session: Session, passage: Passage | None) -> str:
    if passage is None or passage.found is None:
        return ""
    source = session.rooms.registry.passage(passage.found.source) if passage.found.source is not None else None
    where = source.title or source.document if source is not None else ""
    return found_words(passage, (), short(where, 60))


def find_source(session: Session, passage: Passage | None, citation: Citation | None) -> Source:
    """The place of a passage, of a citation, or of both."""
    if passage is None and citation is not None:
        passage = session.rooms.registry.passage(citation.passage)
    uri = citation.document if citation is not None else passage.document if passage is not None else ""
    text = session.rooms.registry.text(uri)
    warnings = [warning for warning in (changed(session, uri),) if warning]
    start, end = (
        (passage.start, passage.end)
        if passage is not None
        else (citation.start, citation.end)
        if citation is not None
        else (0, 0)
    )
    quote_start, quote_end = (citation.start, citation.end) if citation is not None else (start, start)
    if text is None:
        warnings.append("The document was removed from the index.")
        if passage is not None:  # the words that were in the prompt are still at hand
            text, quote_start, quote_end = passage.text, max(0, quote_start - start), max(0, quote_end - start)
            start, end = 0, len(passage.text)
    elif citation is not None and text[quote_start:quote_end] != citation.quote:
        warnings.append("The quoted words no longer stand here.")
        quote_start = quote_end = start
    return Source(
        uri, passage.title if passage is not None else uri, text, start, end, quote_start, quote_end,
        passage.score if passage else 0.0, passage.rank if passage else 0, passage.page if passage else None,
        passage.heading if passage else "", _why(session, passage), tuple(warnings), _also(session, passage, uri),
    )  # fmt: skip
