"""Rows of prompts with the prefix cache and without it.

Owns: composed rows (five hops), prompts out of recorded events, the report. Does not own: whole turns (bench.turns).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mindchat.errors import UsageError
from mindchat.lab.bench.timing import timed, versions
from mindchat.values import Draft, Passage, Prompt, Token, TurnState

if TYPE_CHECKING:
    from mindchat.models.local import LocalModel
    from mindchat.ports import Composer


def five_hops(composer: Composer, model: LocalModel, passages: Sequence[Passage], copies: int) -> list[Prompt]:
    """The calls of one question with five hops, as the loop lays them out: a draft after each search, which adds two
    passages, then the answer.

    The accepted sentences are the passages' own, as ids: what matters here is their length.
    """
    question = "Which river flows past the place where the director of the film with the later release was born?"
    calls, kept = [], list[Draft]()
    hop = TurnState(0, question)
    for number in range(6):
        calls.append(composer.reasoning(hop, kept, ()))
        sentence = " " + passages[number].text.partition(". ")[0] + "."
        ids = model.vocabulary.continuation(sentence)
        tokens = tuple(
            Token(i, id, text) for i, (id, text) in enumerate(zip(ids, model.vocabulary.pieces(ids), strict=True))
        )
        kept = [*kept, Draft(sentence, tokens)]
        hop = TurnState(
            number + 1,
            question,
            hop.accepted + sentence,
            tuple(passages[: 2 * number + 2]),
            sentences=(*hop.sentences, sentence),
        )
    calls.append(composer.answer(hop, copies, ()))
    return calls


def recorded(lines: Sequence[bytes]) -> list[Prompt]:
    """The prompts of recorded turns, from their events, one a line. Raises UsageError if a line is no event or there is
    no prompt.
    """
    import msgspec

    from mindchat.events import PromptBuilt, from_json

    try:
        found = [from_json(line) for line in lines if line.strip()]
    except msgspec.MsgspecError as error:
        raise UsageError(
            f"A line of the recording is no event: {error}.", "It must be the events of a turn, one JSON object a line."
        ) from error
    prompts = [event.prompt for event in found if isinstance(event, PromptBuilt)]
    if not prompts:
        raise UsageError("The recording holds no prompt.", "It must be the events of a turn, one JSON object a line.")
    return prompts


def bench_cache(
    model: LocalModel, prompts: Sequence[Prompt], *, tokens: int = 32, fixed: Sequence[int] = ()
) -> dict[str, Any]:
    """A recorded row of prompts (the calls of one question, or of several turns), with reuse and without.

    `fixed`: ids of the instructions that every prompt begins with; `cached_share_of_the_rest` leaves them out.
    """
    from mindchat.models.network.kv_cache import PrefixStore, shared

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
    from mindchat.models.network.kv_cache import shared

    return max((min(shared(sent[i], earlier), len(sent[i]) - 1) for earlier in sent[:i]), default=0)
