"""Commands that explain the newest turn: why, trace, status.

Owns: these. Does not own: the trace (trace.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mindchat.commands.reply import Command, Reply
from mindchat.errors import UsageError
from mindchat.events import to_json
from mindchat.session import Session
from mindchat.text.clean import clean_line
from mindchat.trace import HopView, Trace, counts, verdict_words


def newest(session: Session) -> Trace:
    """The newest turn; raises UsageError before the first one."""
    if not session.turns:
        raise UsageError("There is no turn to explain yet.", "Ask a question first.")
    return session.turns[-1]


def _hop(hop: HopView) -> list[str]:
    lines = [f"hop {hop.n}  {clean_line(hop.subquery, 100)}  (by {hop.by})"]
    if hop.trigger is not None:
        lines.append(f"   because {clean_line(hop.trigger.reason, 120)}")
    lines += [
        f"   {'kept' if s.kept else 'dropped'} {clean_line(s.entity.text, 60)}: {clean_line(s.why, 80)}"
        for s in hop.sifted
    ]
    if hop.facts:
        lines.append(
            f"   memory: {', '.join(fact.id for fact in hop.facts)}" + (" → search skipped" if hop.skipped else "")
        )
    lines += [
        f"   read {clean_line(passage.name or passage.document, 60)} ({passage.score:.1f})" for passage in hop.passages
    ]
    if hop.repeated:
        lines.append("   the same question as before: nothing new to read")
    return lines


def why(session: Session, args: str) -> Iterator[Reply]:
    """Hop by hop: what was unsure, asked, kept, read; then verdict and stop."""
    trace = newest(session)
    lines = [line for hop in trace.hops for line in _hop(hop)] or ["no hop: nothing was looked up"]
    if trace.answer is not None:
        said, reason = verdict_words(trace.answer), clean_line(trace.answer.why, 160)
        lines.append(f"answer  {clean_line(trace.answer.short, 80)}: {said}; {reason}; stop: {trace.stop}")
    yield Reply("\n".join(lines))


def trace(session: Session, args: str) -> Iterator[Reply]:
    """The event log of the newest turn, counted or written to a file."""
    newest(session)
    if not args.strip():
        told = counts(session.turns[-1])
        calls = ", ".join(f"{kind} {n}" for kind, n in told.pop("model_calls").items())
        lines = [f"{name.replace('_', ' ')}: {value}" for name, value in told.items()]
        yield Reply("\n".join([*lines, f"model calls: {calls}", "/trace FILE writes it"]))
        return
    path = Path(args.strip()).expanduser()
    if path.exists():
        raise UsageError(f"{path} exists.", "Give another name; nothing is overwritten.")
    try:
        path.write_text("".join(to_json(event) + "\n" for event in session.events), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.", "/trace FILE.jsonl") from error
    yield Reply(f"{len(session.events)} events in {path.resolve()}; mindchat trace shows them again")


def status(session: Session, args: str) -> Iterator[Reply]:
    """Model, documents, memory, settings in force."""
    config, state = session.config, session.rooms.library.status()
    engine, layout = config.engine, config.layout
    loaded = "loaded" if session.model is not None else "not loaded yet"
    yield Reply(
        "\n".join(
            [
                f"model    {config.model.name} ({loaded}, {config.model.arithmetic})",
                (
                    f"documents  {state['documents']:,} ({state['collection']}), {state['passages']:,} passages, served"
                    f" by {state['served_by']}"
                ),
                (
                    f"memory   {'off' if session.rooms.memory is None else config.memory.mode} · project"
                    f" {session.rooms.project}"
                ),
                (
                    f"policy   {engine.policy} · filter {engine.filter} · repeat {layout.repeat} ({layout.role},"
                    f" {layout.as_}) · k {config.retrieve.k}"
                ),
                f"session  {session.id or 'new'}" + (" · incognito" if session.incognito else ""),
            ]
        )
    )


COMMANDS = (
    Command("why", "/why", "why the newest answer is what it is, hop by hop", why),
    Command("trace", "/trace [FILE]", "counts of the newest turn, or its events in a file", trace),
    Command("status", "/status", "model, documents, memory and settings in force", status),
)
