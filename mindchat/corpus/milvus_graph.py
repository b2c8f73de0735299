"""The name graph beside a Milvus collection: the server holds the words, this machine the names.

Owns: its folders, ranking the server's hits with it. Does not own: which folder is in force (milvus.json says so, and
changes in one step).
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

from mindchat.config import RetrieveSection
from mindchat.corpus.roots import is_under
from mindchat.corpus.search import names
from mindchat.corpus.search.analyze import Analyzer
from mindchat.corpus.search.answers import Listed, Reasoned, reasoned
from mindchat.corpus.search.graph import Graph, same
from mindchat.corpus.search.rankers import chosen, make_ranker
from mindchat.corpus.search.weave import woven
from mindchat.document_ports import Registry


class KeptGraph:
    """The graph of one collection; rows are in order of passage id, so that an id is found without a table."""

    def __init__(self, root: Path, registry: Registry, collection: str, retrieve: RetrieveSection) -> None:
        self._root, self._registry, self._collection, self._retrieve = root, registry, collection, retrieve
        self._open: tuple[str, Graph] | None = None

    def load(self, name: str) -> Graph | None:
        """The graph of that folder; None if there is none, it is damaged, or another version made it."""
        if self._open is None or self._open[0] != name:
            if not name.startswith(_prefix()):
                return None
            try:
                self._open = name, Graph.load(self._root / name)
            except (OSError, ValueError):
                return None
        return self._open[1]

    def make(self, language: str, before: str) -> str:
        """A graph of the registry's passages in a new folder, from the one before where that holds; its name."""
        graph = woven(self._registry, self._collection, Analyzer(language), self.load(before), self._order())
        name = f"{_prefix()}{secrets.token_hex(8)}"
        graph.save(self._root / name)
        return name

    def _order(self) -> list[str]:
        return sorted({passage.id for passage in self._registry.passages(self._collection)}, key=_encoded)

    def keep_only(self, name: str) -> None:
        """Remove the other graphs' folders, finished or not."""
        for folder in self._root.glob("graph-*"):
            if folder.name != name:
                shutil.rmtree(folder, ignore_errors=True)

    def rank(
        self,
        hits: Sequence[tuple[str, float]],
        near: Sequence[tuple[str, float]],
        question: str,
        k: int,
        name: str,
        roots: Sequence[str],
    ) -> list[Reasoned]:
        """At most k passages; by the server's scores alone if links are off, or the graph does not know all hits.

        `near`: (id, cosine), nearest first; [] without vectors.
        """
        best: dict[str, float] = {}
        for id_, score in sorted(hits, key=lambda hit: (-hit[1], hit[0])):
            best.setdefault(id_, score)
        graph = self.load(name) if self._retrieve.links == "on" else None
        ids = list({**best, **dict(near)})
        rows = [graph.ids.find(_encoded(id_)) for id_ in ids] if graph is not None else []
        known = graph if -1 not in rows else None
        row_of = dict(zip(ids, rows if known is not None else range(len(ids)), strict=True))
        words = Listed(
            {row_of[id_]: score for id_, score in best.items()},
            lambda row: known is None or self._inside(known, row, roots),
            [(row_of[id_], cosine) for id_, cosine in near],
        )
        ranker = make_ranker(chosen(self._retrieve), known, self._retrieve)
        return reasoned(ranker.rank(words, question, k), known.ids if known is not None else ids, known)

    def differs(self, language: str, name: str) -> bool:
        """Whether the graph of that folder is not the one that the registry's texts give; a missing one is no
        difference, since the next update makes it.
        """
        stored = self.load(name)
        if stored is None:
            return False
        return not same(stored, woven(self._registry, self._collection, Analyzer(language), None, self._order()))

    def _inside(self, graph: Graph, row: int, roots: Sequence[str]) -> bool:
        """Whether a passage that the server did not bring stands under the paths."""
        if not roots:
            return True
        passage = self._registry.passage(graph.ids[row].decode("utf-8", "surrogatepass"))
        return passage is not None and any(is_under(passage.document, root) for root in roots)


def _prefix() -> str:
    return f"graph-{names.VERSION}-"


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
