"""`mindchat bench pairs`: the fast arithmetic beside full precision over questions whose answers are known.

Owns: its flags, loading both models, the peak of memory in a process of its own each. Does not own: asking and
comparing (evals.pairs).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from mindchat import child_process
from mindchat.cli import options
from mindchat.cli.command_runner import cancelling
from mindchat.cli.load_settings import Setup, load
from mindchat.cli.output import Narrator, meter, write, write_json
from mindchat.errors import Interrupted, ResourceError
from mindchat.ports import Cancel

BASE = "fp32"
_PEAK = """
import sys
import msgspec
from mindchat import wiring
from mindchat.cli.load_settings import load
from mindchat.values import Prompt, Signal
prompt = msgspec.json.decode(sys.stdin.buffer.read(), type=Prompt)
model = wiring.load_model(load(sys.argv[1:]).config, lambda news: None)
for _ in model.stream(prompt, want=frozenset({Signal.ENTROPY}), max_tokens=24):
    pass
from mindchat.lab.bench.memory import peak_resident_mb
sys.stdout.write(f"{peak_resident_mb()}")
sys.stdout.flush()
import os
os._exit(0)  # unloading torch takes seconds
"""


def pairs(
    questions: Annotated[
        Path,
        typer.Argument(
            metavar="DATASET.jsonl", exists=True, dir_okay=False, help="Questions with their gold passages."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="FILE.jsonl", dir_okay=False, help="Where every pair is kept; the same file goes on."
        ),
    ],
    model: options.ModelName = None,
    n: Annotated[int, typer.Option("-n", min=1, help="The first so many questions.")] = 40,
    arithmetic: Annotated[
        str, typer.Option("--arithmetic", help="What is held against fp32: auto, fp16, int8 or bf16.")
    ] = "auto",
    peak: Annotated[
        bool, typer.Option("--peak/--no-peak", help="Measure peak memory, with one more start of each.")
    ] = True,
    json: options.Json = False,
    sets: options.Sets = None,
) -> None:
    """Short answers in fp32 and in the fast arithmetic, question by question in turn: identity, F1, entropies, speed,
    memory.
    """
    import itertools

    from mindchat import wiring
    from mindchat.lab import bench
    from mindchat.lab.evals import datasets, pairs
    from mindchat.prompts import COMPOSERS

    options.one_of("arithmetic", ("auto", "fp16", "int8", "bf16"), arithmetic)
    items = list(itertools.islice(datasets.load(questions), n))
    setups = {
        name: load([*(sets or []), f"model.arithmetic={name}"], {"model.name": model}) for name in (BASE, arithmetic)
    }
    options.check_names(setups[BASE])
    narrator, cancel, started = Narrator(), Cancel(), time.monotonic()
    models = {name: _loaded(setup, narrator) for name, setup in setups.items()}
    about = {
        "model": models[BASE].id,
        "computes": {name: _computes(each) for name, each in models.items()},
        "versions": bench.versions(),
    }
    config = setups[BASE].config
    composer = wiring.plug(COMPOSERS, config.layout.role, "role")(config)
    found = []
    with cancelling(cancel):
        try:
            for pair in pairs.compare(models, items, composer, out, about=about, cancel=cancel):
                found.append(pair)
                narrator.progress(meter(len(found), len(items), started, " questions"))
        except Interrupted as error:
            raise Interrupted(
                "The run was interrupted.", "Every finished pair is kept; the same command goes on."
            ) from error
    longest = max((pairs.prompt_for(item, composer) for item in items), key=models[BASE].count)
    models.clear()
    report = {**about, **pairs.summarise(found, BASE, arithmetic)}
    if peak:
        report["peak_resident_mb"] = {name: _peak(setup, longest, narrator) for name, setup in setups.items()}
    narrator.clear()
    show(report, json)


def _loaded(setup: Setup, narrator: Narrator) -> Any:
    from mindchat import wiring
    from mindchat.cli.narrate import TurnNarrator

    return wiring.load_model(setup.config, TurnNarrator(narrator).tell)


def _computes(model: Any) -> Mapping[str, Any]:
    """What was chosen for steps and for prefill."""
    return {"steps": model.backbone.arithmetic, "prefill": model.backbone.prefill or "full"}


def _peak(setup: Setup, prompt: Any, narrator: Narrator) -> int:
    """MB of a new process that loads the model and answers this prompt."""
    import msgspec

    section = setup.config.model
    narrator.progress(f"memory: {section.arithmetic}")
    chosen = [
        f"model.name={section.name}",
        f"model.arithmetic={section.arithmetic}",
        f"model.threads={section.threads}",
    ]
    return _measured(["-c", _PEAK, *chosen], msgspec.json.encode(prompt))


def _measured(arguments: Sequence[str], prompt: bytes) -> int:
    done = child_process.run(arguments, input=prompt, capture_output=True)
    if done.returncode:
        raise ResourceError(f"The measurement of memory ended with {done.returncode}.", "Leave it out with --no-peak.")
    return int(done.stdout)


def show(found: Any, json: bool) -> None:
    """A report: one line of JSON, or indented for people."""
    import msgspec

    if json:
        write_json(msgspec.to_builtins(found))
    else:
        write(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
