"""`mindchat ask`: one question, one answer.

Owns: its flags, and what reaches standard output: the answer for people, one object (--json) or a line per event
(--events).
Does not own: the turn (Session), narration (narrate.py), exit codes (command_runner.py).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from mindchat.cli import options
from mindchat.cli.app import command_app
from mindchat.cli.command_runner import Reported, cancelling, write_failure
from mindchat.cli.load_settings import Setup, for_people, load
from mindchat.cli.narrate import TurnNarrator
from mindchat.cli.output import Narrator, is_terminal, json_line, write, write_json
from mindchat.cli.question import read_question
from mindchat.cli.session_thread import Desk
from mindchat.errors import DeadlineError, Interrupted, MindChatError, UsageError
from mindchat.events import LAST, Event, TurnCancelled, TurnFailed, to_json
from mindchat.pace import LONG, said_of
from mindchat.ports import Cancel
from mindchat.session import Session, partial_text
from mindchat.text.clean import clean_line
from mindchat.trace import Trace, fold, page_words, report

app = command_app()


@app.command()
def ask(
    question: Annotated[
        str | None, typer.Argument(help="The question; - reads it from standard input; piped text precedes it.")
    ] = None,
    json: options.Json = False,
    events: Annotated[
        bool, typer.Option("--events", help="Print every event as a line of JSON, as it happens.")
    ] = False,
    model: options.ModelName = None,
    k: Annotated[int | None, typer.Option("-k", help="Passages per search.")] = None,
    policy: options.Policy = None,
    filter_: options.Filter = None,
    repeat: options.Repeat = None,
    role: options.Role = None,
    as_: options.As = None,
    cot: Annotated[bool | None, typer.Option("--cot", help="Ask the model to think in steps after the copies.")] = None,
    inside: Annotated[
        list[Path] | None, typer.Option("--in", metavar="PATH", help="Search only documents under this path.")
    ] = None,
    no_memory: Annotated[bool, typer.Option("--no-memory", help="Neither use nor learn facts.")] = False,
    anyway: Annotated[
        bool, typer.Option("--answer-anyway", help="Ask the model also where your documents do not seem to say.")
    ] = False,
    session: options.SessionId = None,
    continue_: options.Continue = False,
    incognito: options.Incognito = False,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of everything random.")] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", help="Give up after this long (exit code 4).")
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No narration on standard error.")] = False,
    sets: options.Sets = None,
) -> None:
    """Answer one question and leave."""
    if json and events:
        raise UsageError("--json and --events exclude each other.", "Choose one; --events carries everything.")
    if timeout is not None and timeout <= 0:
        raise UsageError("--timeout must be more than 0 seconds.", "Leave it out for no limit.")
    flags = {
        "model.name": model,
        "retrieve.k": k,
        "engine.policy": policy,
        "engine.filter": filter_,
        "layout.repeat": repeat,
        "layout.role": role,
        "layout.as": as_,
        "layout.cot": cot,
        "engine.seed": seed,
        "answer.refuse": "off" if anyway else None,
    }
    cancel = Cancel(timeout)
    setup = load(sets or [], flags)
    if is_terminal(sys.stdout) and not (json or events):
        setup = for_people(setup)
    options.check_names(setup)
    narrator = Narrator(quiet=quiet)
    text = read_question(question, narrator)
    wanted = choose_session(setup, session, continue_, incognito)
    desk = Desk(lambda: open_session(setup, wanted, incognito, not no_memory, inside or []))
    foreseen: list[str] = []

    def begin(s: Session) -> Iterator[Event]:
        expected, copies = s.forecast()
        if expected is not None and expected.seconds > LONG:
            foreseen.append(said_of(expected, copies))
        return s.ask(text, cancel=cancel)

    with cancelling(cancel):
        trace = follow(desk.run(begin, cancel), cancel, narrator, every_event=events, foreseen=foreseen)
    desk.close()
    finish(trace, cancel, json=json, events=events)


def choose_session(setup: Setup, session: str | None, newest: bool, incognito: bool) -> str | None:
    """The full id of the conversation to continue; None begins one. Raises UsageError, NotFoundError."""
    if session and newest:
        raise UsageError("--session and --continue exclude each other.", "Choose one.")
    if incognito and (session or newest):
        raise UsageError(
            "An incognito question cannot continue a conversation.",
            "Leave out --incognito, or --session and --continue.",
        )
    if not session and not newest:
        return None
    from mindchat import wiring

    chats = wiring.open_chats(setup.paths)
    try:
        if session:
            return chats.resolve(session)
        found = chats.latest(wiring.project_name()) or chats.latest()
    finally:
        chats.close()
    if found is None:
        raise UsageError("There is no conversation to continue yet.", "Leave out --continue.")
    return found


def open_session(setup: Setup, session: str | None, incognito: bool, memory: bool, inside: list[Path]) -> Session:
    """A session as wiring builds it; called on the desk's thread."""
    from mindchat import wiring

    return wiring.open_session(
        setup.config, setup.paths, session=session, incognito=incognito, memory=memory, within=inside
    )


def follow(
    news: Iterator[Event],
    cancel: Cancel,
    narrator: Narrator,
    *,
    every_event: bool = False,
    foreseen: Sequence[str] = (),
) -> Trace:
    """Narrate (and, if wanted, print) a turn to its end; a turn that could not even say how it ended gets its last
    event here.

    `foreseen`: what is said when the turn starts; read only then.
    """
    teller, trace = TurnNarrator(narrator, foreseen=foreseen), Trace()
    try:
        for event in _ended(news, cancel):
            trace = fold(trace, event)
            teller.tell(event)
            if every_event:
                _write_event(event)
    except BrokenPipeError:
        cancel.set()
        raise
    narrator.clear()
    return trace


def _ended(news: Iterator[Event], cancel: Cancel) -> Iterator[Event]:
    trace = Trace()
    try:
        for event in news:
            trace = fold(trace, event)
            yield event
            if isinstance(event, LAST):
                return
    except Interrupted:
        yield TurnCancelled(partial_text(trace), trace.phase)
    except DeadlineError as error:
        yield TurnFailed(error.code, error.message, error.hint, error.exit_code, partial_text(trace))


def _write_event(event: Event) -> None:
    sys.stdout.write(json_line(to_json(event)) + "\n")
    sys.stdout.flush()


def failure_of(trace: Trace, cancel: Cancel) -> MindChatError | None:
    """Why the turn has no answer, with its exit code; None if it has one."""
    if trace.failed is not None:
        failure = MindChatError(trace.failed.message, trace.failed.hint)
        failure.code, failure.exit_code = trace.failed.code, trace.failed.exit_code
        return failure
    if trace.state == "cancelled":
        return Interrupted(
            "Interrupted before the answer.", "What was written so far is kept; mindchat ask -c goes on from there."
        )
    return None


def finish(trace: Trace, cancel: Cancel, *, json: bool, events: bool) -> None:
    """Write what the consumer waits for; raises Reported if the turn failed."""
    failure = failure_of(trace, cancel)
    if failure is None:
        if json:
            write_json(report(trace))
        elif not events:
            write_answer(trace)
        return
    if json:
        body = report(trace)
        write_failure(failure, ["--json"], body.get("partial", body))
    elif not events:
        write_failure(failure, [])
    raise Reported(failure.exit_code)


def write_answer(trace: Trace) -> None:
    """The answer, and under it where each citation stands."""
    answer = trace.answer
    assert answer is not None
    write(answer.text)
    if answer.citations:
        write()
    for citation in answer.citations:
        source = trace.source(citation)
        page = page_words(source.page) if source is not None else ""
        where = f"{clean_line(citation.document)} [{citation.start}–{citation.end}]{page}"
        write(f"[{citation.n}] {where}  “{clean_line(citation.quote, 100)}”")
