"""News of an ingestion, and its report.

Owns: the events that ingest yields and the JSON of add, sync and remove. Does not own: showing them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field


class FileRead(Struct, frozen=True, tag_field="type"):
    """A file went into the registry, or stands there already unchanged."""

    path: str
    outcome: str
    """added | updated | moved | unchanged."""
    documents: int
    passages: int


class FileSkipped(Struct, frozen=True, tag_field="type"):
    """A file that is not meant to be read."""

    path: str
    reason: str


class FileFailed(Struct, frozen=True, tag_field="type"):
    """A file, or part of one, that should be readable and is not."""

    path: str
    reason: str


class FileGone(Struct, frozen=True, tag_field="type"):
    """A file whose documents were removed."""

    path: str
    documents: int


class RootMissing(Struct, frozen=True, tag_field="type"):
    """A file or folder that was added once and is gone as a whole; its documents are kept."""

    path: str
    documents: int


class IngestProgress(Struct, frozen=True, tag_field="type"):
    """How far the work is."""

    done: int
    total: int
    """Bytes in phase read, passages otherwise."""
    rate: float
    """Done per second."""
    eta_seconds: float | None
    phase: str
    """read | index | commit | matrix."""


class IngestReport(Struct, frozen=True):
    """What add, sync or remove did."""

    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: int = 0
    failed: tuple[tuple[str, str], ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    passages: int = 0
    """Searchable now."""
    seconds: float = 0.0
    types: Mapping[str, int] = field(default_factory=dict)
    """Files read or unchanged, by suffix."""
    missing_roots: tuple[str, ...] = ()
    """Gone as a whole; their documents are kept and still found."""

    def to_json(self) -> dict[str, object]:
        """The object that `index add --json` prints, as do sync and remove."""

        def pairs(items: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
            return [{"path": path, "reason": reason} for path, reason in items]

        return {
            "added": list(self.added),
            "updated": list(self.updated),
            "moved": list(self.moved),
            "removed": list(self.removed),
            "unchanged": self.unchanged,
            "failed": pairs(self.failed),
            "skipped": pairs(self.skipped),
            "passages": self.passages,
            "types": dict(self.types),
            "missing_roots": list(self.missing_roots),
            "timing": {"total": self.seconds},
        }


class IngestDone(Struct, frozen=True, tag_field="type"):
    """The last event."""

    report: IngestReport


IngestEvent = FileRead | FileSkipped | FileFailed | FileGone | RootMissing | IngestProgress | IngestDone
