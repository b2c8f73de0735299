"""Memory in RAM, for evaluation: the same code and the same gate on a database that dies with the object.

Owns: accepting passages that no registry knows. Does not own: anything else; it is FactMemory on a store without a file.
"""

from __future__ import annotations

import hashlib
from typing import Any

from mindchat.config import MemorySection
from mindchat.memory.documents import DocumentRegistry
from mindchat.memory.facts import FactMemory
from mindchat.memory.grounding import Grounded
from mindchat.memory.migrations import MEMORY, open_store
from mindchat.ports import Registry
from mindchat.values import Chunk, Document, Passage, Query, Recalled


class VolatileMemory(FactMemory):
    """ports.Memory for one chain of questions; learned passages are kept in RAM so that they can stand in for a search."""

    def __init__(self, section: MemorySection, *, project: str = "evaluation", session: str = "chain", model: str = "") -> None:
        super().__init__(open_store(None, MEMORY), section, project=project, session=session, model=model)
        self.registry: Registry = DocumentRegistry(self.store)
        self._read: dict[str, Passage] = {}

    def place(self, grounded: Grounded) -> Any:
        """The passage's chunk; the passage is stored first if it is new, as a document of its own."""
        passage = grounded.passage
        digest = hashlib.sha1(passage.text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        uri = f"{passage.document}#{passage.id}#{digest}"
        self._read[passage.id] = passage
        self.registry.put([(Document(uri, passage.title, passage.text, "evaluation", passage.id), [Chunk(0, len(passage.text))])])
        return self.store.row(
            "SELECT c.*, d.generation FROM chunk c JOIN document d ON d.id=c.document_id WHERE d.uri=? AND c.status='active'", (uri,)
        )

    def store_offset(self, grounded: Grounded) -> int:
        """Where the passage begins in its stored document."""
        return 0

    def recall(self, query: Query) -> Recalled:
        """As FactMemory.recall; the passages are those that were read, with their own documents and offsets."""
        recalled = super().recall(query)
        skip = tuple(self._read.get(passage.id, passage) for passage in recalled.skip)
        return Recalled(recalled.facts, skip, recalled.why)
