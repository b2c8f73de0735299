"""`mindchat eval chains`: what memory does over chains of questions.

Owns: its flags and where its report goes. Does not own: the chains (evals.chains), asking and judging
(evals.chain_run), the tables (evals.chain_report).
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any

import typer

from mindchat.cli import options
from mindchat.cli.command_runner import cancelling
from mindchat.cli.load_settings import Setup, load
from mindchat.cli.output import Narrator, duration, write, write_json
from mindchat.errors import Interrupted, MindChatError, UsageError
from mindchat.lab.commands import shared
from mindchat.ports import Cancel
from mindchat.text.clean import clean_line


class GateError(MindChatError):
    """Something happened that must never happen."""

    code = "gate"


def chains(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATASET.jsonl...", exists=True, dir_okay=False, help="Questions with gold triples or steps."
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", file_okay=False, help="Folder for records and the report.")
    ],
    model: options.ModelName = None,
    policy: options.Policy = None,
    memory: Annotated[
        str, typer.Option("--memory", metavar="on|off[,…]", help="Memory modes; each is an arm.")
    ] = "on,off",
    regime: Annotated[
        str,
        typer.Option(
            "--regime",
            help="What memory outlives: turn, chain or set.",
            autocompletion=options.choices("turn", "chain", "set"),
        ),
    ] = "chain",
    n: Annotated[int, typer.Option("--n", min=1, help="Chains of 3 to 5 turns.")] = 12,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the chains and of every arm.")] = 0,
    calibration: Annotated[
        Path | None,
        typer.Option(
            "--calibration",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="A fit by calibrate memory, for its model.",
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="SECONDS", help="Give up a turn after this long; it counts as wrong."),
    ] = None,
    shard: Annotated[str, typer.Option("--shard", metavar="I/N", help="Only every N-th chain, from the I-th.")] = "1/1",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what the folder holds.")] = False,
    json: options.Json = False,
    sets: options.Sets = None,
) -> None:
    """Ask chains of questions that share facts, with memory and without: searches, seconds, answers, what was stored
    and served.

    In some chains a document is edited, a fact is forgotten or a secret is planted; serving or storing what must not be
    ends with an error.
    """
    from mindchat.lab import workbench
    from mindchat.lab.evals import chain_report, chain_run
    from mindchat.lab.evals.arms import expand
    from mindchat.lab.evals.chains import build
    from mindchat.lab.evals.datasets import load as read

    setup = load(sets or (), {"model.name": model, "engine.policy": policy})
    options.one_of("regime", ("turn", "chain", "set"), regime)
    arms = expand(
        setup.config, {"memory.mode": [mode.strip() for mode in memory.split(",") if mode.strip()]}, seed=seed
    )
    for arm in arms:
        options.check_names(Setup(arm.config, setup.paths, setup.loaded))
    made = build([item for file in files for item in read(file)], n, seed=seed)
    if len(made) < n:
        raise UsageError(f"These files give only {len(made)} chains.", "Lower --n or add files.")
    narrator, cancel = Narrator(), Cancel()
    bench = workbench.open_chains(setup.paths, calibration)
    with cancelling(cancel):
        events = chain_run.evaluate_chains(
            bench.make,
            made,
            arms,
            out=out,
            keeper=bench,
            regime=regime,  # type: ignore[arg-type]  # checked above
            notes=_notes(setup, files, seed, calibration),
            resume=resume,
            shard=shared.shard(shard),
            timeout=timeout,
            cancel=cancel,
        )
        try:
            for event in events:
                _tell(event, narrator)
        except Interrupted as error:
            raise Interrupted("The run was interrupted.", "Every finished chain is kept; --resume goes on.") from error
    narrator.clear()
    found = chain_report.write(out)
    if json:
        write_json(found)
    else:
        write(chain_report.markdown(found).rstrip("\n"))
    if broken := [name.replace("_", " ") for name, count in found.gates.items() if count]:
        raise GateError(f"Not zero: {', '.join(broken)}.", f"{clean_line(str(out))}/chains*.jsonl names the turns.")


def _notes(setup: Setup, files: list[Path], seed: int, calibration: Path | None) -> dict[str, Any]:
    """What else the results depend on, for chains.json."""
    return {
        "seed": seed,
        "files": {file.name: _sha(file) for file in files},
        "models": shared.models(setup),
        "calibration": _sha(calibration) if calibration is not None else "",
    }


def _sha(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _tell(event: Any, narrator: Narrator) -> None:
    what = f"{clean_line(event.arm, 60)} · {clean_line(event.chain, 40)}"
    if type(event).__name__ == "ChainAsked":
        narrator.progress(f"chain {event.done + 1} of {event.total}: {what}")
    else:
        narrator.note(f"{event.done} of {event.total} chains · {what}: {duration(event.seconds)}")
