"""Arms: the combinations of settings that one run compares.

Owns: expansion of axes, each arm's name and configuration. Does not own: reading flags (cli) or ranges (config checks
every value). An arm's name is its policy and every setting in which it differs from the shipped defaults, so it does
not depend on what it is compared with.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from mindchat.config import Config, change, keys
from mindchat.errors import UsageError
from mindchat.text.addresses import without_secrets

ALIASES = {
    "engine.filter": "filter",
    "layout.repeat": "repeat",
    "layout.role": "role",
    "layout.as": "as",
    "layout.cot": "cot",
    "memory.mode": "memory",
    "model.name": "model",
    "retrieve.k": "k",
    "answer.short": "short",
}
"""Settings whose short name is clear by itself; others are written in full."""

NEUTRAL = ("ui.", "paths.", "server.", "index.lock_seconds", "index.read_seconds", "index.max_file_mb", "index.matrix")
NEUTRAL_MODEL = ("model.threads", "model.cache_mb", "model.prefill_chunk", "engine.seed")
"""Settings that change no answer (threads, screens) or are stated once for the run (seed): not part of a name."""


class Arm(Struct, frozen=True):
    """One configuration under test."""

    name: str
    config: Config


def flat(config: Config) -> dict[str, Any]:
    """Every dotted key with its value, as it may be written into run.json: addresses without credentials."""
    return without_secrets(
        {
            f"{section}.{key}": value
            for section, table in msgspec.to_builtins(config).items()
            for key, value in table.items()
        }
    )


def decisive(config: Config) -> dict[str, Any]:
    """The settings that may change an answer, by dotted key."""
    return {
        key: value for key, value in flat(config).items() if not key.startswith(NEUTRAL) and key not in NEUTRAL_MODEL
    }


def name_of(config: Config) -> str:
    """The policy, then every decisive setting that is not at its shipped default, in the order of config.toml."""
    defaults, values = keys(), decisive(config)
    parts = [
        f"{ALIASES.get(key, key)}={_word(value)}"
        for key, value in values.items()
        if key != "engine.policy" and value != defaults[key]
    ]
    return " ".join([config.engine.policy, *parts])


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def expand(base: Config, axes: Mapping[str, Sequence[str]], *, seed: int = 0) -> tuple[Arm, ...]:
    """Every combination of the values of each axis (dotted key → values), first axis slowest; equal combinations once.

    Raises ConfigError for an unknown key or a value out of range, UsageError for an axis without a value.
    """
    for key, values in axes.items():
        if not values:
            raise UsageError(f"No value is given for {key}.", "Separate values by commas.")
    start = change(base, "engine.seed", str(seed))
    arms: dict[str, Arm] = {}
    for combination in itertools.product(*axes.values()):
        config = start
        for key, value in zip(axes, combination, strict=True):
            config = change(config, key, value)
        arm = Arm(name_of(config), config)
        arms.setdefault(arm.name, arm)
    return tuple(arms.values())
