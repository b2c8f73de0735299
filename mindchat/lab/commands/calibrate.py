"""`mindchat calibrate rind` and `mindchat calibrate memory`: thresholds that fit a model, written where the engine and
memory look for them.

Owns: their flags, asking the questions, progress. Does not own: the fits (policies.calibrate, memory.calibrate),
sessions and models (wiring).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from mindchat.cli import options
from mindchat.cli.app import sub_app
from mindchat.cli.command_runner import cancelling
from mindchat.cli.load_settings import Setup, load
from mindchat.cli.narrate import TurnNarrator
from mindchat.cli.output import Narrator, write, write_json
from mindchat.errors import MindChatError, UsageError
from mindchat.events import StepStarted, TurnCancelled, TurnFailed, TurnStarted
from mindchat.ports import Cancel
from mindchat.text.clean import clean_line

app = sub_app("Fit thresholds to a model.")

DataSet = Annotated[
    Path, typer.Argument(metavar="DATASET.jsonl", exists=True, dir_okay=False, help="Questions, with their passages.")
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the sample.")]


@app.command()
def rind(
    dataset: DataSet,
    model: options.ModelName = None,
    target: Annotated[
        float, typer.Option("--target", min=0.0, max=1.0, help="Share of sentences that should trigger a search.")
    ] = 0.3,
    n: Annotated[int, typer.Option("--n", min=1, help="Questions sampled from the file.")] = 40,
    open_: Annotated[
        Path | None,
        typer.Option("--open", metavar="CORPUS.jsonl", help="Search this corpus instead of each question's own."),
    ] = None,
    policy: options.Policy = None,
    seed: Seed = 0,
    json: options.Json = False,
    sets: options.Sets = None,
) -> None:
    """Fit RIND's alpha, beta and fixed threshold to a model, so that a share of its sentences triggers."""
    from mindchat import wiring
    from mindchat.policies import rind_calibration

    flags = {"model.name": model, "engine.policy": policy, "engine.seed": seed, "memory.mode": "off"}
    setup = _setup(sets, flags)
    if policy is None and not _scores(setup):  # the shipped policy does not; RIND is what is to be fitted
        setup = _setup(sets, {**flags, "engine.policy": "mind"})
    narrator, cancel = Narrator(), Cancel()
    with cancelling(cancel):
        name, sentences = _recorded(setup, dataset, n, open_, narrator, cancel)
    narrator.clear()
    options_, attention = (
        setup.config.rind,
        rind_calibration.attention_of(setup.config.engine.policy, setup.config.rind),
    )
    found = rind_calibration.fit(sentences, target, model=name, attention=attention, options=options_)
    path = rind_calibration.save(wiring.calibrations(setup.paths), found)
    if json:
        write_json({**msgspec.to_builtins(found), "path": str(path)})
        return
    write(f"{clean_line(name)}: {found.sentences} sentences of {n} questions, {found.target:.0%} should trigger")
    write(
        f"alpha = beta = {found.alpha:.3f}: {found.rate:.0%} trigger · fixed = {found.fixed:.3f}:"
        f" {found.rate_fixed:.0%} trigger"
    )
    write(f"written: {clean_line(str(path))}")


def _scores(setup: Setup) -> bool:
    """Whether the configured policy measures anything while the model writes."""
    from mindchat import wiring
    from mindchat.policies import POLICIES

    return bool(wiring.plug(POLICIES, setup.config.engine.policy, "policy").needs)


def _recorded(
    setup: Setup, dataset: Path, n: int, corpus: Path | None, narrator: Narrator, cancel: Cancel
) -> tuple[str, list[Any]]:
    """The model's id and the scored words of every sentence that it wrote for the questions. A question that fails ends
    the fit.
    """
    from mindchat.lab import workbench
    from mindchat.lab.evals.datasets import load as read
    from mindchat.lab.evals.datasets import sample
    from mindchat.lab.evals.examples import corpus_for
    from mindchat.policies.rind_calibration import recorded

    make, name, sentences = workbench.open_evaluation(setup.config, setup.paths), "", []
    items = sample(read(dataset), n, setup.config.engine.seed)
    for number, item in enumerate(items, 1):
        narrator.progress(f"question {number} of {len(items)}: {clean_line(item.example.question, 100)}")
        news = []
        for event in make(setup.config, corpus_for(item, "retrieved", str(corpus or ""))).ask(
            item.example.question, cancel=cancel
        ):
            if isinstance(event, TurnFailed):
                raise MindChatError(event.message, event.hint)
            if isinstance(event, TurnCancelled):
                cancel.check()
            if isinstance(event, TurnStarted):
                name = event.model
            if (
                isinstance(event, StepStarted) and event.step == "answer"
            ):  # all sentences are judged; the answer costs most and tells nothing
                break
            news.append(event)
        sentences += recorded(news)
    if not sentences:
        raise UsageError(
            f"Policy {setup.config.engine.policy} scores no words.",
            "Calibrate with --policy mind, rind-fixed or rind-entropy.",
        )
    return name, sentences


@app.command()
def memory(
    dataset: DataSet,
    model: options.ModelName = None,
    target: Annotated[
        float, typer.Option("--target", min=0.0, max=1.0, help="Accepted share of wrong facts among those served.")
    ] = 0.05,
    n: Annotated[int, typer.Option("--n", min=1, help="Facts asked for; two short model calls each.")] = 200,
    seed: Seed = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what was asked before.")] = False,
    json: options.Json = False,
    sets: options.Sets = None,
) -> None:
    """Fit the confidence of remembered facts to a model, on a 2WikiMultihopQA file with gold triples."""
    from mindchat import wiring
    from mindchat.lab.calibration.memory_confidence import calibrate

    setup = _setup(sets, {"model.name": model, "engine.seed": seed})
    narrator, cancel = Narrator(), Cancel()
    with cancelling(cancel):
        loaded = wiring.load_model(setup.config, TurnNarrator(narrator).tell)
        found = calibrate(
            dataset,
            wiring.open_ask(loaded, cancel, seed),
            setup.paths.memory_db.parent,
            setup.config.model.name,
            limit=n,
            seed=seed,
            target=target,
            resume=resume,
            progress=lambda done, of: narrator.progress(f"fact {done} of {of}"),
        )
    narrator.clear()
    if json:
        write_json(found)
    else:
        write(found.render())


def _setup(sets: list[str] | None, flags: dict[str, Any]) -> Setup:
    setup = load(sets or [], flags)
    options.check_names(setup)
    return setup
