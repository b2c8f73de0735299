"""Whole turns of the engine with the prefix cache and without it, call by call in turn.

Owns: recording turns, making their calls again, the account of what was shared and what was reused. Does not own: the
engine, its plug-ins, the cache. What a prompt truly shares is counted from what the cache's lines have held so far, so
an eviction shows as reuse below 1.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mindchat.errors import MindChatError
from mindchat.events import AnswerReady, PassagesFound, QueryFormed, TurnFailed
from mindchat.lab.bench.recorder import Call, Outcome, Recorder
from mindchat.lab.bench.timing import versions
from mindchat.ports import Engine, Retriever
from mindchat.values import Passage, Query

if TYPE_CHECKING:
    from mindchat.models.local import LocalModel
    from mindchat.models.network.kv_cache import PrefixStore

FIXED = frozenset({"template", "instruction", "exemplar"})
"""Origins of tokens that are the same in every conversation; they are not counted as shared."""


class Unseen:
    """A retriever that brings the best passages which it has not brought yet, so that every hop of a recorded turn has
    new ones.
    """

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever
        self._seen: set[str] = set()

    def search(self, query: Query, k: int) -> Sequence[Passage]:
        """The k best that are new."""
        found = [p for p in self._retriever.search(query, k + len(self._seen)) if p.id not in self._seen][:k]
        self._seen |= {passage.id for passage in found}
        return found


class Same:
    """A retriever that always brings the same passages: a conversation over the same documents."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = list(passages)

    def search(self, query: Query, k: int) -> Sequence[Passage]:
        """The first k."""
        return self._passages[:k]


class Turn(Struct, frozen=True):
    """A recorded turn."""

    question: str
    short: str
    hops: int
    """Sub-queries formed, the first search's among them."""
    searches: int
    """Hops that looked into the index: one whose sub-query only repeats does not."""
    calls: tuple[Call, ...]


def record(engine: Engine, recorder: Recorder, questions: Sequence[str]) -> list[Turn]:
    """Ask the questions, each with those before it as history. Raises MindChatError if a turn fails."""
    turns: list[Turn] = []
    for question in questions:
        before, hops, searches, short = len(recorder.calls), 0, 0, ""
        for event in engine.run(question, history=[(turn.question, turn.short) for turn in turns]):
            if isinstance(event, TurnFailed):
                raise MindChatError(event.message, event.hint)
            hops += isinstance(event, QueryFormed)
            searches += isinstance(event, PassagesFound)
            if isinstance(event, AnswerReady):
                short = event.answer.short
        turns.append(Turn(question, short, hops, searches, tuple(recorder.calls[before:])))
    return turns


class Made(Struct, frozen=True):
    """One call made again both ways."""

    prompt: int
    """Tokens read."""
    shared: int
    """Of these, how many at the beginning were computed in an earlier call."""
    cached: int
    """How many were taken from the cache."""
    free: int
    """Tokens read that are no fixed instructions."""
    free_cached: int
    first: float
    seconds: float
    first_without: float
    seconds_without: float
    same: bool


def replay(model: LocalModel, turns: Sequence[Turn]) -> list[list[Made]]:
    """The calls of each turn, with one cache for all turns, and each beside itself without any; who begins changes from
    call to call.
    """
    from mindchat.models.network.kv_cache import Line, PrefixStore, shared

    computed: list[tuple[int, ...]] = []

    class Watched(PrefixStore):
        def give(self, line: Line) -> None:
            computed.append(tuple(line.ids))
            super().give(line)

    fresh, before = model.backbone.fresh, model.store
    reused, none = Watched(fresh, model.section.cache_mb * 1024 * 1024), PrefixStore(fresh, 0, enabled=False)
    made: list[list[Made]] = []
    number = 0
    try:
        for turn in turns:
            made.append([])
            for call in turn.calls:
                limit = len(call.ids) - (call.verb != "attention")  # the last token is computed for its logits
                held = min(max((shared(call.ids, ids) for ids in computed), default=0), limit)
                ways = {"with": reused, "without": none}
                ran = {
                    way: _run(model, call, ways[way])
                    for way in (("with", "without") if number % 2 else ("without", "with"))
                }
                made[-1].append(_made(call, held, *ran["with"], *ran["without"]))
                number += 1
    finally:
        model.store = before
    return made


def _run(model: LocalModel, call: Call, store: PrefixStore) -> tuple[Outcome, float, int]:
    """What the call said, its seconds, and the prompt tokens that came from the cache."""
    model.store = store
    model.usage()
    began = time.perf_counter()
    outcome = call.again()
    return outcome, time.perf_counter() - began, model.usage()[1]


def _made(
    call: Call, held: int, own: Outcome, seconds: float, cached: int, bare: Outcome, seconds_without: float, _: int
) -> Made:
    free = [origin not in FIXED for origin in call.origins]
    same = own.said == bare.said
    return Made(
        len(call.ids),
        held,
        cached,
        sum(free),
        sum(free[:cached]),
        own.first,
        seconds,
        bare.first,
        seconds_without,
        same,
    )


def bench_turns(model: LocalModel, turns: Sequence[Turn]) -> dict[str, Any]:
    """The report of a conversation: of all turns together, and of how the last one begins. Shares are of prompt tokens,
    speeds without/with.

    `same_text` is expected where steps and prefill compute alike. Where int8 steps stand beside a prefill in another
    format it was seen to fail: kept words stand in the cache as int8 computed them, while without reuse prefill
    computes them anew in its own format. `calls_with_other_text` counts the calls that differ.
    """
    made = replay(model, turns)
    every = [each for calls in made for each in calls]
    last = made[-1][0]
    return {
        "model": model.id,
        "arithmetic": model.backbone.arithmetic,
        "turns": len(turns),
        "hops": sum(turn.hops for turn in turns),
        "searches": sum(turn.searches for turn in turns),
        "questions": [turn.question for turn in turns],
        "short_answers": [turn.short for turn in turns],
        "calls": len(every),
        **_account(every),
        "last_turn": {
            "share": last.shared / last.prompt,
            "reused": last.cached / last.shared if last.shared else 1.0,
            "first_token_seconds": last.first,
            "first_token_seconds_without": last.first_without,
            "first_token_speed": last.first_without / last.first,
        },
        "versions": versions(),
    }


def _account(made: Sequence[Made]) -> dict[str, Any]:
    read, shared, cached = (
        sum(values) for values in zip(*((each.prompt, each.shared, each.cached) for each in made), strict=True)
    )
    most = [each for each in made if each.shared >= 0.6 * each.prompt]
    free, seconds, without = (
        sum(m.free for m in made),
        sum(m.seconds for m in made),
        sum(m.seconds_without for m in made),
    )
    return {
        "prompt_tokens": read,
        "shared_tokens": shared,
        "cached_tokens": cached,
        "shared_reused": cached / shared if shared else 1.0,
        "cached_share": cached / read,
        "cached_share_of_the_rest": sum(m.free_cached for m in made) / max(free, 1),
        "seconds_to_last_token": seconds,
        "seconds_to_last_token_without": without,
        "speed": without / seconds,
        "calls_60_percent_shared": len(most),
        "speed_where_60_percent_is_shared": _ratio([m.seconds_without for m in most], [m.seconds for m in most]),
        "first_token_speed_where_60_percent_is_shared": _ratio(
            [m.first_without for m in most], [m.first for m in most]
        ),
        "same_text": all(m.same for m in made),
        "calls_with_other_text": sum(not m.same for m in made),
    }


def _ratio(without: Sequence[float], own: Sequence[float]) -> float | None:
    """Of the sums; None if there are no calls."""
    return sum(without) / sum(own) if own else None
