"""`mindchat trace`: a recorded turn, replayed.

Owns: reading a file of events and telling it. Does not own: their interpretation (mindchat.trace) or the sentences
(narrate.py).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mindchat.cli import options
from mindchat.cli.app import command_app
from mindchat.cli.ask import write_answer
from mindchat.cli.narrate import TurnNarrator
from mindchat.cli.output import Narrator, write, write_json
from mindchat.errors import UsageError
from mindchat.events import Event, TurnStarted, from_json
from mindchat.trace import Trace, fold, report

app = command_app()


@app.command()
def trace(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE.jsonl",
            exists=True,
            dir_okay=False,
            allow_dash=True,
            help="What ask --events printed; - for standard input.",
        ),
    ],
    json: options.Json = False,
) -> None:
    """Replay a recorded turn: every judgement, query, passage and model call in order."""
    state = Trace()
    teller = TurnNarrator(Narrator(stream=sys.stdout), detailed=True)
    for event in read_events(file):
        state = fold(state, event)
        if not json:
            if isinstance(event, TurnStarted):
                write(
                    f"question: {event.question}\nmodel {event.model}, policy {event.policy}, filter {event.filter},"
                    f" seed {event.seed}"
                )
            teller.tell(event)
    if json:
        write_json(report(state))
    elif state.answer is not None:
        write(f"stop: {state.stop}\n")
        write_answer(state)
    elif state.failed is not None:
        write(f"failed: {state.failed.message} {state.failed.hint}")
    else:
        write("cancelled" if state.state == "cancelled" else "the record ends before the turn does")


def read_events(file: Path) -> Iterator[Event]:
    """The events of a file of JSON lines; raises UsageError naming the first line that is none."""
    lines = sys.stdin.buffer if str(file) == "-" else file.open("rb")
    with lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                yield from_json(line)
            except (msgspec.ValidationError, msgspec.DecodeError) as error:
                raise UsageError(
                    f"{file}:{number} is not an event: {error}.",
                    "mindchat ask --events prints files that can be replayed.",
                ) from error
