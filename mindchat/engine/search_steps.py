"""The steps of one search: memory, then the index, and what of both stands in the prompt; each yields events and returns its result.

Owns: recall before search, which passages and facts are new, how many stay. Does not own: the query (policies), ranking (corpus), what memory
holds, the window (engine.budget). Source: MIND §3.4 (memory first); methods.md A6.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mindchat import events as ev
from mindchat.engine.budget import remembered
from mindchat.errors import IndexMissingError
from mindchat.events import Event
from mindchat.prompts.core import memory_block
from mindchat.values import Fact, Found, Passage, Query, Recalled

if TYPE_CHECKING:
    from mindchat.engine.turn import Turn


def look_up(turn: Turn, query: Query, *, repeated: bool = False, joins: bool = False) -> Generator[Event, None, int]:
    """Memory first, then the index unless memory's stored passages stand in. Returns how many passages and facts are new to the prompt.

    `joins`: another query of the same hop, whose passages join those of the first.
    """
    turn.hop = replace(turn.hop, queries=(*turn.hop.queries, query.text))
    recalled = yield from recall(turn, query)
    known = {passage.id for passage in turn.hop.passages}
    news = [fact for fact in recalled.facts if fact.id not in {f.id for f in turn.hop.facts}]
    if recalled.skip:
        found = tuple(replace(passage, found=Found("memory")) for passage in recalled.skip)
        yield ev.SearchSkipped(found, recalled.why)
    elif repeated:
        found = ()
    else:
        found = yield from search(turn, query, known)
    fresh = tuple(passage for passage in found if passage.id not in known)
    old = turn.hop.passages
    if not (joins or turn.parts.policy.accumulates):
        old = tuple(p for p in old if p.id in {f.id for f in found})
    before = len(turn.hop.facts)
    facts = yield from admitted(turn, news)
    turn.hop = replace(turn.hop, passages=capped(turn, (*old, *fresh)), facts=facts)
    turn.pending = (query.text, found) if found else turn.pending if joins else None
    return len(fresh) + len(facts) - before


def admitted(turn: Turn, news: Sequence[Fact]) -> Generator[Event, None, tuple[Fact, ...]]:
    """The facts of the prompt with the new ones, within memory's own allowances; what is left out is shown."""
    options = turn.config.memory

    def count(facts: Sequence[Fact]) -> int:
        return turn.ask.count("".join(segment.text for segment in memory_block(facts, 0))) - turn.ask.count("")

    facts, dropped = remembered(turn.hop.facts, news, count, options.max_facts, options.max_tokens, turn.parts.model.window)
    if dropped:
        yield ev.DocumentsDropped(dropped)
    return facts


def recall(turn: Turn, query: Query) -> Generator[Event, None, Recalled]:
    """Memory speaks before the index."""
    if turn.parts.memory is None:
        return Recalled()
    yield turn.step("recall")
    recalled = turn.parts.memory.recall(query)
    yield ev.FactsRecalled(recalled.facts, recalled.why)
    return recalled


def search(turn: Turn, query: Query, known: set[str]) -> Generator[Event, None, tuple[Passage, ...]]:
    """The index; a missing one is said, and the answer is given without documents."""
    yield turn.step("search")
    started = time.monotonic()
    try:
        found = turn.parts.retriever.search(query, turn.config.retrieve.k)
    except IndexMissingError as error:
        yield ev.Notice(f"{error.message} Answering without documents. {error.hint}", "warning")
        found = ()
    chosen = tuple(turn.parts.policy.which(found, turn.hop, turn.ask))
    yield from turn.ask.drain()
    fresh = sum(1 for passage in chosen if passage.id not in known)
    yield ev.PassagesFound(query.text, chosen, fresh, time.monotonic() - started)
    return chosen


def capped(turn: Turn, passages: tuple[Passage, ...]) -> tuple[Passage, ...]:
    """At most as many as the policy or retrieve.max_passages says: the oldest of the lowest rank go first."""
    kept = list(passages)
    while len(kept) > (turn.parts.policy.cap or turn.config.retrieve.max_passages):
        kept.pop(max(range(len(kept)), key=lambda i: (kept[i].rank, -i)))
    return tuple(kept)
