"""From files to the registry to the index: add, sync, remove.

Owns: what is new, changed, moved, gone or hopeless; batches; progress. Does not own: reading one file (readers,
reading), where documents are kept (registry), how they are searched (index). A crash at any moment leaves the old index
searchable and the PENDING mark; the next add or sync then looks at every part of every file again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mindchat.config import IndexSection
from mindchat.corpus.chunk import Chunker, count_words
from mindchat.corpus.index import Progress, Update
from mindchat.corpus.ingest_report import (
    FileFailed,
    FileGone,
    FileRead,
    FileSkipped,
    IngestDone,
    IngestEvent,
    IngestProgress,
    IngestReport,
    RootMissing,
)
from mindchat.corpus.reading.file_reader import Complaint, Reading
from mindchat.corpus.reading.walk import Found, walk
from mindchat.corpus.roots import is_gone, is_under, load_roots, save_roots
from mindchat.corpus.search.searchable import SearchIndex
from mindchat.document_ports import Registry
from mindchat.errors import DocumentError, UsageError
from mindchat.ports import NEVER, Cancel
from mindchat.text.language import language_or_english
from mindchat.values import Chunk, Document

_BATCH_DOCUMENTS = 500
_BATCH_CHARACTERS = 4_000_000
_REPORT_SECONDS = 0.2
Count = Callable[[str], int]
"""Tokens of a text by the loaded model's tokenizer."""
MAX_LISTED = 1000
"""Complaints about one file that are reported singly; the rest is counted."""


def ingest(
    roots: Sequence[Path],
    registry: Registry,
    index: SearchIndex,
    section: IndexSection,
    *,
    cancel: Cancel = NEVER,
    count: Count | None = None,
) -> Iterator[IngestEvent]:
    """Read files and folders into the registry, then bring the index up to date; documents of files gone from there are
    removed.

    `count`: passages are cut by the tokens of a model (index.chunk_tokens) instead of by words (index.chunk_words).

    Raises UsageError if a root does not exist, IndexLockedError, Interrupted (what was stored stays, the next run
    resumes).
    """
    missing = [str(root) for root in roots if not root.exists()]
    if missing:
        raise UsageError(f"There is no {missing[0]}.", "Give the path of an existing file or folder.")
    with index.lock():
        job = _Job(registry, index, section, cancel, count)
        asked = [str(root.resolve()) for root in roots]
        save_roots(index.store.root, [*load_roots(index.store.root), *asked])
        yield from job.run(asked)


def sync(
    registry: Registry,
    index: SearchIndex,
    section: IndexSection,
    *,
    prune: bool = False,
    cancel: Cancel = NEVER,
    count: Count | None = None,
) -> Iterator[IngestEvent]:
    """Look at all known roots again: added, changed, moved and deleted files.

    A root that is gone as a whole (a disk that is not mounted) is reported and keeps its documents; with `prune` it is
    forgotten.
    """
    with index.lock():
        roots = load_roots(index.store.root)
        job = _Job(registry, index, section, cancel, count)
        if prune:
            missing = job.missing(roots)
            save_roots(index.store.root, [root for root in roots if root not in missing])
        yield from job.run(roots, prune=prune)


def remove(
    path: Path, registry: Registry, index: SearchIndex, section: IndexSection, *, cancel: Cancel = NEVER
) -> Iterator[IngestEvent]:
    """Forget all documents at or under a path, and the path as a root. Raises UsageError if none is known."""
    with index.lock():
        root = str(path.expanduser().resolve())
        job = _Job(registry, index, section, cancel)
        known = [uri for uri in job.known if is_under(uri, root)]
        roots = load_roots(index.store.root)
        if not known and root not in roots:
            raise UsageError(
                f"No indexed document is at or under {root}.", "mindchat index status lists what is indexed."
            )
        save_roots(index.store.root, [other for other in roots if not is_under(other, root)])
        index.store.set_pending(True)
        yield from job.forget(known)
        yield from job.finish()


class _Tally:
    """What became of one file's documents."""

    def __init__(self, before: Sequence[str]) -> None:
        self.before = before
        self.outcomes: Counter[str] = Counter()
        self.seen: set[str] = set()
        self.passages = 0
        self.finished = False

    def outcome(self, vanished: bool) -> str:
        kinds = set(self.outcomes)
        if kinds == {"unchanged"} and not vanished:
            return "unchanged"
        if self.before:
            return "updated"
        return "moved" if kinds == {"moved"} else "added"


class _Known(Struct, frozen=True):
    mtime_ns: int
    size: int


class _Job:
    """One run of add, sync or remove."""

    def __init__(
        self, registry: Registry, index: SearchIndex, section: IndexSection, cancel: Cancel, count: Count | None = None
    ) -> None:
        self.registry, self.index, self.section, self.cancel = registry, index, section, cancel
        abbreviations = language_or_english(section.language).abbreviations
        words, counted = (section.chunk_words, count_words) if count is None else (section.chunk_tokens, count)
        self.chunker = Chunker(words, counted, abbreviations)
        self.resuming = index.pending
        self.known = {row.uri: _Known(row.mtime_ns, row.size) for row in registry.documents(index.collection)}
        self.started = time.monotonic()
        self.paths: dict[str, list[str]] = {"added": [], "updated": [], "moved": [], "unchanged": [], "removed": []}
        self.types: Counter[str] = Counter()
        self.failed: list[tuple[str, str]] = []
        self.skipped: list[tuple[str, str]] = []
        self.absent: list[str] = []
        self.tallies: dict[str, _Tally] = {}
        self.batch: list[tuple[str, Document, Sequence[Chunk]]] = []
        self.weight = 0

    def missing(self, roots: Sequence[str]) -> list[str]:
        """Roots that are gone as a whole although documents of them are known."""
        return [root for root in roots if is_gone(root) and any(is_under(uri, root) for uri in self.known)]

    def run(self, roots: Sequence[str], *, prune: bool = False) -> Iterator[IngestEvent]:
        """Walk, read, forget, and bring the index up to date."""
        found: dict[str, Found] = {}
        closed: list[str] = []
        if not prune:
            self.absent = self.missing(roots)
            yield from [RootMissing(root, sum(is_under(uri, root) for uri in self.known)) for root in self.absent]
        for root in roots:
            for item in walk(
                Path(root),
                self.section.max_file_mb * 1_000_000,
                self.index.store.root.parent,
                follow_links=self.section.follow_links,
            ):
                self.cancel.check()
                if isinstance(item, Found):
                    found[str(item.path)] = item
                elif item.path != root or Path(root).exists():  # a root that has gone is no skipped file
                    self.skipped.append((item.path, item.reason))
                    closed += [item.path] if item.unknown else []
                    yield FileSkipped(item.path, item.reason)
        self.index.store.set_pending(True)
        parts = _parts(self.known, found)
        yield from self.read(
            [item for path, item in found.items() if not self._unchanged(item, parts.get(path, ()))], parts
        )
        stay = {uri for uris in parts.values() for uri in uris}
        kept = [*closed, *self.absent]
        gone = [uri for uri in self.known if uri not in stay and any(is_under(uri, root) for root in roots)]
        yield from self.forget([uri for uri in gone if not any(is_under(uri, folder) for folder in kept)])
        yield from self.finish()

    def _unchanged(self, item: Found, uris: Sequence[str]) -> bool:
        """By time and size, as a cheap stand-in for the hash that the registry compares; never after a crash inside a
        file of many parts.
        """
        stored = [self.known[uri] for uri in uris]
        if not stored or any((row.mtime_ns, row.size) != (item.mtime_ns, item.size) for row in stored):
            return False
        if self.resuming and list(uris) != [str(item.path)]:
            return False
        self.paths["unchanged"].append(str(item.path))
        self.types[item.path.suffix.lower()] += 1
        return True

    # ── reading
    # ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def read(self, items: Sequence[Found], parts: Mapping[str, Sequence[str]]) -> Iterator[IngestEvent]:
        """Read files into the registry, in batches."""
        total, done, last = sum(item.size for item in items), 0, time.monotonic()
        with Reading(self.section, self.cancel) as reading:
            for item in items:
                yield from self._read_one(item, reading, parts.get(str(item.path), ()))
                done += item.size
                if time.monotonic() - last > _REPORT_SECONDS:
                    last = time.monotonic()
                    yield _progress("read", done, total, last - self.started)
        yield from self.flush()

    def _read_one(self, item: Found, reading: Reading, before: Sequence[str]) -> Iterator[IngestEvent]:
        path, complaints = str(item.path), 0
        tally = self.tallies[path] = _Tally(before)
        try:
            for entry in reading.read(item.path):
                self.cancel.check()
                if isinstance(entry, Complaint):
                    complaints += 1
                    if complaints <= MAX_LISTED:
                        yield self._fail(path, entry.reason)
                    continue
                pieces = (
                    entry.chunks
                    if entry.whole and entry.chunks is not None
                    else self.chunker.split(entry.document.text, entry.chunks, self.cancel)
                )
                if not pieces:
                    raise DocumentError("holds no text")
                tally.seen.add(entry.document.uri)
                tally.passages += len(pieces)
                self.batch.append((path, replace(entry.document, collection=self.index.collection), pieces))
                self.weight += len(entry.document.text)
                if len(self.batch) >= _BATCH_DOCUMENTS or self.weight >= _BATCH_CHARACTERS:
                    yield from self.flush()
        except DocumentError as error:
            yield self._fail(path, error.message.removeprefix(f"{item.path.name}: "))
        if complaints > MAX_LISTED:
            yield self._fail(path, f"{complaints - MAX_LISTED:,} more lines like these")
        tally.finished = True
        if tally.seen:
            self.types[item.path.suffix.lower()] += 1
        else:  # what an earlier, readable state gave stays until the file can be read again or is gone
            del self.tallies[path]

    def _fail(self, path: str, reason: str) -> FileFailed:
        self.failed.append((path, reason))
        return FileFailed(path, reason)

    def flush(self) -> Iterator[IngestEvent]:
        """Store the batch in one transaction, and tell of the files that are complete with it."""
        batch = [(document, chunks) for _, document, chunks in self.batch]
        outcomes = self.registry.put(batch, self.cancel) if batch else ()
        for (path, _, _), outcome in zip(self.batch, outcomes, strict=True):
            self.tallies[path].outcomes[outcome] += 1
        self.batch, self.weight = [], 0
        for path in [path for path, tally in self.tallies.items() if tally.finished]:
            tally = self.tallies.pop(path)
            vanished = [uri for uri in tally.before if uri not in tally.seen]
            if vanished:
                self.registry.remove(vanished)
            result = tally.outcome(bool(vanished))
            self.paths[result].append(path)
            yield FileRead(path, result, len(tally.seen), tally.passages)

    # ── removing, finishing
    # ──────────────────────────────────────────────────────────────────────────────────────────────

    def forget(self, uris: Sequence[str]) -> Iterator[IngestEvent]:
        """Remove documents; those that the registry has recognised at a new place are there no more and count as moved."""
        if self.paths["moved"] or self.paths["updated"]:
            left = {row.uri for row in self.registry.documents(self.index.collection)}
            uris = [uri for uri in uris if uri in left]
        self.registry.remove(uris)
        for path, count in Counter(_file_of(uri) for uri in uris).items():
            self.paths["removed"].append(path)
            yield FileGone(path, count)

    def finish(self) -> Iterator[IngestEvent]:
        """Bring the index to the registry's state, and report."""
        passages, started = 0, time.monotonic()
        for step in self.index.updates(cancel=self.cancel):
            if isinstance(step, Progress):
                yield _progress(step.phase, step.done, step.total, time.monotonic() - started)
            elif isinstance(step, Update):
                passages = step.passages
        paths = {kind: tuple(sorted(found)) for kind, found in self.paths.items()}
        report = IngestReport(
            paths["added"], paths["updated"], paths["moved"], paths["removed"], len(paths["unchanged"]),
            tuple(self.failed), tuple(self.skipped), passages, time.monotonic() - self.started, dict(self.types), tuple(self.absent),
        )  # fmt: skip
        yield IngestDone(report)


def _parts(known: Mapping[str, object], found: Mapping[str, Found]) -> dict[str, list[str]]:
    """File → uris of its documents: the path itself, or path#id (a path may hold a # too)."""
    parts: dict[str, list[str]] = {}
    for uri in known:
        prefix = uri
        while prefix not in found and "#" in prefix:
            prefix = prefix.rpartition("#")[0]
        if prefix in found:
            parts.setdefault(prefix, []).append(uri)
    return parts


def _file_of(uri: str) -> str:
    """The file of a document that is gone: whatever stands before the first # after the last folder."""
    folder, slash, name = uri.rpartition("/")
    return folder + slash + name.partition("#")[0]


def _progress(phase: str, done: int, total: int, seconds: float) -> IngestProgress:
    rate = done / seconds if seconds > 0 else 0.0
    return IngestProgress(done, total, rate, (total - done) / rate if rate > 0 else None, phase)
