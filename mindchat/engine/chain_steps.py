"""Answering a question whose relations code can read: slot by slot, memory first, then the index, no model call.

Owns: when a plan is tried, what a slot is supplied with, that what was read is told and remembered at once, the answer
made of it. Does not own: plans and reading (mindchat.chain), search (engine.search_steps), what memory takes.
Source: MIND §3.4 for slots and memory; that code follows them is ours. Where a slot stays open the turn goes on as it
would have, with what was found.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mindchat import events as ev
from mindchat.chain.follow import Followed, Stated, Supplied, Unread, Wanted, follow
from mindchat.chain.measured import WITH_MODEL, confidence, trust
from mindchat.chain.parse import parse
from mindchat.chain.plan import Plan
from mindchat.chain.reading import Reading
from mindchat.engine.search_steps import look_up
from mindchat.engine.slot_asking import ask_slot
from mindchat.events import Event
from mindchat.memory.learning.slots import predicates
from mindchat.ports import KeepsSlots
from mindchat.text.clean import clean_line
from mindchat.trace import slot_words
from mindchat.values import Answer, Citation, Filled, Found, Passage, Query, Recalled

if TYPE_CHECKING:
    from mindchat.engine.turn import Turn

_log = logging.getLogger(__name__)
_Supplier = Callable[[Wanted | Unread], Generator[Event, None, Supplied]]
POLAR = {"yes": "Yes.", "no": "No."}


def remembered(turn: Turn) -> Generator[Event, None, Answer | None]:
    """The answer from memory alone, before anything is searched; None: go on."""
    if not (plans := _plans(turn)) or turn.parts.memory is None or turn.sought.filters:
        return None
    supply = _Supply(turn)
    for plan in plans:
        followed = yield from _followed(plan, supply.from_memory, (), turn.config.engine.language)
        if followed.answer:
            for stated in followed.steps:
                yield from supply.serve(stated)
            return (yield from _answer(turn, supply, followed))
    return None


def answered(turn: Turn) -> Generator[Event, None, Answer | None]:
    """The answer, if sentences of what was found, or of what is found on the way, fill every slot; None: go on."""
    if not (plans := _plans(turn)):
        return None
    yield turn.step("chain")
    supply = _Supply(turn)
    best: Followed | None = None
    for plan in plans:
        followed = yield from _followed(plan, supply.for_slot, turn.hop.passages, turn.config.engine.language)
        if followed.answer:
            return (yield from _answer(turn, supply, followed))
        best = best if best is not None and len(best.steps) >= len(followed.steps) else followed
    if best is not None:
        for stated in best.steps:  # what was read is known all the same
            yield from _tell(supply, stated)
        yield ev.Notice(_unanswered(best))
    return None


def _unanswered(followed: Followed) -> str:
    """Why a plan gives no answer, for people."""
    if followed.open is None:
        return "chain: what was read does not tell the two apart."
    subject, relation = followed.open
    phrase = predicates()[relation].phrase if relation in predicates() else relation
    return f"chain: no sentence states {clean_line(f'{subject} – {phrase}', 120)}."


def _plans(turn: Turn) -> tuple[Plan, ...]:
    if turn.config.engine.chain == "off" or not turn.parts.policy.chains or turn.parts.given:
        return ()
    return parse(turn.hop.question, turn.config.engine.language)


class _Supply:
    """What was found for the slots of this turn, each asked for once."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.given: dict[tuple[str, str], Supplied] = {}
        self.read: dict[tuple[str, str], tuple[Passage, Reading] | None] = {}
        self.filled: list[Filled] = []
        self.learned = 0

    def from_memory(self, wanted: Wanted | Unread) -> Generator[Event, None, Supplied]:
        """What memory says of a slot; no event, since nothing is decided yet."""
        yield from ()
        if isinstance(wanted, Unread):
            return Supplied()
        recalled = self._recalled(wanted)
        return Supplied(recalled.skip, recalled.facts[:1]) if recalled.skip else Supplied()

    def for_slot(self, wanted: Wanted | Unread) -> Generator[Event, None, Supplied]:
        """What is at hand; else memory, and then the index; where no pattern reads the sentence, the model."""
        if isinstance(wanted, Unread):
            return Supplied(read=(yield from self._asked(wanted)))
        key = (wanted.subject.casefold(), wanted.relation)
        if key not in self.given:
            self.given[key] = Supplied() if wanted.here else (yield from self._looked_up(wanted))
        return self.given[key]

    def _asked(self, unread: Unread) -> Generator[Event, None, tuple[Passage, Reading] | None]:
        """The model's reading of one slot, once a turn for each and within the policy's calls."""
        key = (unread.subject.casefold(), unread.relation)
        if key not in self.read:
            left = self.turn.parts.policy.further - len(self.read)
            self.read[key] = (yield from ask_slot(self.turn, unread)) if left > 0 else None
        return self.read[key]

    def _looked_up(self, wanted: Wanted) -> Generator[Event, None, Supplied]:
        turn, query = self.turn, _query(wanted)
        turn.hop = replace(turn.hop, number=turn.hop.number + 1)
        yield ev.QueryFormed(query, turn.hop.number)
        before, facts = turn.hop.passages, {fact.id for fact in turn.hop.facts}
        yield from look_up(turn, query, joins=True)
        known = {passage.id for passage in before}
        fresh = tuple(passage for passage in turn.hop.passages if passage.id not in known)
        name = predicates()[wanted.relation].phrase if wanted.relation else ""
        served = [p for p in turn.hop.passages if p.found is not None and p.found.by == "memory"]
        told = tuple(
            fact
            for fact in turn.hop.facts
            if fact.id not in facts and fact.predicate in (name, wanted.relation) and served
        )
        return Supplied(fresh, told[:1])

    def serve(self, stated: Stated) -> Generator[Event, None, None]:
        """Tell a slot that memory filled: a hop without a search."""
        turn, fact = self.turn, stated.remembered
        assert fact is not None
        turn.hop = replace(turn.hop, number=turn.hop.number + 1)
        query = _query(Wanted(stated.subject, stated.relation))
        passage = replace(stated.passage, found=Found("memory"))
        why = f"{fact.id} answers this ({fact.confidence:.2f})"
        turn.hop = replace(turn.hop, queries=(*turn.hop.queries, query.text))
        yield ev.QueryFormed(query, turn.hop.number)
        yield ev.FactsRecalled((fact,), why)
        yield ev.SearchSkipped((passage,), why)
        yield from _tell(self, stated)

    def _recalled(self, wanted: Wanted) -> Recalled:
        """Facts of exactly this slot."""
        memory = self.turn.parts.memory
        if memory is None or not wanted.relation:
            return Recalled()
        recalled = memory.recall(_query(wanted))
        names = (wanted.relation, predicates()[wanted.relation].phrase)
        facts = tuple(fact for fact in recalled.facts if fact.predicate in names)
        return replace(recalled, facts=facts) if facts else Recalled()


def _query(wanted: Wanted) -> Query:
    """A slot as a plain question; a name alone where only who bears it is wanted."""
    asked = predicates()[wanted.relation].question(wanted.subject) if wanted.relation else wanted.subject
    return Query(asked, "slot")


def _followed(plan: Plan, supply: _Supplier, pool: Sequence[Passage], code: str) -> Generator[Event, None, Followed]:
    way = follow(plan, pool, code)
    try:
        wanted = next(way)
        while True:
            wanted = way.send((yield from supply(wanted)))
    except StopIteration as end:
        followed: Followed = end.value
        return followed


def _tell(supply: _Supply, stated: Stated) -> Generator[Event, None, None]:
    """Tell a filled slot, and keep it."""
    turn = supply.turn
    slot = filled(stated)
    supply.filled.append(slot)
    yield ev.SlotFilled(slot, turn.hop.number)
    memory = turn.parts.memory
    if (
        stated.remembered is not None
        or stated.by_model
        or not isinstance(memory, KeepsSlots)
        or turn.config.memory.mode != "on"
    ):
        return
    if supply.learned >= turn.config.memory.per_turn:
        yield ev.FactsLearned((), (("quota", 1),))
        return
    try:
        kept = memory.keep(slot, stated.passage, turn.hop.number)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong while keeping a fact must not take the answer away
        _log.exception("keeping a slot failed")
        yield ev.Notice(f"Memory could not be updated: {error}", "warning")
        return
    if isinstance(kept, str):
        yield ev.FactsLearned((), ((kept, 1),))
    else:
        supply.learned += kept.new
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
        "memory" if fact is not None else "model" if stated.by_model else "pattern",
        fact.confidence if fact is not None else confidence(stated.relation, stated.by_model),
    )


def _answer(turn: Turn, supply: _Supply, followed: Followed) -> Generator[Event, None, Answer]:
    """The answer in the asked style, each slot with the place where it stands."""
    if not supply.filled:
        for stated in followed.steps:
            yield from _tell(supply, stated)
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
    asked = sum(slot.by == "model" for slot in slots)
    read = len({(slot.document, slot.sentence) for slot in slots})
    by = f"; the model read {asked} of {len(slots)} relations" if asked else ""
    why = f"read from {_sentences(read)}, each value cited{by}"
    how = WITH_MODEL if asked else followed.how
    return Answer(text, short, False, "sourced", tuple(citations), why, trust(how))


def _sentences(count: int) -> str:
    return "one sentence" if count == 1 else f"{count} sentences"
