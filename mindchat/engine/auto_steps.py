"""Going on where the first answer is unsure (policy auto): the hop that a bridge asks for, then a second reading with a
copy; the surer answer stays.

Owns: when an answer is sure, the sub-query of a bridge, which of two answers is surer. Does not own: types
(engine.typed), copies (engine.reading, CoRe), search (engine.search_steps), the answer call (engine.answer_steps).
Source: ours; the copy is CoRe's. Without entropy from the model, type and place decide.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from mindchat import events as ev
from mindchat.answers import says_unknown
from mindchat.engine.answering import answer_tokens, citable, cite
from mindchat.engine.evidence_steps import choose
from mindchat.engine.reading import Reading
from mindchat.engine.search_steps import look_up
from mindchat.engine.typed import WORDS, unfit
from mindchat.events import Event
from mindchat.evidence import asking
from mindchat.text.clean import clean_line
from mindchat.text.folding import fold
from mindchat.values import Draft, Query

if TYPE_CHECKING:
    from mindchat.engine.answer_steps import Said
    from mindchat.engine.turn import Turn

SURE = 2.4
"""Nats: the largest entropy of a word of a sure answer. A third of the first answers of the even development rows (n =
57) lie above.
"""
Ask = Callable[[Reading], Generator[Event, None, "Said"]]


class _Judged(Struct, frozen=True):
    """What the first reading says of its own answer."""

    doubt: str
    """Why it is not sure, in words; "" if it is."""
    bridge: bool
    rank: tuple[bool, bool, bool, float]
    """The greater the surer: says something, fits, stands in a passage, minus its largest entropy."""


def surer(turn: Turn, first: Said, ask: Ask) -> Generator[Event, None, Said]:
    """The first answer if it is sure; else the surest after at most policy.further more calls. `ask` reads again."""
    best, judged, left = first, _judge(turn, first), turn.parts.policy.further
    if left and judged.doubt and judged.bridge:
        yield ev.Notice(f"auto: {clean_line(best.short, 60)}: {judged.doubt}; one more hop.")
        if (yield from _hop(turn, best.short)):
            left -= 1
            best, judged = _better(turn, best, judged, (yield from ask(Reading(0))))
    repeat = turn.config.layout.repeat
    if left and judged.doubt and repeat != 0 and turn.hop.passages:
        yield ev.Notice(
            f"auto: {clean_line(best.short, 60) or 'no answer'}: {judged.doubt}; the documents are read again with a"
            " copy."
        )
        best, judged = _better(turn, best, judged, (yield from ask(Reading(repeat if isinstance(repeat, int) else 1))))
    return best


def _better(turn: Turn, best: Said, judged: _Judged, other: Said) -> tuple[Said, _Judged]:
    now = _judge(turn, other)
    return (other, now) if now.rank > judged.rank else (best, judged)


def _judge(turn: Turn, said: Said) -> _Judged:
    misfit = unfit(turn, said.short)
    silent = says_unknown(said.short)
    placed = bool(cite(said.short, "", turn.grounds(turn.hop).passages)) or (not misfit and not citable(said.short))
    entropy = largest_entropy(said.draft)
    doubts = {
        "it says nothing": silent,
        WORDS.get(misfit, ""): bool(misfit),
        "it stands in no passage": not placed,
        f"a word of it has an entropy of {entropy:.2f}, over {SURE:g} nats": entropy > SURE,
    }
    doubt = next((words for words, holds in doubts.items() if holds), "")
    return _Judged(doubt, misfit == "bridge", (not silent, not misfit, placed, -entropy))


def largest_entropy(draft: Draft) -> float:
    """The largest entropy among the answer's tokens, nats; 0 where none is measured."""
    return max((token.entropy or 0.0 for token in answer_tokens(draft)), default=0.0)


def _hop(turn: Turn, name: str) -> Generator[Event, None, bool]:
    """Search for the asked relation of a name that was reached, and choose the evidence anew; whether anything new was
    found.
    """
    query = Query(bridge_query(turn, name), "relation")
    turn.hop = replace(turn.hop, number=turn.hop.number + 1)
    yield ev.QueryFormed(query, turn.hop.number)
    fresh = yield from look_up(turn, query)
    # whole passages again: what was read of them was chosen for the first search
    turn.hop = replace(turn.hop, passages=tuple(replace(passage, shown=()) for passage in turn.hop.passages))
    yield from choose(turn)
    return fresh > 0


def bridge_query(turn: Turn, name: str) -> str:
    """The name and the question's words for a relation: "Fritz Lang born"."""
    ask = asking(turn.config.engine.language)
    words = (word.strip(".,;:?!") for word in turn.hop.question.split())
    return " ".join([name, *(word for word in words if ask.stem(fold(word)) in ask.relations)])
