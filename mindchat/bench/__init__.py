"""Measurements of decoding and of cache reuse, each with its reference inside the same run.

Owns: what is timed and how it is reported (ratios; seconds only mean something on one machine). Does not own: the references (models.reference).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mindchat.errors import UsageError
from mindchat.values import Draft, Hop, Message, Passage, Prefilled, Prompt, Signal, Text, Token

if TYPE_CHECKING:
    from mindchat.models.hf import HFModel
    from mindchat.ports import Composer

SIGNALS = frozenset({Signal.LOGPROB, Signal.ENTROPY, Signal.ATTENTION})


def prompt_of(model: HFModel, text: str, tokens: int) -> Prompt:
    """A prompt of about `tokens` tokens: the text, repeated as needed, and a request to go on."""
    ids = model.vocabulary.continuation(text + "\n")
    while len(ids) < tokens:
        ids += ids
    return Prompt((Message("user", (Text("Continue in detail.\n" + model.vocabulary.text(ids[:tokens]), "passage"),)),))


def timed(model: HFModel, prompt: Prompt, tokens: int, want: frozenset[Signal] = SIGNALS) -> dict[str, Any]:
    """One generation: seconds to the first and the last token, decoding speed, prompt tokens cached, ids."""
    started = time.perf_counter()
    marks: list[float] = []
    ids: list[int] = []
    cached = total = 0
    for item in model.stream(prompt, want=want, max_tokens=tokens):
        if isinstance(item, Token):
            marks.append(time.perf_counter() - started)
            ids.append(item.id)
        elif isinstance(item, Prefilled):
            cached, total = item.cached, item.total
    seconds = time.perf_counter() - started
    rate = (len(marks) - 1) / (marks[-1] - marks[0]) if len(marks) > 1 else 0.0
    return {"seconds": seconds, "first": marks[0] if marks else seconds, "rate": rate, "cached": cached, "prompt": total, "ids": ids}


def bench_decode(model: HFModel, text: str, *, lengths: Sequence[int] = (500, 1500), tokens: int = 64, repeats: int = 3) -> dict[str, Any]:
    """MindChat with all signals against transformers' generate without any, and against generate plus a second pass with attentions.

    Each length gives medians in seconds and `speed_without_signals` (1.0: as fast), `speed_second_pass` (2.0: twice as fast). The references
    run on the network as it is loaded: with `prefill_in_bfloat16` they compute with its bfloat16 projections too, in every step.
    """
    from mindchat.models import reference

    rows = []
    for length in lengths:
        prompt = prompt_of(model, text, length)
        sent = model.format.render(prompt).ids
        ours: list[float] = []
        plain: list[float] = []
        second: list[float] = []
        rates: list[float] = []
        for _ in range(repeats):  # taken in turn, so that a busy minute falls on all of them
            model.store.clear()
            mine = timed(model, prompt, tokens)
            ours.append(mine["seconds"])
            rates.append(mine["rate"])
            seconds, made = reference.generate(model.backbone, sent, max(len(mine["ids"]), 1))
            plain.append(seconds)
            second.append(reference.second_pass(model.backbone, [*sent, *made]))
        own, bare, full = (statistics.median(values) for values in (ours, plain, second))
        rows.append(
            {
                "prompt_tokens": len(sent),
                "generated": len(mine["ids"]),
                "seconds": own,
                "tokens_per_second": statistics.median(rates),
                "generate_seconds": bare,
                "second_pass_seconds": full,
                "speed_without_signals": bare / own,
                "speed_second_pass": (bare + full) / own,
                "same_text": made == mine["ids"],
            }
        )
    arithmetic = {"arithmetic": model.backbone.arithmetic, "prefill_in_bfloat16": model.backbone.narrowed}
    return {"model": model.id, **arithmetic, "repeats": repeats, "rows": rows, "versions": versions()}


def five_hops(composer: Composer, model: HFModel, passages: Sequence[Passage], copies: int) -> list[Prompt]:
    """The calls of one question with five hops, as the loop lays them out: a draft after each search, which adds two passages, then the answer.

    The accepted sentences are the passages' own, as ids: what matters here is their length.
    """
    question = "Which river flows past the place where the director of the film with the later release was born?"
    calls, kept = [], list[Draft]()
    hop = Hop(0, question)
    for number in range(6):
        calls.append(composer.reasoning(hop, kept, ()))
        sentence = " " + passages[number].text.partition(". ")[0] + "."
        ids = model.vocabulary.continuation(sentence)
        tokens = tuple(Token(i, id, text) for i, (id, text) in enumerate(zip(ids, model.vocabulary.pieces(ids), strict=True)))
        kept = [*kept, Draft(sentence, tokens)]
        hop = Hop(number + 1, question, hop.accepted + sentence, tuple(passages[: 2 * number + 2]), sentences=(*hop.sentences, sentence))
    calls.append(composer.answer(hop, copies, ()))
    return calls


def recorded(lines: Sequence[bytes]) -> list[Prompt]:
    """The prompts of recorded turns, from their events, one a line. Raises UsageError if a line is no event or there is no prompt."""
    import msgspec

    from mindchat.events import PromptBuilt, from_json

    try:
        found = [from_json(line) for line in lines if line.strip()]
    except msgspec.MsgspecError as error:
        raise UsageError(f"A line of the recording is no event: {error}.", "It must be the events of a turn, one JSON object a line.") from error
    prompts = [event.prompt for event in found if isinstance(event, PromptBuilt)]
    if not prompts:
        raise UsageError("The recording holds no prompt.", "It must be the events of a turn, one JSON object a line.")
    return prompts


def bench_cache(model: HFModel, prompts: Sequence[Prompt], *, tokens: int = 32, fixed: Sequence[int] = ()) -> dict[str, Any]:
    """A recorded row of prompts (the calls of one question, or of several turns), with reuse and without.

    `fixed`: ids of the instructions that every prompt begins with; `cached_share_of_the_rest` leaves them out.
    """
    from mindchat.models.cache import PrefixStore, shared

    def run(store: PrefixStore) -> list[dict[str, Any]]:
        before, model.store = model.store, store
        try:
            return [timed(model, prompt, tokens) for prompt in prompts]
        finally:
            model.store = before

    limit = model.section.cache_mb * 1024 * 1024
    without = run(PrefixStore(model.backbone.fresh, 0, enabled=False))
    reused = run(PrefixStore(model.backbone.fresh, limit))
    total, cached = sum(each["prompt"] for each in reused), sum(each["cached"] for each in reused)
    sent = [model.format.render(prompt).ids for prompt in prompts]
    known = sum(min(shared(ids, fixed), each["cached"]) for ids, each in zip(sent[1:], reused[1:], strict=True))
    return {
        "model": model.id,
        "arithmetic": model.backbone.arithmetic,
        "calls": len(prompts),
        "prompt_tokens": total,
        "cached_tokens": cached,
        "cached_share": cached / max(total, 1),
        "cached_share_of_the_rest": (cached - known) / max(total - known, 1),
        "shared_prefix_tokens": sum(_shared_with_earlier(sent, i) for i in range(len(sent))),
        "seconds": sum(each["seconds"] for each in reused),
        "seconds_without": sum(each["seconds"] for each in without),
        "speed": sum(each["seconds"] for each in without) / sum(each["seconds"] for each in reused),
        "first_token_speed": [a["first"] / b["first"] for a, b in zip(without, reused, strict=True)],
        "same_text": [a["ids"] for a in without] == [b["ids"] for b in reused],
        "versions": versions(),
    }


def _shared_with_earlier(sent: Sequence[tuple[int, ...]], i: int) -> int:
    """Tokens of prompt i that an earlier prompt began with too (its last token is always computed)."""
    from mindchat.models.cache import shared

    return max((min(shared(sent[i], earlier), len(sent[i]) - 1) for earlier in sent[:i]), default=0)


def bench_arithmetic(model: HFModel, text: str, *, tokens: int = 320) -> dict[str, Any]:
    """Steps in fp32 and in int8 beside transformers' own, and whole passes in fp32 and bfloat16, over one text.

    Each with its speed against its reference, KL from full precision, change of entropy (means over the text) and share of equal top tokens.
    """
    import msgspec

    from mindchat.models import reference
    from mindchat.models.backbone import Backbone

    sample = model.vocabulary.continuation(text)[:16]
    made = (Backbone(model.backbone.model, sample, int8=int8) for int8 in (False, True))
    ways = {backbone.arithmetic: backbone for backbone in made}
    found = reference.compare(ways, model.vocabulary.continuation(text)[:tokens])
    own = found["transformers"].milliseconds
    rows = {name: {**msgspec.to_builtins(each), "speed": own / each.milliseconds} for name, each in found.items()}
    if model.backbone.stepped:
        passes = reference.compare_prefill(model.backbone, model.vocabulary.continuation(text)[:tokens])
        own = passes["prefill fp32"].milliseconds
        rows |= {name: {**msgspec.to_builtins(each), "speed": own / each.milliseconds} for name, each in passes.items()}
    return {"model": model.id, "rows": rows, "versions": versions()}


def versions() -> dict[str, str]:
    """The libraries that decide."""
    import torch
    import transformers

    return {"torch": str(torch.__version__), "transformers": str(transformers.__version__), "threads": str(torch.get_num_threads())}
