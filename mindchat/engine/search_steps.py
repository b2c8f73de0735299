"""The steps of one search: memory, then the index, and what of both stands in the prompt; each yields events and
returns its result.

Owns: names that no document has, recall before search, which passages and facts are new, how many stay. Does not own:
the query (policies), ranking (corpus), what memory holds, the window (engine.budget). Source: MIND §3.4 (memory first).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mindchat import events as ev
from mindchat.engine.budget import remembered
from mindchat.engine.refusal import read_names
from mindchat.errors import IndexMissingError
from mindchat.events import Event
from mindchat.ports import KnowsNames
from mindchat.prompts.core import memory_block
from mindchat.text.clean import clean_line
from mindchat.values import Fact, Found, Passage, Query, Recalled, Sought

if TYPE_CHECKING:
    from mindchat.engine.turn import Turn


def missing_names(turn: Turn) -> Iterator[Event]:
    """Tell the names of the question that no document has; nothing is indexed yet: the first search says so."""
    retriever = turn.parts.retriever
    if not isinstance(retriever, KnowsNames):
        return
    with contextlib.suppress(IndexMissingError):
        if absent := retriever.absent(turn.hop.question, turn.words, turn.sought.filters):
            yield ev.NamesAbsent(absent)
            yield from read_names(turn, absent)


def look_up(turn: Turn, query: Query, *, repeated: bool = False, joins: bool = False) -> Generator[Event, None, int]:
    """Memory first, then the index unless memory's stored passages stand in. Returns how many passages and facts are
    new to the prompt.

    `joins`: another query of the same hop, whose passages join those of the first.
    """
    turn.hop = replace(turn.hop, queries=(*turn.hop.queries, query.text))
    recalled = yield from recall(turn, query)
    known = {passage.id for passage in turn.hop.passages}
    news = [fact for fact in recalled.facts if fact.id not in {f.id for f in turn.hop.facts}]
    if recalled.skip and not turn.sought.filters:
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

    facts, dropped = remembered(
        turn.hop.facts, news, count, options.max_facts, options.max_tokens, turn.parts.model.window
    )
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
        found = yield from find(turn, query)
    except IndexMissingError as error:
        yield ev.Notice(f"{error.message} Answering without documents. {error.hint}", "warning")
        found = ()
    chosen = tuple(turn.parts.policy.which(found, turn.hop, turn.ask))
    yield from turn.ask.drain()
    fresh = sum(1 for passage in chosen if passage.id not in known)
    yield ev.PassagesFound(query.text, chosen, fresh, time.monotonic() - started)
    return chosen


def find(turn: Turn, query: Query) -> Generator[Event, None, Sequence[Passage]]:
    """What the index has under the turn's filters; for the question's own words, up to half of it are passages that
    have its quoted phrases.

    Half, since the passages of later hops seldom have them (HotpotQA, 28 quoted questions: recall@5 54 with phrases
    alone, 70 so).
    """
    k, search, sought = turn.config.retrieve.k, turn.parts.retriever.search, turn.sought
    narrowed = Sought(query.text, query.by, filters=sought.filters) if sought.filters else query
    if not sought.phrases or query.text != turn.hop.question:
        return search(narrowed, k)
    exact = search(Sought(query.text, query.by, sought.phrases, sought.filters), (k + 1) // 2)
    if not exact:
        quoted = " and ".join(f"“{clean_line(phrase, 80)}”" for phrase in sought.phrases)
        yield ev.Notice(f"No passage has {quoted} word for word; searching for the words.", "warning")
    known = {passage.id for passage in exact}
    found = [*exact, *(passage for passage in search(narrowed, k) if passage.id not in known)][:k]
    return [replace(passage, rank=rank) for rank, passage in enumerate(found, 1)]


def capped(turn: Turn, passages: tuple[Passage, ...]) -> tuple[Passage, ...]:
    """At most as many as the policy or retrieve.max_passages says: the oldest of the lowest rank go first."""
    kept = list(passages)
    while len(kept) > (turn.parts.policy.cap or turn.config.retrieve.max_passages):
        kept.pop(max(range(len(kept)), key=lambda i: (kept[i].rank, -i)))
    return tuple(kept)
