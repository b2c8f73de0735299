"""The name graph: which passages bear a name, and which names a passage mentions.

Owns: its arrays, its files, looking names up in a question, how much a link to a name counts. Does not own: making it
(weave), following it (links). Layout on disk: numpy arrays and joined byte strings, memory-mapped, so that opening
costs no reading; rows are passages in the order of the engine that it was made for.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from mindchat.corpus.search.impact_matrix import Strings, mapped
from mindchat.corpus.search.names import MAX_WORDS, split

_ARRAYS = ("prints", "found", "bearer_ends", "bearers", "shares", "mention_ends", "mentions", "spread")
_SMALL = 1000
"""A corpus of fewer passages is damped as if it had so many: there, two mentions are no sign of a common word."""


def same(one: Graph, other: Graph) -> bool:
    """Whether both say the same, to the last number."""
    strings = all(list(getattr(one, name)) == list(getattr(other, name)) for name in ("ids", "names"))
    return strings and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in _ARRAYS)


class Graph(Struct, frozen=True):
    """Passages × names, both ways."""

    ids: Strings
    """Passage ids by row."""
    prints: NDArray[np.uint8]
    """(passages, 8): fingerprints of what was read."""
    names: Strings
    """Keys, sorted."""
    found: NDArray[np.bool_]
    """(names,): whether running text may mention it; the others are reached by links only."""
    bearer_ends: NDArray[np.int64]
    """(names + 1,): where each name's part of `bearers` and `shares` starts."""
    bearers: NDArray[np.int32]
    """Rows that are about the name."""
    shares: NDArray[np.float32]
    """How much of a link to the name each bearer gets, (0, 1]."""
    mention_ends: NDArray[np.int64]
    """(passages + 1,): where each passage's part of `mentions` starts."""
    mentions: NDArray[np.int32]
    """Names in order of their first mention."""
    spread: NDArray[np.int32]
    """(names,): how many passages mention it."""

    def of(self, row: int) -> list[int]:
        """Names that a passage mentions."""
        names: list[int] = self.mentions[self.mention_ends[row] : self.mention_ends[row + 1]].tolist()
        return names

    def about(self, name: int) -> list[tuple[int, float]]:
        """(row, share) of the passages that a link to the name leads to."""
        start, end = int(self.bearer_ends[name]), int(self.bearer_ends[name + 1])
        return list(zip(self.bearers[start:end].tolist(), self.shares[start:end].tolist(), strict=True))

    def rarity(self, name: int) -> float:
        """1 for a name that no passage mentions, falling with the logarithm of how many do, 0 for one that all mention.

        Chance mentions grow with a corpus; this damps them.
        """
        return max(0.0, 1.0 - math.log1p(int(self.spread[name])) / math.log1p(max(len(self.ids), _SMALL)))

    def key(self, name: int) -> str:
        """The name as it is compared."""
        return self.names[name].decode("utf-8", "surrogatepass")

    def named(self, question: str) -> list[int]:
        """Names in a question, the longest at each place, each once; in a question without capitals, at any word."""
        raw, low = split(question)
        careless = not any(word[0].isupper() for word in raw)
        found: dict[int, None] = {}
        end = 0
        for start in range(len(low)):
            if start >= end and (careless or not raw[start][0].islower()):
                name, length = self._longest(low[start : start + MAX_WORDS])
                if name >= 0:
                    found[name], end = None, start + length
        return list(found)

    def _longest(self, words: list[str]) -> tuple[int, int]:
        """(name or -1, its number of words) of the longest name that the words begin with."""
        phrase, name, length = b"", -1, 0
        for count, word in enumerate(words, 1):
            phrase += (b" " if phrase else b"") + word.encode("utf-8", "surrogatepass")
            at = self.names.place(phrase)
            here = self.names[at] if at < len(self.names) else b""
            # a space sorts before every letter: names that begin with the phrase come right after it
            if here == phrase and self.found[at]:
                name, length = at, count
            elif here != phrase and not here.startswith(phrase + b" "):
                break
        return name, length

    def save(self, folder: Path) -> None:
        """Write all files into a new folder."""
        folder.mkdir(parents=True, exist_ok=True)
        self.ids.save(folder, "ids")
        self.names.save(folder, "names")
        for name in _ARRAYS:
            np.save(folder / f"row_{name}.npy", getattr(self, name))

    @staticmethod
    def load(folder: Path) -> Graph:
        """Memory-map all files; raises OSError or ValueError if one is missing or no array."""
        arrays = {name: mapped(folder / f"row_{name}.npy") for name in _ARRAYS}
        return Graph(Strings.load(folder, "ids"), names=Strings.load(folder, "names"), **arrays)
