"""Memory in RAM, for evaluation: the same code and the same gate on a database that dies with the object.

Owns: accepting passages that no registry knows, following their changes, looking for a text in what is stored. Does not
own: anything else; it is FactMemory on a store without a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindchat.config import MemorySection
from mindchat.document_ports import Registry
from mindchat.memory.facts import FactMemory
from mindchat.memory.learning.confidence import Calibration
from mindchat.memory.learning.grounding import Grounded
from mindchat.storage.document_registry import DocumentRegistry
from mindchat.storage.migrations import MEMORY, open_store
from mindchat.values import Chunk, Document, Passage, Query, Recalled

_DOCUMENTS = frozenset({"document", "sqlite_sequence"})
"""Tables that hold the user's own documents, whatever stands in them."""


class VolatileMemory(FactMemory):
    """ports.Memory for one chain of questions; learned passages are kept in RAM so that they can stand in for a search."""

    def __init__(
        self,
        section: MemorySection,
        *,
        project: str = "evaluation",
        session: str = "chain",
        model: str = "",
        calibration: Calibration | None = None,
    ) -> None:
        super().__init__(open_store(None, MEMORY), section, project=project, session=session, model=model)
        self.calibration = calibration
        self.registry: Registry = DocumentRegistry(self.store)
        self._read: dict[str, Passage] = {}
        """Stored passages by the uri of the document that each is."""

    def sync(self, passages: Sequence[Passage]) -> None:
        """What the corpus says now: a stored passage with another text is a changed document, and what it no longer
        says is withdrawn.
        """
        for passage in passages:
            old = self._read.get(_uri(passage))
            if old is not None and (old.text, old.title) != (passage.text, passage.title):
                self._keep(passage)

    def _keep(self, passage: Passage) -> None:
        self._read[_uri(passage)] = passage
        document = Document(_uri(passage), passage.title, passage.text, "evaluation", passage.id)
        self.registry.put([(document, [Chunk(0, len(passage.text))])])

    def place(self, grounded: Grounded) -> Any:
        """The passage's chunk; the passage is stored first if it is new, as a document of its own."""
        self._keep(grounded.passage)
        sql = (
            "SELECT c.*, d.generation FROM chunk c JOIN document d ON d.id=c.document_id WHERE d.uri=? AND"
            " c.status='active'"
        )
        return self.store.row(sql, (_uri(grounded.passage),))

    def store_offset(self, grounded: Grounded) -> int:
        """Where the passage begins in its stored document."""
        return 0

    def recall(self, query: Query) -> Recalled:
        """As FactMemory.recall; the passages are those that were read, with their own documents and offsets."""
        recalled = super().recall(query)
        skip = tuple(self._read.get(passage.document, passage) for passage in recalled.skip)
        return Recalled(recalled.facts, skip, recalled.why)

    def holds(self, text: str) -> bool:
        """Whether a text stands anywhere in what memory wrote: facts, names, quotes, the audit trail. The documents'
        own texts do not count.
        """
        tables = [
            row[0]
            for row in self.store.rows(
                "SELECT name FROM sqlite_master WHERE type='table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
            )
        ]
        for table in tables:
            if table not in _DOCUMENTS:
                rows = self.store.rows(f'SELECT * FROM "{table}"')
                if any(text.casefold() in _shown(value).casefold() for row in rows for value in tuple(row)):
                    return True
        return False


def _uri(passage: Passage) -> str:
    return f"{passage.document}#{passage.id}"


def _shown(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
