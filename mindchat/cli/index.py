"""`mindchat index`: documents in, refreshed, searched, out.

Owns: its verbs, progress and output. Does not own: reading and searching (corpus room), which collection is in force
(wiring).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from mindchat.cli import options
from mindchat.cli.app import sub_app
from mindchat.cli.command_runner import Reported, cancelling
from mindchat.cli.confirm import confirm
from mindchat.cli.load_settings import load
from mindchat.cli.narrate import tell_notices
from mindchat.cli.output import Narrator, duration, megabytes, write, write_json, write_table
from mindchat.errors import Interrupted, UsageError
from mindchat.ports import Cancel
from mindchat.text.clean import clean_line
from mindchat.text.language import language
from mindchat.trace import found_report, found_words, page_words
from mindchat.values import Passage, foreign_id

app = sub_app("Add, refresh, search and remove documents.")

SHOWN = 20
"""Skipped files listed singly for people; --json lists all. Failures are always listed."""


@contextmanager
def _library(sets: Sequence[str] = ()) -> Iterator[Any]:
    """The documents; what was repaired or found damaged is said at the end."""
    from mindchat import wiring

    setup = load(sets)
    with _told(wiring.open_library(setup.config, setup.paths)) as library:
        yield library


@contextmanager
def _told(library: Any) -> Iterator[Any]:
    try:
        yield library
    finally:
        tell_notices(library)
        library.close()


@app.command()
def add(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files and folders.")],
    json: options.Json = False,
    sets: options.Sets = None,
) -> None:
    """Index files and folders; what did not change is not read again."""
    missing = [path for path in paths if not path.exists()]
    if missing:
        raise UsageError(f"There is no {clean_line(str(missing[0]))}.", "Check the path.")
    with _library(sets or []) as library:
        _work(lambda cancel: library.add(paths, cancel), json)


@app.command()
def sync(
    prune: Annotated[bool, typer.Option("--prune", help="Also forget folders that are gone as a whole.")] = False,
    yes: options.Yes = False,
    json: options.Json = False,
    sets: options.Sets = None,
) -> None:
    """Look again at everything that was indexed: added, changed, moved and deleted files.

    A folder that is gone as a whole (a disk that is not mounted) keeps its documents until --prune.
    """
    with _library(sets or []) as library:
        gone = library.status()["missing_roots"] if prune else []
        if gone:
            confirm(f"Forget all documents of {', '.join(clean_line(root) for root in gone)}?", yes)
        _work(lambda cancel: library.sync(cancel, prune=prune), json)


@app.command()
def remove(
    path: Annotated[Path, typer.Argument(help="A file or folder; the files themselves stay.")],
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Forget the documents at or under a path, and what was learned from them alone."""
    with _library() as library:
        confirm(f"Forget the documents at or under {clean_line(str(path))}?", yes)
        _work(lambda cancel: library.remove(path), json)


@app.command()
def rebuild(json: options.Json = False, sets: options.Sets = None) -> None:
    """Build the index anew from the stored documents; no file is read."""
    with _library(sets or []) as library:
        _work(lambda cancel: library.rebuild(cancel), json)


@app.command()
def encode(
    behind: Annotated[
        bool, typer.Option("--background", help="Return at once; a process of low priority does it.")
    ] = False,
    pause: Annotated[bool, typer.Option("--pause", help="Stop the process that is encoding.")] = False,
    json: options.Json = False,
    sets: options.Sets = None,
) -> None:
    """Make vectors, by which passages are found by their meaning (retrieve.dense = on); about 40 ms a passage and core.

    Ctrl+C pauses: what is finished is kept and used, and the same command goes on from there. `index status` tells how
    far it is.
    """
    given = sets or []
    with _library(given) as library:
        if pause:
            stopped = library.pause_encoding()
            write_json({"paused": stopped}) if json else write("It stops." if stopped else "No process is encoding.")
            return
        if behind:
            pid = library.encode_behind([argument for one in given for argument in ("--set", one)])
            write_json({"pid": pid}) if json else write(f"Process {pid} encodes. mindchat index status tells how far.")
            return
        narrator, cancel = Narrator(), Cancel()
        last: Any = None
        with cancelling(cancel):
            for last in library.encode(cancel):
                _tell(last, narrator)
        narrator.clear()
        if type(last).__name__ != "Encoded":
            return
        if json:
            write_json(msgspec.to_builtins(last))
        else:
            paused = " · paused; the same command goes on" if last.paused else ""
            made = f"{last.made:,} made in {duration(last.seconds)}"
            write(f"{last.vectors:,} of {last.passages:,} passages have a vector · {made}{paused}")
        if last.paused and cancel.cancelled:
            raise Reported(Interrupted.exit_code)


def _work(begin: Callable[[Cancel], Iterator[Any]], json: bool) -> None:
    """Run to the end with progress, print the report. Ctrl+C stops within seconds; what was stored stays."""
    narrator, cancel = Narrator(), Cancel()
    report = None
    with cancelling(cancel):
        try:
            for event in begin(cancel):
                report = event if type(event).__name__ == "Update" else getattr(event, "report", report)
                _tell(event, narrator)
        except Interrupted as error:
            narrator.clear()
            raise Interrupted(
                "Stopped.",
                "What was stored stays, the index is as it was before; mindchat index sync goes on from there.",
            ) from error
    narrator.clear()
    if report is None:
        return
    if type(report).__name__ == "Update":
        _write_update(report, json)
    elif json:
        write_json(report.to_json())
    else:
        _write_report(report)


def _write_update(update: Any, json: bool) -> None:
    """What a rebuild did."""
    if json:
        write_json({"passages": update.passages, "generation": update.generation, "timing": {"total": update.seconds}})
    else:
        write(f"{update.passages:,} passages searchable · {duration(update.seconds)}")


def _tell(event: Any, narrator: Narrator) -> None:
    name = type(event).__name__
    if name == "FileFailed":
        narrator.warn(f"failed: {clean_line(event.path)}: {clean_line(event.reason)}")
    elif name == "RootMissing":
        kept = f"its {event.documents:,} documents are kept; mindchat index sync --prune forgets them"
        narrator.warn(f"missing: {clean_line(event.path)} is not there or empty; {kept}")
    elif name == "tuple":
        narrator.progress(f"encoder: {megabytes(event[0])} of {megabytes(event[1])}" if event[1] else "encoder")
    elif name == "Encoding":
        left = f" · {duration(event.eta_seconds)} left" if event.eta_seconds is not None else ""
        narrator.progress(f"vectors: {event.done:,} of {event.total:,} passages{left}")
    elif name == "Progress":
        narrator.progress(f"{event.phase}: {event.done:,} of {event.total:,} passages")
    elif name == "IngestProgress":
        share = f"{100 * event.done / event.total:.0f} % · " if event.total else ""
        rate = f"{megabytes(int(event.rate))}/s" if event.phase == "read" else f"{event.rate:,.0f} passages/s"
        left = f" · {duration(event.eta_seconds)} left" if event.eta_seconds is not None else ""
        narrator.progress(f"{event.phase}: {share}{rate}{left}")


def _write_report(report: Any) -> None:
    counts = [
        f"{len(report.added)} added",
        f"{len(report.updated)} updated",
        f"{len(report.removed)} removed",
        f"{report.unchanged} unchanged",
    ]
    counts += [f"{len(report.moved)} moved"] * bool(report.moved)
    counts += [f"{len(report.failed)} failed"] * bool(report.failed) + [f"{len(report.skipped)} skipped"] * bool(
        report.skipped
    )
    write(f"{', '.join(counts)} · {report.passages:,} passages searchable · {duration(report.seconds)}")
    if report.types:
        write(
            "  by type: "
            + ", ".join(f"{suffix or 'no suffix'} {count}" for suffix, count in sorted(report.types.items()))
        )
    for reason, count in Counter(reason for _, reason in report.skipped).most_common():
        write(f"  skipped {count}: {reason}")
    for path, reason in report.skipped[:SHOWN]:
        write(f"    {clean_line(path)}: {clean_line(reason)}")
    if len(report.skipped) > SHOWN:
        write(f"    … and {len(report.skipped) - SHOWN} more (--json lists all)")


@app.command()
def status(json: options.Json = False) -> None:
    """What is indexed, and in which state the index is."""
    with _library() as library:
        found = library.status()
    if json:
        write_json(found)
    else:
        write_table([(name.replace("_", " "), _cell(value)) for name, value in found.items()])


def _cell(value: object) -> str:
    if isinstance(value, list | tuple):
        return "; ".join(str(item) for item in value) or "none"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


@app.command()
def search(
    query: Annotated[
        list[str],
        typer.Argument(help="Words, 'several words in quotes', type:pdf, path:notes, before:2025-01-01, after:2024."),
    ],
    inside: Annotated[
        list[Path] | None, typer.Option("--in", metavar="PATH", help="Search only documents under this path.")
    ] = None,
    k: Annotated[int | None, typer.Option("-k", min=1, help="Passages, best first.")] = None,
    why: Annotated[
        bool, typer.Option("--why", help="Also say by which words or names each passage was found.")
    ] = False,
    json: options.Json = False,
    sets: options.Sets = None,
) -> None:
    """Find passages; no model is needed."""
    from mindchat import wiring
    from mindchat.corpus.search.looking import look
    from mindchat.corpus.search.queries import join_arguments, parse

    setup = load(sets or [], {"retrieve.k": k})
    text = join_arguments(query).strip()
    sought = parse(text, [str(path) for path in inside or ()])
    if not sought.text.strip():
        raise UsageError("There is no word to search for.", "mindchat index search WORDS…")
    with _told(wiring.open_library(setup.config, setup.paths)) as library:
        began = time.perf_counter()
        looked = look(library, library, sought, setup.config.retrieve.k, language(setup.config.engine.language))
        seconds = time.perf_counter() - began
        if json:
            hits = [_hit(passage, also) for passage, also in zip(looked.hits, looked.also, strict=True)]
            absent = [{"name": item.name, "near": list(item.near)} for item in looked.absent]
            write_json({"query": text, "timing": {"search": seconds}, "hits": hits, "absent": absent})
            return
        for note in looked.notes:
            Narrator().warn(clean_line(note, 400))
        for passage, also in zip(looked.hits, looked.also, strict=True):
            where = f"{clean_line(passage.document)} [{passage.start}–{passage.end}]{page_words(passage.page)}"
            write(f"{passage.rank}. {clean_line(passage.name or passage.document)}  ({passage.score:.2f})  {where}")
            for uri in also:
                write(f"   also in {clean_line(uri)}")
            write(f"   {clean_line(passage.text, 300)}")
            if why:
                write(f"   why: {_path(passage, looked.hits, library.passage)}")
            elif reason := found_words(passage, looked.hits):
                write(f"   {reason}")


_BEGINS = {"words": "by its words: ", "dense": "by its meaning: "}


def _path(passage: Passage, hits: Sequence[Passage], find: Callable[[str], Passage | None]) -> str:
    """From what the search began with to the passage, name by name."""
    steps, here, known = list[str](), passage, {hit.id: hit for hit in hits}
    for _ in range(len(hits)):
        found = here.found
        if found is None or found.by != "link":
            break
        steps.append(f"→ “{clean_line(found.name, 80)}” → {_place(here, hits)}")
        source = found.source and (known.get(found.source) or find(found.source))
        if not source:
            return " ".join(["the question", *reversed(steps)])
        here = source
    start = _BEGINS.get(here.found.by, "") if here.found is not None else ""
    return " ".join([f"{start}{_place(here, hits)}", *reversed(steps)])


def _place(passage: Passage, hits: Sequence[Passage]) -> str:
    number = next((f"[{hit.rank}] " for hit in hits if hit.id == passage.id), "")
    return number + clean_line(passage.name or passage.document, 80)


def _hit(passage: Passage, also: Sequence[str]) -> dict[str, Any]:
    """One passage, as `index search --json` prints it."""
    fields = ("rank", "score", "document", "title", "start", "end", "text", "page", "heading")
    plain = msgspec.to_builtins(passage)
    return (
        {"rank": passage.rank, "score": passage.score, "document": passage.document, "passage": foreign_id(passage)}
        | {name: plain[name] for name in fields}
        | {"paths": [passage.document, *also], "found": found_report(passage)}
    )


@app.command()
def verify(json: options.Json = False) -> None:
    """Compare the index with the stored documents; exit code 1 if they differ."""
    with _library() as library:
        problems = list(library.verify())
    if json:
        write_json({"problems": problems})
    for problem in problems if not json else ():
        write(problem)
    if problems:
        raise Reported(1)
    if not json:
        write("The index holds exactly the stored documents.")
