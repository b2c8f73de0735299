"""The verdict over an answer, in words: whether what was read carries it.

Owns: which passages are about the question, the verdict that follows from the citations, which citations are shown.
Does not own: citations (engine.answering), the number beside the verdict (values.Trust), the words people read
(mindchat.trace).
Source: ours. A passage is about the question if it has one of its names, or if its title stands in a passage that is:
that is how the answer's document is reached in a question of several hops.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from mindchat.engine.answering import asked_names, folded_words, locate
from mindchat.text.clean import clean_line
from mindchat.text.language import Language
from mindchat.values import Citation, Passage, VerdictWord

_NOTE = re.compile(r"\s*\([^()]*\)\s*$")
"""The note by which an encyclopedia tells titles apart: "Metropolis (1927 film)"."""
_STEM = 5
"""Letters by which a question without names is compared: "deadline" and "deadlines" are the same."""


def about(question: str, read: Sequence[Passage], words: Language) -> frozenset[str]:
    """Ids of the passages that have a name of the question, or whose title stands in one of these."""
    names = asked_names(question, words)
    found = {p.id for p in read if (_names(names, p) if names else _shares(question, p, words))}
    while True:
        texts = [p.text for p in read if p.id in found]
        linked = {
            p.id for p in read if p.id not in found and (_led(p, found) or any(_links(text, p.title) for text in texts))
        }
        if not linked:
            return frozenset(found)
        found |= linked


def carrying(question: str, read: Sequence[Passage], words: Language) -> frozenset[str]:
    """Ids of the passages that may be cited: about the question, or named in it by a link. All of them if the question
    has no name.
    """
    if not asked_names(question, words):
        return frozenset(passage.id for passage in read)
    linked = {p.id for p in read if p.found is not None and p.found.by == "link" and p.found.source is None}
    return about(question, read, words) | linked


def _names(names: Sequence[str], passage: Passage) -> bool:
    whole = f"{passage.title}\n{passage.text}"
    held = folded_words(whole)
    return any(locate(name, whole) is not None or _all(name, held) for name in names)


def _all(name: str, held: frozenset[str]) -> bool:
    """Whether each long word of a name stands there: "Lang, Fritz"."""
    parts = [part for part in folded_words(name) if len(part) > 2]
    return bool(parts) and held.issuperset(parts)


def _shares(question: str, passage: Passage, words: Language) -> bool:
    """Without names: half of the question's content words or more stand in the passage."""
    asked = {word[:_STEM] for word in folded_words(question) if words.content(word)}
    held = {word[:_STEM] for word in folded_words(f"{passage.title}\n{passage.text}")}
    return bool(asked) and 2 * len(asked & held) >= len(asked)


def _led(passage: Passage, found: Set[str]) -> bool:
    """Whether the search came to a passage by a name that stands in one of the others."""
    return passage.found is not None and passage.found.by == "link" and passage.found.source in found


def _links(text: str, title: str) -> bool:
    name = _NOTE.sub("", title).strip()
    return len(name) > 2 and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def verdict(
    question: str, citations: Sequence[Citation], read: Sequence[Passage], words: Language, *, abstained: bool = False
) -> tuple[VerdictWord, str]:
    """The word and one line that explains it."""
    if abstained:
        return "unresolved", "the model found no answer in what it read"
    if not citations:
        return "doubtful", "the answer stands in no passage that was read"
    carrying = about(question, read, words)
    best = next((citation for citation in citations if citation.passage in carrying), None)
    if best is None:
        return "doubtful", "no cited passage names what was asked"
    title = next((passage.title for passage in read if passage.id == best.passage), "") or best.document
    return "sourced", f"[{best.n}] is from “{clean_line(title, 60)}”, a passage about what was asked"
