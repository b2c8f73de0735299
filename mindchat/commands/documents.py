"""Commands about documents: index, sync, sources, remove.

Owns: these and /index search. Does not own: reading, indexing, searching (corpus), which collection is in force
(library).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mindchat.commands.reply import Command, Reply, split
from mindchat.corpus.search.looking import look
from mindchat.corpus.search.queries import parse_line
from mindchat.errors import UsageError
from mindchat.session import Session
from mindchat.text.clean import clean_line
from mindchat.text.language import language
from mindchat.trace import page_words

LISTED = 1000
"""Failures named singly; a damaged corpus file may have one a line."""


def _paths(args: str) -> list[Path]:
    """A quoted line is split like a shell's; an unquoted one that exists as it stands is one path with blanks."""
    whole = Path(args.strip()).expanduser()
    if args.strip() and whole.exists():
        return [whole]
    return [Path(word).expanduser() for word in split(args)]


def follow(events: Iterator[Any]) -> Iterator[Reply]:
    """Progress lines, then the summary of an ingestion."""
    report = None
    for event in events:
        name = type(event).__name__
        if name == "IngestProgress" and event.total:
            left = f", {event.eta_seconds:.0f} s left" if event.eta_seconds is not None else ""
            yield Reply(f"{event.phase}: {100 * event.done / event.total:.0f} %{left}")
        report = getattr(event, "report", report)
    if report is not None:
        yield Reply(summary(report), ok=not report.failed)


def summary(report: Any) -> str:
    """Counts, types, and a reason for everything that is not in."""
    parts = [
        (len(report.added), "added"),
        (len(report.updated), "updated"),
        (len(report.moved), "moved"),
        (len(report.removed), "removed"),
    ]
    parts += [(report.unchanged, "unchanged"), (len(report.failed), "failed"), (len(report.skipped), "skipped")]
    lines = [
        f"{', '.join(f'{n} {what}' for n, what in parts if n) or 'nothing to do'} · {report.passages:,} passages"
        " searchable"
    ]
    if report.types:
        lines.append(
            "by type: "
            + ", ".join(f"{suffix or 'no suffix'} {count}" for suffix, count in sorted(report.types.items()))
        )
    lines += [
        f"missing: {clean_line(root)}; its documents are kept, /remove PATH forgets them"
        for root in report.missing_roots
    ]
    lines += [f"failed: {clean_line(path)}: {clean_line(reason)}" for path, reason in report.failed[:LISTED]]
    if len(report.failed) > LISTED:
        lines.append(f"… and {len(report.failed) - LISTED:,} more failures; mindchat index sync --json lists all")
    lines += [
        f"skipped {count}: {clean_line(reason)}"
        for reason, count in Counter(reason for _, reason in report.skipped).most_common()
    ]
    return "\n".join(lines)


def index(session: Session, args: str) -> Iterator[Reply]:
    """Add files and folders; with nothing named, the state of the index. The verbs of `mindchat index` are understood
    too.
    """
    verb, _, rest = args.strip().partition(" ")
    if verb in AS_IN_A_SHELL and not Path(verb).exists():
        yield from AS_IN_A_SHELL[verb](session, rest)
        return
    if not args.strip():
        state = session.rooms.library.status()
        held = f"{state['documents']:,} documents, {state['passages']:,} passages"
        yield Reply(f"{held} in the {state['collection']} collection. /index PATH adds more.{_vectors(session, state)}")
        return
    yield from follow(session.rooms.library.add(_paths(args)))


def _vectors(session: Session, state: Mapping[str, Any]) -> str:
    """How many passages can be found by their meaning, where somebody asked for that."""
    if state.get("encoding"):
        return f"\nVectors are being made: {state['encoding']}. /index encode pause stops it."
    held, asked = state.get("vectors", 0), session.config.retrieve.dense == "on"
    if not (held or asked):
        return ""
    rest = " /index encode makes the rest." if held < state["passages"] else ""
    return f"\n{held:,} passages have a vector.{rest}"


def encode(session: Session, args: str) -> Iterator[Reply]:
    """Make vectors in a process of its own, while the conversation goes on; /index tells how far it is."""
    library, wish = session.rooms.library, args.strip()
    if wish == "pause":
        stopped = library.pause_encoding()
        said = "It stops after its block; what is finished is kept." if stopped else "No process is encoding."
        yield Reply(said, ok=stopped)
        return
    if wish:
        raise UsageError(
            f"/index encode {clean_line(wish, 40)}: what is that?", "/index encode, or /index encode pause"
        )
    values = {key: getattr(getattr(session.config, key.partition(".")[0]), key.partition(".")[2]) for key in _HANDED_ON}
    arguments = [part for key, value in values.items() if value for part in ("--set", f"{key}={value}")]
    library.encode_behind(arguments)
    yield Reply("Vectors are being made beside the conversation. /index tells how far; /index encode pause stops it.")


_HANDED_ON = ("index.collection", "index.encoder", "index.milvus", "index.milvus_token_env", "paths.models")
"""Settings of the conversation that another process needs to make the same vectors."""


def search(session: Session, args: str) -> Iterator[Reply]:
    """Find passages; no model is asked. The same words as in a question: "phrases", type:, path:, before:, after:, --in
    PATH, -k N.
    """
    line = parse_line(args)
    if not line.sought.text.strip():
        raise UsageError("There is no word to search for.", "/index search WORDS")
    looked = look(
        session.rooms.library,
        session.rooms.registry,
        line.sought,
        line.k or session.config.retrieve.k,
        language(session.config.engine.language),
    )
    rows = [clean_line(note, 400) for note in looked.notes]
    for passage, also in zip(looked.hits, looked.also, strict=True):
        where = clean_line(passage.document, 100) + page_words(passage.page)
        rows += [f"{passage.rank}. {clean_line(passage.name or passage.document, 80)} · {where}"]
        rows += [f"   also in {clean_line(uri, 100)}" for uri in also]
        rows += [f"   {clean_line(passage.text, 200)}"]
    yield Reply("\n".join(rows), ok=bool(looked.hits))


def sync(session: Session, args: str) -> Iterator[Reply]:
    """Look again at everything that was indexed."""
    yield from follow(session.rooms.library.sync())


def sources(session: Session, args: str) -> Iterator[Reply]:
    """The documents, or those whose name or title holds the words."""
    collection = session.rooms.library.status()["collection"]
    wanted = args.strip().casefold()
    rows = [
        row for row in session.rooms.registry.documents(collection) if wanted in f"{row.uri} {row.title}".casefold()
    ]
    lines = [f"{clean_line(row.title, 50)} · {row.passages} passages · {clean_line(row.uri, 100)}" for row in rows[:50]]
    more = f"\n… and {len(rows) - 50:,} more; /sources WORDS narrows the list" if len(rows) > 50 else ""
    yield Reply(("\n".join(lines) or "No such document.") + more, ok=bool(rows))


def remove(session: Session, args: str) -> Iterator[Reply]:
    """Forget what stands at or under a path; the files stay."""
    paths = _paths(args)
    if len(paths) != 1:
        raise UsageError("Which path?", "/remove PATH; the files themselves stay.")
    yield from follow(session.rooms.library.remove(paths[0]))


AS_IN_A_SHELL: dict[str, Callable[[Session, str], Iterator[Reply]]] = {
    "add": index,
    "search": search,
    "encode": encode,
    "status": index,
    "sync": sync,
    "remove": remove,
}
"""`/index VERB …` as it is typed in a shell; a file or folder of that name comes first."""

COMMANDS = (
    Command(
        "index",
        "/index [PATH… | search WORDS]",
        "add files and folders to the documents, or find passages in them",
        index,
    ),
    Command("sync", "/sync", "look for changed, moved and deleted files", sync),
    Command("sources", "/sources [WORDS]", "list the indexed documents", sources),
    Command("remove", "/remove PATH", "take documents out of the index; the files stay", remove),
)
