"""One slot put to the model as a plain question over the passages about its subject.

Owns: ask_slot: the call, and what of its words is taken: a span that stands there and is of the relation's type.
Does not own: which slot (engine.chain_steps), wording (prompts), the follower.
Source: MIND §3.4: each slot is a question of its own. A question of one hop is what small models can answer.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mindchat.answers import extract_short, says_unknown
from mindchat.chain.follow import Unread
from mindchat.chain.reading import Reading
from mindchat.engine.answering import citable, locate
from mindchat.engine.auto_steps import SURE, largest_entropy
from mindchat.engine.evidence_steps import shown
from mindchat.engine.generation import generate
from mindchat.engine.reading import answer_layout, answer_room
from mindchat.events import Event
from mindchat.evidence import asking, select
from mindchat.evidence.fitting import is_sentence
from mindchat.memory.learning.slots import predicates
from mindchat.text.folding import norm
from mindchat.text.typed_spans import type_ok
from mindchat.values import Passage, Span

if TYPE_CHECKING:
    from mindchat.engine.turn import Turn


def ask_slot(turn: Turn, unread: Unread) -> Generator[Event, None, tuple[Passage, Reading] | None]:
    """The passage and the place of the model's answer; None where it is no answer that can stand."""
    question = predicates()[unread.relation].question(unread.subject)
    ask = asking(turn.config.engine.language)
    chosen = select(question, unread.passages, turn.config.retrieve.evidence_words, ask)
    passages = shown(unread.passages, chosen) or unread.passages
    before = turn.hop
    turn.hop = replace(before, question=question, passages=passages)
    try:
        prompt = yield from turn.compose("slot", answer_room(turn), answer_layout(turn, 0, None))
        draft = yield from generate(turn, prompt, kind="slot", max_tokens=turn.config.answer.max_tokens, channel=None)
    finally:
        turn.hop = before
    short = extract_short(f"Answer: {draft.text}")
    if says_unknown(short) or not citable(short) or is_sentence(short, ask) or largest_entropy(draft) > SURE:
        return None
    if norm(short) == norm(unread.subject) or not type_ok(short, predicates()[unread.relation].range):
        return None
    for passage in unread.passages:
        if (place := locate(short, passage.text)) is not None:
            sentences = turn.words.sentence_spans(passage.text)
            around = next((span for span in sentences if span.start <= place[0] < span.end), Span(*place))
            return passage, Reading(passage.text[place[0] : place[1]], *place, around, 0)
    return None
