"""Answering a question whose relations code can read: slot by slot, memory first, then the index, no model call.

Owns: when a plan is tried, what a slot is supplied with, that what was read is told and remembered at once, the answer
made of it. Does not own: plans and reading (mindchat.chain), search (engine.search_steps), what memory takes.
Source: MIND §3.4 for slots and memory; that code follows them is ours. Where a slot stays open the turn goes on as it
would have, with what was found.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mindchat import events as ev
from mindchat.chain.follow import Followed, Stated, Supplied, Wanted, follow
from mindchat.chain.measured import confidence, trust
from mindchat.chain.parse import parse
from mindchat.chain.plan import Plan
from mindchat.engine.search_steps import capped, look_up, recall, search
from mindchat.events import Event
from mindchat.memory.learning.slots import predicates
from mindchat.ports import KeepsSlots
from mindchat.text.clean import clean_line
from mindchat.trace import slot_words
from mindchat.values import Answer, Citation, Filled, Found, Passage, Query

if TYPE_CHECKING:
    from mindchat.engine.turn import Turn

POLAR = {"yes": "Yes.", "no": "No."}


def answered(turn: Turn) -> Generator[Event, None, Answer | None]:
    """The answer, if every slot of the question can be read; None: go on."""
    if turn.config.engine.chain == "off" or not turn.parts.policy.chains or turn.parts.given:
        return None
    plans = parse(turn.hop.question, turn.config.engine.language)
    if not plans:
        return None
    yield turn.step("chain")
    supply = _Supply(turn)
    best: Followed | None = None
    for plan in plans:
        followed = yield from _followed(plan, supply)
        if followed.answer:
            return (yield from _answer(turn, supply, followed))
        best = best if best is not None and len(best.steps) >= len(followed.steps) else followed
    if best is not None and best.open is not None:
        subject, relation = best.open
        phrase = predicates()[relation].phrase if relation in predicates() else relation
        yield ev.Notice(f"chain: no sentence states {clean_line(f'{subject} – {phrase}', 120)}.")
    return None


class _Supply:
    """What was found for the slots of this turn, each asked for once."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.found: list[Passage] = []
        self.given: dict[tuple[str, str], Supplied] = {}
        self.told: set[tuple[str, str, int]] = set()
        self.filled: list[Filled] = []

    def for_slot(self, wanted: Wanted) -> Generator[Event, None, Supplied]:
        """Memory first; then, unless a passage at hand is about the subject, the index."""
        key = (wanted.subject.casefold(), wanted.relation)
        if key not in self.given:
            self.given[key] = yield from self._asked(wanted)
        return self.given[key]

    def _asked(self, wanted: Wanted) -> Generator[Event, None, Supplied]:
        turn = self.turn
        if wanted.relation:
            query = Query(predicates()[wanted.relation].question(wanted.subject), "slot")
            recalled = yield from recall(turn, query)
            facts = tuple(fact for fact in recalled.facts if fact.predicate == predicates()[wanted.relation].phrase)
            facts = facts or tuple(fact for fact in recalled.facts if fact.predicate == wanted.relation)
            if recalled.skip and facts and not turn.sought.filters:
                turn.hop = replace(turn.hop, number=turn.hop.number + 1, queries=(*turn.hop.queries, query.text))
                yield ev.QueryFormed(query, turn.hop.number)
                yield ev.FactsRecalled(recalled.facts, recalled.why)
                found = tuple(replace(passage, found=Found("memory")) for passage in recalled.skip)
                yield ev.SearchSkipped(found, recalled.why)
                self._join(found)
                return Supplied(found, facts[:1])
        if not turn.hop.queries or not any(p.found is None or p.found.by != "memory" for p in self.found):
            yield from self._first()
            return Supplied(tuple(self.found))
        if wanted.here:
            return Supplied()
        turn.hop = replace(turn.hop, number=turn.hop.number + 1)
        query = Query(wanted.subject, "slot")
        turn.hop = replace(turn.hop, queries=(*turn.hop.queries, query.text))
        yield ev.QueryFormed(query, turn.hop.number)
        found = yield from search(turn, query, {passage.id for passage in self.found})
        self._join(found)
        return Supplied(tuple(found))

    def _first(self) -> Generator[Event, None, None]:
        """The search with the question's own words, as it is made without a plan."""
        turn = self.turn
        turn.hop = replace(turn.hop, number=turn.hop.number + 1)
        query = Query(turn.hop.question, "question")
        yield ev.QueryFormed(query, turn.hop.number)
        yield from look_up(turn, query)
        self._join(turn.hop.passages)

    def _join(self, passages: Sequence[Passage]) -> None:
        known = {passage.id for passage in self.found}
        fresh = tuple(passage for passage in passages if passage.id not in known)
        self.found += fresh
        held = {passage.id for passage in self.turn.hop.passages}
        joined = (*self.turn.hop.passages, *(p for p in fresh if p.id not in held))
        self.turn.hop = replace(self.turn.hop, passages=capped(self.turn, joined))


def _followed(plan: Plan, supply: _Supply) -> Generator[Event, None, Followed]:
    way = follow(plan, supply.found, supply.turn.config.engine.language)
    told = 0
    try:
        wanted = next(way)
        while True:
            wanted = way.send((yield from supply.for_slot(wanted)))
    except StopIteration as end:
        followed: Followed = end.value
    if followed.answer:
        for stated in followed.steps[told:]:
            yield from _tell(supply, stated)
    return followed


def _tell(supply: _Supply, stated: Stated) -> Generator[Event, None, None]:
    """Tell a filled slot, and keep it."""
    turn = supply.turn
    slot = filled(stated)
    supply.filled.append(slot)
    yield ev.SlotFilled(slot, turn.hop.number)
    memory = turn.parts.memory
    if stated.remembered is not None or not isinstance(memory, KeepsSlots) or turn.config.memory.mode != "on":
        return
    kept = memory.keep(slot, stated.passage, turn.hop.number)
    if isinstance(kept, str):
        yield ev.FactsLearned((), ((kept, 1),))
    else:
        yield ev.FactsLearned((kept,))


def filled(stated: Stated) -> Filled:
    """A slot as events tell it."""
    fact, predicate = stated.remembered, predicates()[stated.relation]
    return Filled(
        stated.subject,
        stated.relation,
        predicate.phrase,
        stated.value,
        stated.passage.id,
        stated.passage.document,
        stated.start,
        stated.end,
        stated.sentence,
        "pattern" if fact is None else "memory",
        confidence(stated.relation) if fact is None else fact.confidence,
    )


def _answer(turn: Turn, supply: _Supply, followed: Followed) -> Generator[Event, None, Answer]:
    """The answer in the asked style, each slot with the place where it stands."""
    slots = supply.filled
    numbers: dict[tuple[str, int, int], int] = {}
    citations: list[Citation] = []
    for slot, stated in zip(slots, followed.steps, strict=True):
        where = (slot.document, slot.start, slot.end)
        if where not in numbers:
            numbers[where] = len(citations) + 1
            citations.append(
                Citation(len(citations) + 1, slot.document, slot.passage, slot.start, slot.end, stated.value, "span")
            )
    short = followed.answer
    text = short
    if turn.config.answer.style == "full":
        lines = [
            f"{clean_line(slot_words(slot), 300)} [{numbers[slot.document, slot.start, slot.end]}]" for slot in slots
        ]
        text = "\n\n".join(
            [
                POLAR.get(short, f"{short}{'' if turn.words.finished(short) else '.'}"),
                "\n".join(f"- {line}" for line in lines),
            ]
        )
    yield ev.DraftAccepted(text, "answer", 0)
    why = f"read from {_sentences(len(citations))}, each cited; no model was asked"
    return Answer(text, short, False, "sourced", tuple(citations), why, trust(followed.how))


def _sentences(count: int) -> str:
    return "one sentence" if count == 1 else f"{count} sentences"
