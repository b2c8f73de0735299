"""Following a plan: each slot's value is read from a sentence about its subject and becomes the next slot's subject.

Owns: follow, Wanted, Stated, Followed. Does not own: search and memory (whoever drives the generator), patterns
(reading), which passage bears a name (naming).
Source: MIND §3.4 (slots asked one by one, memory first); comparing values instead of asking a model is ours.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mindchat.chain.naming import bearers, gender, told_of
from mindchat.chain.parse import LIFESPAN
from mindchat.chain.plan import Comparison, Name, Plan, Sameness, Step, Term
from mindchat.chain.reading import Reading, read
from mindchat.memory.learning.slots import predicates
from mindchat.text.countries import country_norm
from mindchat.text.folding import norm
from mindchat.text.typed_spans import iso_date
from mindchat.values import Fact, Passage, Span

KINDS = {"director": "film", "performer": "song", "composer": "", "author": ""}
"""A word by which the first sentence of what has this relation is known."""
PARENTS = {"father": "male", "mother": "female"}


class Wanted(Struct, frozen=True):
    """What the follower needs to go on: what memory and index have about a name."""

    subject: str
    relation: str
    """ "" if only the passages about the subject are wanted."""
    here: bool = False
    """Whether a passage at hand is about it; then only memory need be asked."""


class Unread(Struct, frozen=True):
    """A slot that no pattern reads although passages are about its subject; whoever drives may ask a model."""

    subject: str
    relation: str
    passages: tuple[Passage, ...]


class Supplied(Struct, frozen=True):
    """What whoever drives found."""

    passages: tuple[Passage, ...] = ()
    facts: tuple[Fact, ...] = ()
    """Of this very slot, from memory."""
    read: tuple[Passage, Reading] | None = None
    """The answer to Unread."""


class Stated(Struct, frozen=True):
    """One slot with its value and the place where it stands."""

    subject: str
    relation: str
    value: str
    passage: Passage
    start: int
    """Characters of the document's text, as in Citation."""
    end: int
    sentence: Span
    """Of the document's text."""
    remembered: Fact | None = None
    """The fact of memory that said so; None if the value was read now."""
    by_model: bool = False
    """Whether a model read it."""


class Followed(Struct, frozen=True):
    """What became of a plan."""

    answer: str
    """ "" if some slot stayed open."""
    steps: tuple[Stated, ...]
    """Slots that were filled, in order."""
    open: tuple[str, str] | None = None
    """The first (subject, relation) that nothing states."""
    how: str = "chain"
    """chain, comparison or sameness."""


Follow = Generator[Wanted | Unread, Supplied, Followed]


_Read = tuple[Passage, Reading]


class _Open(Exception):
    """A slot that nothing fills."""

    def __init__(self, subject: str, relation: str) -> None:
        super().__init__(subject, relation)
        self.slot = (subject, relation)


class _Way:
    """The state of one plan."""

    def __init__(self, pool: Sequence[Passage], code: str) -> None:
        self.pool = list(pool)
        self.code = code
        self.steps: list[Stated] = []

    def add(self, passages: Sequence[Passage]) -> None:
        known = {passage.id for passage in self.pool}
        self.pool += [passage for passage in passages if passage.id not in known]

    # ── terms ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def value(self, step: Step) -> Generator[Wanted | Unread, Supplied, Stated]:
        """The value of a relation. Raises _Open."""
        if isinstance(step.of, Name):
            roles: tuple[str, ...] = ()
            name, hint, told = step.of.text, step.of.hint, ""
        else:
            before = yield from self.value(step.of)
            name, hint, told, roles = before.value, "", before.subject, predicates()[step.of.relation].nouns
        kind = KINDS.get(step.relation, "")
        here = bool(self.about(name, hint, told, kind, roles))
        supplied = yield Wanted(name, step.relation, here)
        self.add(supplied.passages)
        for fact in supplied.facts:
            source = next((p for p in self.pool if p.id == fact.passage), None)
            if source is not None and (at := source.text.find(fact.object)) >= 0:
                return self.found(_stated(name, step.relation, source, _remembered(source, fact, at), fact))
        about = self.about(name, hint, told, kind, roles)
        for passage, reading in (yield from self.readings(step, name, about)):
            return self.found(_stated(name, step.relation, passage, reading))
        if about:
            asked = yield Unread(name, step.relation, tuple(about))
            if asked.read is not None:
                return self.found(replace(_stated(name, step.relation, *asked.read), by_model=True))
        raise _Open(name, step.relation)

    def found(self, stated: Stated) -> Stated:
        """Note a filled slot. Raises _Open where the way comes back to where it was."""
        been = {norm(step.subject) for step in self.steps} | {norm(stated.subject)}
        if norm(stated.value) in been:
            raise _Open(stated.subject, stated.relation)
        self.steps.append(stated)
        return stated

    def readings(
        self, step: Step, name: str, about: Sequence[Passage]
    ) -> Generator[Wanted | Unread, Supplied, list[_Read]]:
        """What the passages about a name state, the surest first, of the gender that the question asks for."""
        wanted = PARENTS.get(step.relation) or step.gender
        found = [(p, r) for p in about for r in read(step.relation, p, p.title, self.code)]
        if step.relation == "spouse" and isinstance(step.of, Step) and step.of.relation in PARENTS:
            parents = [norm(s.value) for s in self.steps if s.relation in PARENTS]
            found = [(p, r) for p, r in found if norm(r.value) not in parents]
        if not wanted:
            return found
        other = {"father": "mother", "mother": "father"}.get(step.relation, "")
        others = [(p, r) for p in about for r in read(other, p, p.title, self.code)] if other else []
        kept: list[tuple[bool, _Read]] = []
        for number, (p, r) in enumerate([*found, *others]):
            of = self.gender(r.value, name)
            if not of and len(found) + len(others) > 1:
                self.add((yield Wanted(r.value, "")).passages)
                of = self.gender(r.value, name)
            if of == wanted or (not of and number < len(found)):
                kept.append((not of, (p, r)))
        return [pair for _, pair in sorted(kept, key=lambda item: item[0])]

    def about(self, name: str, hint: str, told: str, kind: str, roles: Sequence[str]) -> list[Passage]:
        """The passages about a name; where there is none, what others tell of it."""
        borne = bearers(name, self.pool, hint, told, kind, self.code, roles)
        return borne or told_of(name, self.pool, self.code)

    def gender(self, name: str, told: str) -> str:
        """Of whom a name means, as far as the passages at hand tell."""
        return gender(name, bearers(name, self.pool, told=told, code=self.code), self.code)

    # ── what is compared ─────────────────────────────────────────────────────────────────────────────────────────────

    def term(self, term: Term, relation: str) -> Generator[Wanted | Unread, Supplied, Stated]:
        """The value that a comparison needs of one of its terms."""
        return (yield from self.value(Step(relation, term)))


def _stated(subject: str, relation: str, passage: Passage, reading: Reading, fact: Fact | None = None) -> Stated:
    start = passage.start
    sentence = Span(start + reading.sentence.start, start + reading.sentence.end)
    return Stated(subject, relation, reading.value, passage, start + reading.start, start + reading.end, sentence, fact)


def _remembered(source: Passage, fact: Fact, at: int) -> Reading:
    quoted = source.text.find(fact.quote) if fact.quote else -1
    if quoted >= 0:
        at = source.text.find(fact.object, quoted)
    sentence = Span(quoted, quoted + len(fact.quote)) if quoted >= 0 else Span(at, at + len(fact.object))
    return Reading(fact.object, at, at + len(fact.object), sentence, 0)


def follow(plan: Plan, pool: Sequence[Passage], code: str = "en") -> Follow:
    """Follow a plan over passages; asks for more by yielding Wanted, and is sent Supplied."""
    way = _Way(pool, code)
    try:
        if isinstance(plan, Comparison):
            answer = yield from _compare(plan, way)
            return Followed(answer, tuple(way.steps), None, "comparison")
        if isinstance(plan, Sameness):
            answer = yield from _same(plan, way)
            return Followed(answer, tuple(way.steps), None, "sameness")
        last = yield from way.value(plan)
        return Followed(last.value, tuple(way.steps))
    except _Open as error:
        return Followed("", tuple(way.steps), error.slot, type(plan).__name__.lower())


def _compare(plan: Comparison, way: _Way) -> Generator[Wanted | Unread, Supplied, str]:
    sizes = []
    for term in plan.terms:
        if plan.relation == LIFESPAN:
            born = yield from way.term(term, "date_of_birth")
            died = yield from way.term(term, "date_of_death")
            sizes.append(_years(born.value, died.value))
        else:
            sizes.append(_size((yield from way.term(term, plan.relation)).value, plan.relation))
    first, second = sizes
    if first is None or second is None or first == second or _within(first, second):
        return ""
    least = 0 if first < second else 1
    chosen = plan.names[least if plan.want == "least" else 1 - least]
    return chosen.written or chosen.text


def _same(plan: Sameness, way: _Way) -> Generator[Wanted | Unread, Supplied, str]:
    values = []
    for term in plan.terms:
        values.append((yield from way.term(term, plan.relation)).value)
    first, second = map(country_norm, values)
    return "yes" if first == second else "no"


def _size(value: str, relation: str) -> tuple[float, ...] | None:
    """What a value is compared by."""
    known = predicates().get(relation)
    if known is not None and known.range == "date":
        iso = iso_date(value)
        return tuple(float(part) for part in iso.split("-")) if iso else None
    number = re.search(r"\d[\d,]*(?:\.\d+)?", value)
    return (float(number[0].replace(",", "")),) if number else None


def _within(first: tuple[float, ...], second: tuple[float, ...]) -> bool:
    """Whether one date is only the year or month of the other: which is earlier is then unknown."""
    short = min(len(first), len(second))
    return len(first) != len(second) and first[:short] == second[:short]


def _years(born: str, died: str) -> tuple[float, ...] | None:
    start, end = iso_date(born), iso_date(died)
    if not start or not end:
        return None
    a, b = ([float(part) for part in iso.split("-")] + [0.0, 0.0] for iso in (start, end))
    return (b[0] - a[0] + (b[1] - a[1]) / 12 + (b[2] - a[2]) / 365,)
