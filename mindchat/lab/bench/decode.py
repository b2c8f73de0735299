"""Decoding with all signals beside its references: generate without any, generate and a second pass with attentions,
llama.cpp.

Owns: taking turns, the report. Does not own: the references (models.reference, bench.llama).
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mindchat.lab.bench.memory import peak_resident_mb
from mindchat.lab.bench.timing import prompt_of, timed, versions

if TYPE_CHECKING:
    from mindchat.lab.bench.llama import Llama, Ran
    from mindchat.models.local import LocalModel


def bench_decode(
    model: LocalModel,
    text: str,
    *,
    lengths: Sequence[int] = (500, 1500),
    tokens: int = 64,
    repeats: int = 3,
    llama: Llama | None = None,
) -> dict[str, Any]:
    """MindChat with all signals against transformers' generate without any, against generate plus a second pass with
    attentions, and llama.cpp.

    Each length gives medians in seconds and `speed_without_signals` (1.0: as fast), `speed_second_pass` (2.0: twice as
    fast), both over prompt and tokens together, and the same for the tokens alone as `decode_…`. The references run on
    the network as it is loaded: with `prefill` = bf16 they compute with its bfloat16 projections too, in every step,
    while int8 steps do not; else with the full weights. Two precisions choose the same token except where two are
    nearly as likely, and from the first such place on the texts are about different things: so `same_text` is bound to
    hold in fp32 only. What can be compared is `same_choice`: the share of MindChat's tokens that the reference chooses
    too, behind the same tokens; `same_until` tells where the two texts part. `peak_resident_mb`: after one generation
    of each length and before any reference.
    """
    from mindchat.lab.bench import reference
    from mindchat.models.network.kv_cache import shared

    prompts = [prompt_of(model, text, length) for length in lengths]
    for prompt in prompts:
        model.store.clear()
        timed(model, prompt, tokens)
    peak, rows = peak_resident_mb(), []
    for prompt in prompts:
        sent = model.format.render(prompt).ids
        ran: dict[str, list[float]] = {
            name: [] for name in ("own", "own_first", "plain", "plain_first", "second", "llama", "llama_first")
        }
        theirs: Ran | None = None
        for _ in range(repeats):  # taken in turn, so that a busy minute falls on all of them
            model.store.clear()
            mine = timed(model, prompt, tokens)
            count = max(len(mine["ids"]), 1)
            plain = reference.generate(model.backbone, sent, count)
            again, chosen = reference.second_pass(model.backbone, [*sent, *mine["ids"]], len(mine["ids"]))
            for name, value in zip(
                ran, (mine["seconds"], mine["first"], plain.seconds, plain.first, again), strict=False
            ):
                ran[name].append(value)
            if llama is not None:
                theirs = llama.generate(sent, count)
                ran["llama"].append(theirs.seconds)
                ran["llama_first"].append(theirs.first)
        row = {"prompt_tokens": len(sent), "generated": len(mine["ids"]), **_speeds(ran, len(mine["ids"]))}
        same = [a == b for a, b in zip(mine["ids"], chosen, strict=True)]
        row |= {
            "same_text": plain.ids == mine["ids"],
            "same_until": shared(mine["ids"], plain.ids),
            "same_choice": sum(same) / max(len(same), 1),
        }
        rows.append(row | ({} if theirs is None else {"llama_same_until": shared(mine["ids"], theirs.ids)}))
    arithmetic = {"arithmetic": model.backbone.arithmetic, "prefill": model.backbone.prefill or "full"}
    return {
        "model": model.id,
        **arithmetic,
        "repeats": repeats,
        "peak_resident_mb": peak,
        "rows": rows,
        "versions": versions(),
    }


def _speeds(ran: Mapping[str, Sequence[float]], generated: int) -> dict[str, float]:
    """Medians, and ratios to each reference; rates are of the tokens after the first."""
    middle = {name: statistics.median(values) for name, values in ran.items() if values}
    own, bare, full = middle["own"], middle["plain"], middle["second"]
    spent = own - middle["own_first"]
    found = {
        "seconds": own,
        "first_token_seconds": middle["own_first"],
        "tokens_per_second": _rate(generated, spent),
        "generate_seconds": bare,
        "generate_first_token_seconds": middle["plain_first"],
        "generate_tokens_per_second": _rate(generated, bare - middle["plain_first"]),
        "second_pass_seconds": full,
        "speed_without_signals": bare / own,
        "decode_without_signals": (bare - middle["plain_first"]) / spent if spent > 0 else 0.0,
        "speed_second_pass": (bare + full) / own,
    }
    if "llama" in middle:
        theirs = middle["llama"] - middle["llama_first"]
        found |= {
            "llama_seconds": middle["llama"],
            "llama_first_token_seconds": middle["llama_first"],
            "llama_tokens_per_second": _rate(generated, theirs),
            "speed_llama": middle["llama"] / own,
            "decode_llama": theirs / spent if spent > 0 else 0.0,
        }
    return found


def _rate(tokens: int, seconds: float) -> float:
    """Tokens a second after the first."""
    return (tokens - 1) / seconds if seconds > 0 else 0.0
