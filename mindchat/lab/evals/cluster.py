"""Shards of one run on many machines through Ray, an optional extra.

Owns: starting one process a shard on the cluster and reporting how each ended. Does not own: the run (each process is
an ordinary `mindchat eval` with --shard i/n) nor the folder, which every machine must see under the same path. What a
lost shard had recorded stays; a new start resumes it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from msgspec import Struct

from mindchat import child_process
from mindchat.errors import ResourceError, UsageError
from mindchat.ports import NEVER, Cancel


class ShardEnded(Struct, frozen=True, tag_field="type", tag="ShardEnded"):
    """One shard's process has ended."""

    shard: int
    of: int
    exit_code: int
    tail: str
    """The last lines that it wrote on standard error."""


def command(arguments: Sequence[str], shard: int, of: int) -> list[str]:
    """The process of one shard: the same arguments as this run's, with its own share of the questions and resuming what
    is there.
    """
    kept = [argument for argument in arguments if argument != "--resume"]
    return child_process.command(["-m", "mindchat", "eval", *kept, "--shard", f"{shard}/{of}", "--resume"])


def run_shard(words: Sequence[str], folder: str = ".") -> tuple[int, str]:
    """Run one process in a folder to its end: (exit code, last lines of standard error). It is killed if the task is."""
    done = subprocess.run(
        list(words),
        cwd=folder,
        env=child_process.environment(),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return done.returncode, "\n".join(done.stderr.splitlines()[-5:])


POLL_SECONDS = 1.0


def run_on_ray(
    arguments: Sequence[str],
    shards: int,
    *,
    folder: str = ".",
    address: str = "auto",
    cpus: float = 1.0,
    cancel: Cancel = NEVER,
    ray: Any = None,
) -> Iterator[ShardEnded]:
    """Start every shard as a Ray task of `cpus` processors in `folder` and yield each as it ends. `ray`: the module,
    for tests.

    arguments: those of `mindchat eval`, without --shard. Raises UsageError if Ray is not installed, ResourceError if no
    cluster answers, Interrupted when cancelled, after the shards have been told to stop.
    """
    if shards < 1:
        raise UsageError(f"{shards} shards cannot be run.", "Give at least one.")
    ray = ray or _ray()
    try:
        if not ray.is_initialized():
            ray.init(address=address, log_to_driver=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ResourceError(
            f"No Ray cluster answers at {address}: {error}", "Start one with: ray start --head"
        ) from error
    task = ray.remote(num_cpus=cpus)(run_shard)
    waiting = {task.remote(command(arguments, shard, shards), folder): shard for shard in range(1, shards + 1)}
    try:
        while waiting:
            cancel.check()
            ready, _ = ray.wait(list(waiting), num_returns=1, timeout=POLL_SECONDS)
            for reference in ready:
                code, tail = ray.get(reference)
                yield ShardEnded(waiting.pop(reference), shards, code, tail)
    finally:
        for reference in waiting:
            ray.cancel(reference)


def _ray() -> Any:
    try:
        return import_module("ray")
    except ImportError as error:
        raise UsageError(
            "Ray is not installed.", "pip install 'mindchat[ray]', or start the shards by hand: --shard 1/4 … 4/4."
        ) from error
