"""What reading the documents once more costs: the second copy along the engine's own path, beside a plain prefill of as
many tokens.

Owns: the measurement and its report. Does not own: the plain prefill (models.plain), layouts (prompts.core). The path
is that of repeat = "auto": a short answer after one copy, then the prompt with two, which finds the first copy in the
prefix cache.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from mindchat.engine.reading import PROBE_TOKENS
from mindchat.errors import UsageError
from mindchat.lab import bench
from mindchat.values import Signal, TurnState

if TYPE_CHECKING:
    from mindchat.models.local import LocalModel
    from mindchat.ports import Composer

WANT = frozenset({Signal.LOGPROB, Signal.ENTROPY})
"""What the engine measures in answers."""


def bench_repetition(model: LocalModel, composer: Composer, hop: TurnState, *, repeats: int = 5) -> dict[str, Any]:
    """Seconds until the first word behind two copies, after a probe behind one; and of transformers' prefill of a
    copy's tokens at the same place.

    Both in turn, medians of `repeats`. `ratio` is the first over the second, the median over neighbours in time (1.0: a
    copy costs what its tokens cost anyhow). It includes `again_tokens`, computed once more because the probe had others
    in their place; `again_share`: of a copy's tokens.
    """
    one, two = (composer.answer(hop, copies, ()) for copies in (0, 1))
    sent = model.format.render(two).ids
    copy = len(sent) - model.count(one)
    if copy <= 0:
        raise UsageError("The second copy adds no tokens.", "Give passages to repeat.")
    own, plain, probes = list[float](), list[float](), list[float]()
    cached = 0
    for _ in range(repeats):  # taken in turn, so that a busy minute falls on both
        model.store.clear()
        probes.append(bench.timed(model, one, PROBE_TOKENS, WANT)["first"])
        mine = bench.timed(model, two, 1, WANT)
        own.append(mine["first"])
        cached = mine["cached"]
        plain.append(_plain(model, sent[:cached], sent[cached : cached + copy])[0])
    chosen = _plain(model, sent[:cached], sent[cached:])[1]
    ratios = [a / b for a, b in zip(own, plain, strict=True)]
    return {
        "model": model.id,
        "arithmetic": model.backbone.arithmetic,
        "prefill": model.backbone.prefill or "full",
        "documents": len(hop.passages),
        "repeats": repeats,
        "prompt_tokens": len(sent),
        "cached_tokens": cached,
        "copy_tokens": copy,
        "again_tokens": len(sent) - cached - copy,
        "again_share": (len(sent) - cached - copy) / copy,
        "first_copy_seconds": statistics.median(probes),
        "copy_seconds": statistics.median(own),
        "plain_seconds": statistics.median(plain),
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "same_first_token": mine["ids"] == [chosen],
        "versions": bench.versions(),
    }


def _plain(model: LocalModel, before: tuple[int, ...], new: tuple[int, ...]) -> tuple[float, int]:
    from mindchat.models.network.transformers_prefill import prefill_behind

    return prefill_behind(model.backbone, before, new)
