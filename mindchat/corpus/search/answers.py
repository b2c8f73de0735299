"""Between engines, rankers and readers: an engine's scores as a ranker takes them, and a ranking as passages with their
reasons.

Owns: both translations; which hits are told as links. Does not own: scores (engines), rankings (rankers).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from mindchat.corpus.search.graph import Graph
from mindchat.corpus.search.impact_matrix import Strings, best
from mindchat.corpus.search.names import surface
from mindchat.corpus.search.rankers import Hit
from mindchat.corpus.search.twins import content_key
from mindchat.values import Found, Passage

SPARE = 16
"""Hits asked of a ranker beyond k, for those whose passage has left the registry since."""


class Scored:
    """rankers.Words over the scores of all passages."""

    def __init__(
        self,
        scores: NDArray[np.floating],
        ids: Strings | Sequence[str],
        mask: NDArray[np.bool_] | None = None,
        likeness: Callable[[], NDArray[np.float32] | None] = lambda: None,
    ) -> None:
        """`scores`, `ids`, `mask`: (passages,); only passages of the mask are answered. `likeness`: to the question, of
        the same passages; asked only by rankers that want it.
        """
        self._scores, self._ids, self._mask, self._likeness = scores, ids, mask, likeness

    def best(self, n: int) -> list[tuple[int, float]]:
        """See rankers.Words."""
        return best(self._scores, self._ids, n, self._mask)

    def of(self, row: int) -> float:
        """See rankers.Words."""
        return float(self._scores[row])

    def allowed(self, row: int) -> bool:
        """See rankers.Words."""
        return self._mask is None or bool(self._mask[row])

    def nearest(self, n: int) -> list[tuple[int, float]]:
        """See rankers.Words."""
        likeness = self._likeness()
        return best(likeness, self._ids, n, self._mask) if likeness is not None else []


class Listed:
    """rankers.Words over the best hits of an engine that does not tell the scores of the others."""

    def __init__(
        self, hits: Mapping[int, float], allowed: Callable[[int], bool], near: Sequence[tuple[int, float]] = ()
    ) -> None:
        """`hits`: row → score, best first; `near`: (row, cosine), nearest first."""
        self._hits, self._allowed, self._near = hits, allowed, near

    def best(self, n: int) -> list[tuple[int, float]]:
        """See rankers.Words."""
        return list(self._hits.items())[:n]

    def of(self, row: int) -> float:
        """See rankers.Words."""
        return self._hits.get(row, 0.0)

    def allowed(self, row: int) -> bool:
        """See rankers.Words."""
        return row in self._hits or self._allowed(row)

    def nearest(self, n: int) -> list[tuple[int, float]]:
        """See rankers.Words."""
        return list(self._near[:n])


class Reasoned(Struct, frozen=True):
    """A hit with ids instead of rows."""

    id: str
    score: float
    words: float
    """The part of its words."""
    name: str = ""
    """Key of the name that leads to it; "" if none does."""
    source: str | None = None
    """Id of the passage that has the name; None: the question has it, or there is none."""
    meaning: float = 0.0
    """The part of its meaning."""


def reasoned(hits: Sequence[Hit], ids: Strings | Sequence[str], graph: Graph | None) -> list[Reasoned]:
    """Hits with the ids of their rows and the keys of their names."""

    def id_of(row: int) -> str:
        id_ = ids[row]
        return id_ if isinstance(id_, str) else id_.decode("utf-8", "surrogatepass")

    return [
        Reasoned(
            id_of(hit.row),
            hit.score,
            hit.words,
            graph.key(hit.name) if graph is not None and hit.name >= 0 else "",
            id_of(hit.source) if hit.source >= 0 else None,
            hit.meaning,
        )
        for hit in hits
    ]


def answered(
    hits: Sequence[Reasoned], question: str, k: int, passage: Callable[[str], Passage | None]
) -> list[Passage]:
    """The first k hits that are still there, ranked, each text under one title once, with the reason for each.

    A hit that words alone would have brought is told as found by words, whatever names it too; one that words and
    meaning would have brought, as found by its meaning.
    """
    by_words = _cut([hit.words for hit in hits], k)
    by_both = _cut([hit.words + hit.meaning for hit in hits], k)
    found: list[Passage] = []
    seen: set[bytes] = set()
    for hit in hits:
        here = passage(hit.id)
        if here is None:  # removed since the index was built: it must not answer any more
            continue
        words = content_key(here)
        if words in seen:
            continue
        seen.add(words)
        own = hit.words + hit.meaning
        if hit.words > 0 and hit.words >= by_words:
            reason = Found()
        elif hit.name and (own <= 0 or own < by_both):
            reason = _link(hit, question, passage)
        else:
            reason = Found("dense") if hit.meaning > 0 else Found()
        found.append(replace(here, score=hit.score, rank=len(found) + 1, found=reason))
        if len(found) == k:
            break
    return found


def _cut(parts: Sequence[float], k: int) -> float:
    """The k-th best; what reaches it would be among the first k by this alone."""
    return sorted(parts, reverse=True)[:k][-1] if parts else 0.0


def _link(hit: Reasoned, question: str, passage: Callable[[str], Passage | None]) -> Found:
    source = passage(hit.source) if hit.source is not None else None
    return Found("link", surface(hit.name, source.text if source is not None else question), hit.source)
