"""What the commands of `mindchat eval` share: shards, facts about models, a line of progress.

Owns: these. Does not own: the commands (evaluate.py, evaluate_rind.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mindchat.cli.load_settings import Setup
from mindchat.cli.output import Narrator, duration
from mindchat.errors import MindChatError, UsageError
from mindchat.ports import Cancel
from mindchat.text.clean import clean_line


def shard(text: str) -> tuple[int, int]:
    """I/N as (i, n). Raises UsageError for anything else."""
    first, _, of = text.partition("/")
    if not (first.isdecimal() and of.isdecimal()):
        raise UsageError(f"--shard {clean_line(text, 20)} is not of the form I/N.", "For example --shard 1/4.")
    return int(first), int(of)


def models(setup: Setup, names: Sequence[str] | None = None) -> dict[str, Any]:
    """What run.json says of each model (None: the configured one): id and the hash of its file."""
    from mindchat import wiring

    store, facts = wiring.open_store(setup.config, setup.paths), {}
    for name in (names or [setup.config.model.name]) if not setup.config.server.url else []:
        if name.startswith("scripted:"):  # a tape, no model of the store
            continue
        model = store.info(name)
        facts[name] = {"id": model.id, "sha256": model.sha256, "source": model.source}
    return facts


def on_ray(typed: Sequence[str], shards: int, narrator: Narrator, cancel: Cancel) -> None:
    """The same command on a Ray cluster, a share of the questions each. Raises MindChatError if a shard fails; what it
    recorded stays.
    """
    from mindchat.lab.evals.cluster import run_on_ray

    failed = []
    for ended in run_on_ray(without_ray(typed), shards, folder=str(Path.cwd()), cancel=cancel):
        narrator.note(
            f"shard {ended.shard} of {ended.of} ended"
            + (f" with exit code {ended.exit_code}" if ended.exit_code else "")
        )
        if ended.exit_code:
            failed.append(ended)
    if failed:
        tail = clean_line(failed[0].tail, 300)
        raise MindChatError(
            f"{len(failed)} of {shards} shards failed. The first: {tail}",
            "Start the command again; what is recorded stays.",
        )


def without_ray(typed: Sequence[str]) -> list[str]:
    """The words of the command without --ray N and --shard I/N."""
    kept: list[str] = []
    skip = False
    for word in typed:
        if skip or word.startswith(("--ray=", "--shard=")):
            skip = False
        elif word in ("--ray", "--shard"):
            skip = True
        else:
            kept.append(word)
    return kept


def tell(event: Any, narrator: Narrator) -> None:
    """One line of progress, and a note for what somebody should know."""
    name = type(event).__name__
    if name == "Planned":
        narrator.note(f"{len(event.arms)} arms, {event.total} answers, {event.done} of them there already")
        for note in event.notes:
            narrator.warn(clean_line(note))
    elif name == "Asking":
        narrator.progress(f"{clean_line(event.arm, 40)}: {clean_line(event.question, 100)}")
    elif name == "Scored":
        if event.failure:
            narrator.warn(f"{event.arm} {event.id} failed: {clean_line(event.failure)}")
        narrator.progress(f"{event.done} of {event.total} · {event.seconds:.1f} s · {duration(event.eta_seconds)} left")
    elif name == "Finished":
        narrator.note(f"{event.total} answers, {event.failures} failures")
