"""What ingestion and the library need of an index, whichever engine serves it.

Owns: the protocol beyond ports.Retriever: keeping up with the registry, status, the writer's lock. Does not own: the
engines (index: files on this machine; milvus: a server), or which of them is in force (library).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mindchat.document_ports import Registry
from mindchat.ports import NEVER, Cancel
from mindchat.values import Passage, Query

if TYPE_CHECKING:
    from mindchat.corpus.index import IndexStatus, Progress, Update
    from mindchat.corpus.search.generations import Store


class SearchIndex(Protocol):
    """One collection of the registry, searchable."""

    collection: str
    store: Store
    """The folder on this machine: the lock, the PENDING mark, the roots."""

    @property
    def registry(self) -> Registry:
        """The documents that it follows."""
        ...

    @property
    def vectors(self) -> Path:
        """See corpus.encoding.TakesVectors."""
        ...

    def take_vectors(self, encoder: str) -> tuple[int, int]:
        """See corpus.encoding.TakesVectors."""
        ...

    @property
    def pending(self) -> bool:
        """Whether an earlier update did not finish; the next one resumes it."""
        ...

    def generation(self) -> str | None:
        """Name of what is searched now; it changes with every update that built something. Cheap."""
        ...

    def search(self, query: Query, k: int, *, within: Sequence[str] = ()) -> list[Passage]:
        """At most k distinct passages, best first, rank from 1, only from documents under one of the paths `within` if
        given.

        Of a values.Sought every filter and phrase holds (search.narrow).

        Raises IndexMissingError, ResourceError.
        """
        ...

    def lock(self) -> AbstractContextManager[None]:
        """Be the only writer of this collection; raises IndexLockedError after index.lock_seconds. Re-entrant within a
        thread.
        """
        ...

    def updates(self, *, full: bool = False, cancel: Cancel = NEVER) -> Iterator[Progress | Update]:
        """Bring the index to the registry's state, `full` from nothing; the last item is the Update. The caller holds
        lock().
        """
        ...

    def status(self) -> IndexStatus:
        """The state, without opening the index for searching."""
        ...

    def verify(self) -> list[str]:
        """Every difference from the registry, one sentence each; [] if all is well."""
        ...

    def forget(self) -> None:
        """Remove everything of this collection's index; the registry keeps its documents."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...
