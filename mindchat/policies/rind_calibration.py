"""Fitting RIND's threshold to a model: which α = β, or which fixed θ, makes a given share of sentences trigger.

Owns: which words of a turn's news are recorded, fit() over them, the small file a fit is kept in, applying it to the
settings.
Does not own: running questions (evals). Why: S is a product and θ a sum, and both move with the model's entropies;
DRAGIN's thresholds differ by a factor of two between models of one family (DRAGIN, Table 9), so a number fitted on one
model says nothing about another.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mindchat.config import Config, RindSection
from mindchat.errors import ConfigError
from mindchat.events import Event, SentenceJudged
from mindchat.paths import private
from mindchat.policies.rind import threshold
from mindchat.storage.atomic import write_atomic
from mindchat.text.foreign_json import decode_json
from mindchat.values import WordScore

FEWEST = 20
"""Sentences; a share measured on fewer means little."""


class Calibration(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What was fitted, on what."""

    model: str
    attention: str
    """rind.attention under which the words were scored; "none" without attention."""
    target: float
    """Share of sentences that should trigger, 0..1."""
    alpha: float
    beta: float
    fixed: float
    rate: float
    """Share that does trigger with alpha and beta (short sentences: with fixed)."""
    rate_fixed: float
    """Share that triggers with the fixed threshold alone."""
    sentences: int


def attention_of(policy: str, options: RindSection) -> str:
    """The kind of attention under which a policy scores words; a fit for another kind says nothing about it."""
    return "none" if policy == "rind-entropy" else options.attention


def recorded(news: Iterable[Event]) -> list[tuple[WordScore, ...]]:
    """The scored words of every judged sentence of a turn."""
    return [event.verdict.words for event in news if isinstance(event, SentenceJudged) and event.verdict.words]


def calibrated(config: Config, folder: Path, model: str) -> Config:
    """The settings with the model's own fit, if there is one and rind.calibration admits it. Raises ConfigError for a
    broken file.
    """
    if config.rind.calibration == "off":
        return config
    found = load(folder, model, attention_of(config.engine.policy, config.rind))
    return config if found is None else replace(config, rind=apply(config.rind, found))


def _above(values: Sequence[float], target: float) -> float:
    """The smallest bound that at most a share `target` of the values exceeds; 0 if all may."""
    allowed = math.floor(target * len(values) + 1e-9)
    ordered = sorted(values, reverse=True)
    # a hair above the value itself: θ is a sum of products and rounds differently
    return ordered[allowed] * (1 + 1e-9) if allowed < len(ordered) else 0.0


def _ratio(words: Sequence[WordScore]) -> float:
    """max S over mean(H) + mean(a) of the content words: the sentence triggers iff α = β is below it."""
    content = [word for word in words if word.content]
    level = sum((w.entropy or 0.0) + (w.attention or 0.0) for w in content) / len(content)
    return max(w.score for w in words) / level if level > 0 else 0.0


def fit(
    recorded: Sequence[Sequence[WordScore]], target: float, *, model: str, attention: str, options: RindSection
) -> Calibration:
    """α = β and θ for a target share of triggering sentences; `recorded` are the words of SentenceJudged events.

    The fixed θ is fitted over all sentences, α = β over those with at least min_words content words (the others use the
    fixed θ anyway). The share is met from below: ties and few sentences can leave it lower, never higher. Raises
    ConfigError for too few sentences or a target outside 0..1.
    """
    sentences = [words for words in recorded if words]
    if not 0.0 <= target <= 1.0:
        raise ConfigError(f"The target rate {target:g} is not between 0 and 1.", "Try 0.3: about every third sentence.")
    if len(sentences) < FEWEST:
        raise ConfigError(f"Only {len(sentences)} sentences were recorded; {FEWEST} are needed.", "Run more questions.")
    long = [words for words in sentences if sum(word.content for word in words) >= options.min_words]
    fixed = _above([max(word.score for word in words) for words in sentences], target)
    scale = _above([_ratio(words) for words in long], target) if long else options.alpha
    found = Calibration(
        model=model,
        attention=attention,
        target=target,
        alpha=scale,
        beta=scale,
        fixed=fixed,
        rate=0.0,
        rate_fixed=0.0,
        sentences=len(sentences),
    )
    fitted = apply(options, found)
    return replace(found, rate=rate(sentences, fitted), rate_fixed=rate(sentences, replace(fitted, threshold="fixed")))


def rate(recorded: Sequence[Sequence[WordScore]], options: RindSection) -> float:
    """The share of sentences that trigger under these settings."""
    hits = [any(word.score > threshold(words, options)[0] for word in words) for words in recorded]
    return sum(hits) / len(hits) if hits else 0.0


def apply(options: RindSection, found: Calibration) -> RindSection:
    """The settings with the fitted numbers; a number that the user has changed stays."""
    default = RindSection()
    changes = {
        name: getattr(found, name)
        for name in ("alpha", "beta", "fixed")
        if getattr(options, name) == getattr(default, name)
    }
    return replace(options, **changes)


def file_for(folder: Path, model: str, attention: str) -> Path:
    """Where a fit is kept: one JSON file a model id and kind of attention, so that fitting one kind leaves the other's
    alone.
    """
    return folder / f"rind-{re.sub(r'[^A-Za-z0-9._-]+', '_', model)}-{attention}.json"


def save(folder: Path, found: Calibration) -> Path:
    """Write a fit down; returns its file."""
    private(folder)
    path = file_for(folder, found.model, found.attention)
    write_atomic(path, msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    return path


def load(folder: Path, model: str, attention: str) -> Calibration | None:
    """A model's fit for this kind of attention; None if there is none. Raises ConfigError for a file that cannot be
    read.
    """
    path = file_for(folder, model, attention)
    if not path.is_file():
        return None
    try:
        found = decode_json(path.read_bytes(), type=Calibration)
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(
            f"{path} cannot be read: {error}", "Delete it, or write it anew: mindchat calibrate rind."
        ) from error
    return found if found.attention == attention else None
