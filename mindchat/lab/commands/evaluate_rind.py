"""`mindchat eval rind`: does RIND know a wrong sentence?

Owns: its flags and where its report goes. Does not own: what is asked and judged (evals.one_hop), the areas
(evals.detect).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mindchat.cli import options
from mindchat.cli.command_runner import cancelling
from mindchat.cli.load_settings import load
from mindchat.cli.output import Narrator, write, write_json
from mindchat.errors import Interrupted
from mindchat.lab.commands import shared
from mindchat.ports import Cancel
from mindchat.storage.atomic import write_atomic


def rind(
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
    context: Annotated[
        str,
        typer.Option(
            "--context",
            metavar="C[,…]",
            help="What may be read first: none, oracle (the gold passage), retrieved (one search).",
        ),
    ] = "none,oracle",
    open_: Annotated[
        Path | None, typer.Option("--open", metavar="CORPUS.jsonl", help="Where --context retrieved searches.")
    ] = None,
    n: Annotated[int, typer.Option("--n", min=1, help="Single hops; one sentence for each and every context.")] = 60,
    seed: Annotated[int, typer.Option("--seed", help="Seed of sampling.")] = 0,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", help="Give up a sentence after this long.")
    ] = None,
    shard: Annotated[str, typer.Option("--shard", metavar="I/N", help="Only every N-th hop, from the I-th.")] = "1/1",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what the folder holds.")] = False,
    json: options.Json = False,
    sets: options.Sets = None,
) -> None:
    """Ask for one sentence per gold fact and measure which signal tells the wrong sentences from the right ones
    (AUROC).
    """
    from mindchat.lab import workbench
    from mindchat.lab.evals import detect, one_hop, planning
    from mindchat.lab.evals.records import pretty

    setup = load(sets or (), {"model.name": model})
    options.check_names(setup)
    given = _contexts(context)
    plan = planning.plan(files, base=setup.config, axes={}, open_corpus=open_, seed=seed, models=shared.models(setup))
    narrator, cancel = Narrator(), Cancel()
    with cancelling(cancel):
        make = workbench.open_evaluation(setup.config, setup.paths)
        events = one_hop.evaluate(
            plan,
            setup.config,
            make,
            given=given,
            n=n,
            out=out,
            resume=resume,
            shard=shared.shard(shard),
            timeout=timeout,
            cancel=cancel,
        )
        try:
            for event in events:
                shared.tell(event, narrator)
        except Interrupted as error:
            raise Interrupted(
                "The run was interrupted.", "Every finished sentence is kept; --resume goes on."
            ) from error
    narrator.clear()
    found = detect.build([out])
    write_atomic(out / "report.md", detect.markdown(found).encode())
    write_atomic(out / "report.json", pretty(found))
    if json:
        write_json(found)
    else:
        write(detect.markdown(found).rstrip("\n"))


def _contexts(text: str) -> tuple[Any, ...]:
    from mindchat.lab.evals.one_hop import GIVEN

    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names or [""]:
        options.one_of("context", GIVEN, name)
    return tuple(dict.fromkeys(names))
