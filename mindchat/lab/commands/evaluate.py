"""`mindchat eval` and `mindchat eval report`: arms over data sets, and tables from their records.

Owns: the flags that become arms, progress, where reports go. Does not own: running, scoring, tables (evals room),
sessions (wiring).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mindchat.cli import options
from mindchat.cli.app import CONTEXT
from mindchat.cli.command_runner import cancelling
from mindchat.cli.load_settings import Setup, load
from mindchat.cli.output import Narrator, write, write_json
from mindchat.errors import Interrupted, UsageError
from mindchat.lab.commands import evaluate_chains, evaluate_rind, evaluate_study, shared
from mindchat.ports import Cancel
from mindchat.text.clean import clean_line

RUN = "run"


class EvalGroup(TyperGroup):
    """`eval FILE…` means `eval run FILE…`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the verb in front unless one is there."""
        words = args if args[:1] and args[0] in self.commands else [RUN, *args]
        ctx.obj = words[1:]  # as they were typed, for the shards of --ray
        return super().parse_args(ctx, list(words))


app = typer.Typer(
    cls=EvalGroup,
    add_completion=False,
    rich_markup_mode=None,
    context_settings=CONTEXT,
    help="Measure answers over data sets.",
)


@app.command(RUN, epilog="mindchat eval report DIR... merges runs into tables.")
def run(
    typed: typer.Context,
    files: Annotated[
        list[Path], typer.Argument(metavar="DATASET.jsonl...", exists=True, dir_okay=False, help="Question files.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", file_okay=False, help="Folder for records and reports.")],
    model: Annotated[str | None, typer.Option("-m", "--model", metavar="MODEL[,…]", help="Models.")] = None,
    policy: Annotated[str | None, typer.Option("--policy", metavar="P[,…]", help="Policies.")] = None,
    filter_: Annotated[str | None, typer.Option("--filter", metavar="F[,…]", help="Entity filters.")] = None,
    repeat: Annotated[
        str | None, typer.Option("--repeat", metavar="N[,…]", help="Extra copies of the documents.")
    ] = None,
    role: Annotated[str | None, typer.Option("--role", metavar="R[,…]", help="Who repeats the documents.")] = None,
    as_: Annotated[str | None, typer.Option("--as", metavar="A[,…]", help="What is repeated.")] = None,
    memory: Annotated[str | None, typer.Option("--memory", metavar="on|off[,…]", help="Memory modes.")] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=V[,…]", help="Any setting; several values make arms.")
    ] = None,
    context: Annotated[
        str,
        typer.Option(
            "--context",
            help="given, retrieved, none or oracle.",
            autocompletion=options.choices("given", "retrieved", "none"),
        ),
    ] = "retrieved",
    open_: Annotated[
        Path | None,
        typer.Option("--open", metavar="CORPUS.jsonl", help="Search this corpus instead of each question's context."),
    ] = None,
    n: Annotated[int | None, typer.Option("--n", help="Questions sampled from each file; default: all.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of sampling and of every arm.")] = 0,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="SECONDS", help="Give up a question after this long; it counts as wrong."),
    ] = None,
    shard: Annotated[
        str, typer.Option("--shard", metavar="I/N", help="Only every N-th question, from the I-th.")
    ] = "1/1",
    ray: Annotated[
        int | None,
        typer.Option(
            "--ray",
            metavar="N",
            min=1,
            help="Run N shards on a Ray cluster whose machines all see --out and the files.",
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what the folder holds.")] = False,
    json: options.Json = False,
) -> None:
    """Ask every arm the same questions and write a record of each answer. Commas make arms: every combination is one."""
    from mindchat.lab import workbench
    from mindchat.lab.evals import planning, report, runner

    setup, axes = (
        load(),
        _axes(
            model=model,
            policy=policy,
            filter_=filter_,
            repeat=repeat,
            role=role,
            as_=as_,
            memory=memory,
            sets=sets or [],
        ),
    )
    plan = planning.plan(
        files,
        base=setup.config,
        axes=axes,
        context=_context(context),
        open_corpus=open_,
        n=n,
        seed=seed,
        models=shared.models(setup, axes.get("model.name")),
    )
    for arm in plan.arms:
        options.check_names(Setup(arm.config, setup.paths, setup.loaded))
    narrator, cancel = Narrator(), Cancel()
    with cancelling(cancel):
        try:
            if ray is not None:
                shared.on_ray(typed.obj, ray, narrator, cancel)
            else:
                make = workbench.open_evaluation(setup.config, setup.paths)
                events = runner.evaluate(
                    plan, make, out=out, resume=resume, shard=shared.shard(shard), timeout=timeout, cancel=cancel
                )
                for event in events:
                    shared.tell(event, narrator)
        except Interrupted as error:
            raise Interrupted(
                "The run was interrupted.", "Every finished question is kept; --resume goes on."
            ) from error
    narrator.clear()
    report.write([out], out)
    if json:
        write(_text(out / "report.json"))
    else:
        write(str(out / "report.md"))


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8").rstrip("\n")


def _axes(
    *,
    model: str | None,
    policy: str | None,
    filter_: str | None,
    repeat: str | None,
    role: str | None,
    as_: str | None,
    memory: str | None,
    sets: list[str],
) -> dict[str, list[str]]:
    """Dotted setting → its values."""
    given = {
        "model.name": model,
        "engine.policy": policy,
        "engine.filter": filter_,
        "layout.repeat": repeat,
        "layout.role": role,
        "layout.as": as_,
        "memory.mode": memory,
    }
    for item in sets:
        key, equals, values = item.partition("=")
        if not equals:
            raise UsageError(
                f"--set {clean_line(item, 60)} is not of the form section.key=value.",
                "For example --set retrieve.k=3,5.",
            )
        given[key.strip()] = values
    return {
        key: [value.strip() for value in values.split(",") if value.strip()]
        for key, values in given.items()
        if values is not None
    }


def _context(name: str) -> Any:
    options.one_of("context", ("given", "retrieved", "none", "oracle"), name)
    return name


@app.command()
def report(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", exists=True, file_okay=False, help="Folders of runs.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", file_okay=False, help="Also write report.md, report.json and report.svg here."
        ),
    ] = None,
    against: Annotated[
        list[str] | None, typer.Option("--against", metavar="ARM", help="Arms that the others are compared with.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Merge runs into tables: scores with intervals, paired differences, costs."""
    from mindchat.lab.evals import report as reports

    found = reports.write(folders, out, against=against or ()) if out else reports.build(folders, against=against or ())
    if json:
        write_json(found)
    else:
        write(reports.markdown(found).rstrip("\n"))


app.command(epilog="The report is printed and written as OUT/report.md.")(evaluate_rind.rind)
app.command(epilog="The report is printed and written as OUT/chains.md and OUT/chain-report.json.")(
    evaluate_chains.chains
)
app.command(epilog="Tables and figures come from the kept folders alone; study.toml says which there are.")(
    evaluate_study.study
)
app.command()(evaluate_study.keep)
