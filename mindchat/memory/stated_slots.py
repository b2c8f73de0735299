"""What was read of a document by patterns, kept at once.

Owns: keep_slot: the same gate as learning after an answer (redaction, hedges, the passage as it is stored now), without
the model's opinion. Does not own: reading (mindchat.chain), the gate after an answer (facts.py).
Source: MIND §3.4: what a hop finds serves the next one. The confidence is the share of right readings of that relation,
as measured, so it counts as calibrated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mindchat.events import FactLearned
from mindchat.memory.learning.direction import reversed_in_text
from mindchat.memory.learning.grounding import Grounded, hedged, titled
from mindchat.memory.learning.redaction import instruction, orders, secret
from mindchat.memory.learning.slots import Slot, predicates
from mindchat.memory.tables.ledger import Claim, Evidence
from mindchat.text.clean import clean_line
from mindchat.text.countries import RELATIONS, country_norm
from mindchat.text.folding import norm, split_title
from mindchat.text.typed_spans import value_norm
from mindchat.values import Filled, Passage, Span

if TYPE_CHECKING:
    from mindchat.memory.facts import FactMemory

LONGEST_QUOTE = 400


def keep_slot(memory: FactMemory, slot: Filled, passage: Passage, hop: int) -> FactLearned | str:
    """Store one filled slot as an active fact; the reason if something speaks against it."""
    predicate = predicates().get(slot.relation)
    if predicate is None or predicate.kind != "document":
        return "no_slot"
    subject = slot.subject
    if titled(subject, passage.title):
        subject = passage.title
    sentence = Span(slot.sentence.start - passage.start, slot.sentence.end - passage.start)
    place = Span(slot.start - passage.start, slot.end - passage.start)
    quote = _quote(sentence, place)
    line = passage.text[sentence.start : sentence.end]
    if hedged(line, predicate, subject):
        return "hedged"
    if secret(f"{subject}\n{slot.value}\n{line}"):
        return "secret"
    if instruction(f"{subject}\n{slot.value}") or instruction(line) or orders(passage.text):
        return "instruction"
    value = country_norm(slot.value) if slot.relation in RELATIONS else value_norm(slot.value, predicate.range)
    base, disambig = split_title(subject) if subject == passage.title else (subject, "")
    grounded = Grounded(
        Slot(base, predicate), slot.value, value, passage, place, quote, 2, True, True, Span(0, 0), (), True
    )
    if reversed_in_text(grounded):
        return "reversed"
    stored = memory.place(grounded)
    if stored is None:
        return "changed"
    evidence = Evidence(
        "chunk",
        "read-v1",
        2,
        stored["document_id"],
        stored["id"],
        stored["sha256"],
        grounded.quote,
        passage.start + quote.start,
        passage.start + quote.end,
        hop,
        clean_line(predicate.question(base), 200),
    )
    claim = Claim(
        clean_line(base, 200),
        predicate,
        clean_line(slot.value, 80),
        value,
        slot.confidence,
        "active",
        evidence,
        disambig,
        calibrated=True,
        lang="en",
    )
    if norm(base) == value:
        return "type"
    return memory.store_claim(claim, stored["generation"])


def _quote(sentence: Span, place: Span) -> Span:
    """The sentence, or the part of it around the value."""
    if sentence.end - sentence.start <= LONGEST_QUOTE:
        return sentence
    start = max(sentence.start, min(place.start - LONGEST_QUOTE // 2, sentence.end - LONGEST_QUOTE))
    return Span(start, min(sentence.end, start + LONGEST_QUOTE))
