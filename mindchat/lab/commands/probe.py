"""`mindchat probe`: how a model reads, by CoRe's own experiments.

Owns: its flags, progress, where the folder goes. Does not own: the experiments (probes room), loading the model
(wiring).
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from mindchat.cli import options
from mindchat.cli.app import command_app
from mindchat.cli.command_runner import cancelling
from mindchat.cli.load_settings import Setup, load
from mindchat.cli.output import Narrator, duration, write, write_json
from mindchat.errors import Interrupted, UsageError
from mindchat.ports import Cancel
from mindchat.text.clean import clean_line

app = command_app()
NAMES = ("lists", "order", "noise", "position")


@app.command(
    epilog=(
        "lists: numbers told in pairs · order: all orders of the documents · noise: more documents beside · position:"
        " supports moved."
    )
)
def probe(
    name: Annotated[
        str,
        typer.Argument(
            metavar="lists|order|noise|position", help="Which experiment.", autocompletion=options.choices(*NAMES)
        ),
    ],
    model: options.ModelName = None,
    n: Annotated[int | None, typer.Option("--n", help="Tasks for each number of lists, or questions.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of everything drawn.")] = 0,
    repeat: Annotated[
        str | None, typer.Option("--repeat", metavar="N[,…]", help="Repetitions to measure, for example 0,1,2,3.")
    ] = None,
    role: Annotated[
        str,
        typer.Option("--role", help="Who repeats: user or assistant.", autocompletion=options.choices(*options.ROLES)),
    ] = "user",
    lists: Annotated[
        str | None, typer.Option("--lists", metavar="N[,…]", help="Numbers of lists (probe lists).")
    ] = None,
    documents: Annotated[
        int, typer.Option("--documents", min=2, max=5, help="Documents in a context (probe order).")
    ] = 5,
    questions: Annotated[
        Path | None,
        typer.Option(
            "--questions",
            metavar="FILE.jsonl",
            exists=True,
            dir_okay=False,
            help="Questions with marked supporting passages; default: the demo.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", file_okay=False, help="Folder for measurements and reports.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what the folder holds.")] = False,
    sets: options.Sets = None,
    json: options.Json = False,
) -> None:
    """Measure how a model reads: whether the order of documents matters to it, and whether repeating them helps."""
    from mindchat import wiring
    from mindchat.lab.probes import report, running

    setup = load(sets or (), {"model.name": model})
    options.one_of("role", options.ROLES, role)
    experiment = report.find(name)
    chosen = msgspec.structs.replace(
        experiment.defaults,
        n=_positive("--n", n, experiment.defaults.n),
        seed=seed,
        role=role,
        repeats=_numbers("--repeat", repeat, experiment.defaults.repeats, 0, 10),
        lists=_numbers("--lists", lists, experiment.defaults.lists, 1, 100),
        documents=documents,
        questions=questions,
    )
    if resume and out is None:
        raise UsageError("--resume needs --out.", "Name the folder that holds the measurements.")
    folder = out or _new_folder(setup, name)
    narrator, cancel = Narrator(), Cancel()
    with cancelling(cancel):
        loaded = wiring.load_model(setup.config, lambda news: narrator.progress(f"{news.phase} …"))
        try:
            for event in running.run(
                experiment,
                chosen,
                loaded,
                _about(experiment, chosen, loaded.id),
                out=folder,
                resume=resume,
                cancel=cancel,
            ):
                _tell(event, narrator)
        except Interrupted as error:
            raise Interrupted(
                "The probe was interrupted.", f"Every measurement is kept: --out {folder} --resume goes on."
            ) from error
    narrator.clear()
    found = report.write(folder)
    if json:
        write_json(found)
    else:
        write(report.markdown(found).rstrip("\n"))
        narrator.note(f"{folder / 'report.svg'}")


def _positive(flag: str, value: int | None, default: int) -> int:
    if value is not None and value < 1:
        raise UsageError(f"{flag} is {value}; it must be at least 1.", "Leave it out for the default.")
    return default if value is None else value


def _numbers(flag: str, text: str | None, default: tuple[int, ...], low: int, high: int) -> tuple[int, ...]:
    """Whole numbers separated by commas, ascending, each once."""
    if text is None:
        return default
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and low <= int(part) <= high for part in parts):
        raise UsageError(
            f"{flag} {clean_line(text, 40)} is not a list of numbers from {low} to {high}.",
            f"For example {flag} {low},{low + 1}.",
        )
    return tuple(sorted({int(part) for part in parts}, reverse=flag == "--lists"))


def _new_folder(setup: Setup, name: str) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return setup.paths.data / "probes" / f"{name}-{stamp}"


def _about(experiment: Any, chosen: Any, model: str) -> Any:
    """The description for run.json; no path of this machine stands in it."""
    from mindchat.lab.evals.planning import machine, versions
    from mindchat.lab.probes.cases import Run

    file = chosen.questions
    data = {"file": file.name, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()} if file is not None else {}
    settings = {key: getattr(chosen, key) for key in ("n", "seed", "repeats", "role", *experiment.uses)}
    return Run(
        experiment.name, model, settings, data, versions(), machine(), datetime.now(UTC).isoformat(timespec="seconds")
    )


def _tell(event: Any, narrator: Narrator) -> None:
    kind = type(event).__name__
    if kind == "Planned":
        narrator.note(f"{event.cases} cases, {event.total} measurements, {event.done} of them there already")
    elif kind == "Measured":
        if event.failure:
            narrator.warn(f"{clean_line(event.case)} {event.cell}: left out, {clean_line(event.failure)}")
        narrator.progress(f"{event.done} of {event.total} · {event.seconds:.1f} s · {duration(event.eta_seconds)} left")
    elif kind == "Finished":
        narrator.note(f"{event.total} measurements, {event.failures} left out")
