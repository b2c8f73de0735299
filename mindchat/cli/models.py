"""`mindchat models`: which language models there are, and fetching them.

Owns: its verbs and their output. Does not own: the store and the catalogue (models room).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import typer

from mindchat.cli import options
from mindchat.cli.app import sub_app
from mindchat.cli.command_runner import cancelling
from mindchat.cli.confirm import confirm
from mindchat.cli.load_settings import load
from mindchat.cli.output import Narrator, duration, megabytes, meter, write, write_json, write_table
from mindchat.errors import Interrupted
from mindchat.ports import Cancel
from mindchat.text.clean import clean_line

app = sub_app("List, fetch, explain and remove language models.")

Name = Annotated[
    str, typer.Argument(help="A model's id, hub name, folder or GGUF file.", autocompletion=options.complete_models)
]


def _store() -> Any:
    from mindchat import wiring

    setup = load()
    return wiring.open_store(setup.config, setup.paths), setup.config.model.name


@app.command("list")
def list_(json: options.Json = False) -> None:
    """Every model that is known or here."""
    store, chosen = _store()
    found = store.list()
    if json:
        write_json({"models": [_plain(model) for model in found], "chosen": chosen})
        return
    rows = [
        (_mark(model, chosen), model.id, _size(model), clean_line(model.licence, 32), model.title) for model in found
    ]
    write_table(rows)


def _mark(model: Any, chosen: str) -> str:
    """`*` the one that answers now, `+` here, nothing: not fetched."""
    return "*" if model.id == chosen else "+" if model.installed else " "


def _size(model: Any) -> str:
    return megabytes(model.size_bytes) + " here" if model.installed else megabytes(model.needs_bytes) + " to fetch"


def _plain(model: Any) -> dict[str, Any]:
    return dict(msgspec.to_builtins(model, enc_hook=str))


@app.command()
def info(name: Name, json: options.Json = False) -> None:
    """Where a model's bytes come from, under which licence, and what it needs."""
    store, _ = _store()
    model = store.info(name)
    if json:
        write_json(_plain(model))
        return
    rows = [
        ("id", model.id),
        ("title", model.title),
        ("licence", model.licence),
        ("source", model.source),
        ("provider", model.provider),
        ("SHA-256", model.sha256),
        ("parameters", f"{model.parameters / 1e6:,.0f} million" if model.parameters else ""),
        ("window", f"{model.window:,} tokens" if model.window else ""),
        ("download", megabytes(model.needs_bytes) if model.needs_bytes else ""),
        ("on disk", megabytes(model.size_bytes) if model.size_bytes else ""),
        ("memory", f"{megabytes(model.memory_bytes)} in fp32 with the whole window" if model.memory_bytes else ""),
        ("here", str(model.path) if model.path else "no (mindchat models pull " + model.id + ")"),
        ("notes", model.notes),
    ]
    write_table([row for row in rows if row[1]])


@app.command()
def path(name: Name, json: options.Json = False) -> None:
    """Print the folder of a model that is here."""
    store, _ = _store()
    folder = store.path(name)
    if json:
        write_json({"id": name, "path": str(folder)})
    else:
        write(str(folder))


@app.command()
def pull(name: Name, json: options.Json = False) -> None:
    """Fetch a model, check it and make it ready; an interrupted pull goes on where it stopped."""
    store, _ = _store()
    narrator, cancel = Narrator(), Cancel()
    with cancelling(cancel), contextlib.closing(store.pull(name)) as steps:
        last = _follow(steps, narrator, cancel)
    if json:
        write_json({"id": name, "path": str(last.path), "seconds": last.seconds})
    else:
        write(str(last.path))


def _follow(steps: Iterator[Any], narrator: Narrator, cancel: Cancel) -> Any:
    """Show the progress; the last item. Raises Interrupted between two items."""
    last, phase = None, ""
    began = time.monotonic()
    for last in steps:
        if cancel.cancelled:
            narrator.clear()
            raise Interrupted(
                "The pull was interrupted.", "What was fetched is kept; the same command goes on from there."
            )
        if last.phase != phase:
            phase, began = last.phase, time.monotonic()
            if phase != "done":
                narrator.note(f"{phase} {clean_line(last.note, 80)}".rstrip())
        left = f" · {duration(last.eta_seconds)} left" if last.eta_seconds is not None else ""
        counts = meter(last.done, last.total, began, "B" if phase in ("downloading", "joining") else "").split(" · ")[
            :2
        ]
        narrator.progress(f"{phase} {' · '.join(counts)}{left} {clean_line(last.note, 40)}")
    narrator.clear()
    assert last is not None
    return last


@app.command()
def remove(name: Name, yes: options.Yes = False, json: options.Json = False) -> None:
    """Delete a model and what was fetched of it."""
    store, _ = _store()
    model = store.info(name)
    confirm(f"Delete {model.id} ({megabytes(model.size_bytes)})?", yes)
    freed = store.remove(name)
    if json:
        write_json({"id": model.id, "freed": freed})
    else:
        write(f"removed {model.id}, {megabytes(freed)} freed")
