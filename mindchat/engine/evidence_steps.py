"""The step between search and answer: which sentences of the passages the answer is read from, and whether they can
hold it.

Owns: when evidence is chosen, that it is told, what the answer prompt then holds. Does not own: choosing and judging
(mindchat.evidence), the window (engine.budget), citations (engine.answering). No model call. Whole passages stay: where
they were given with the question (CoRe's setting), with retrieve.evidence = passages, and where the copies are
reworded, because a rewording is kept from question to question and evidence is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mindchat import events as ev
from mindchat.errors import IndexMissingError
from mindchat.events import Event
from mindchat.evidence import asking, select
from mindchat.evidence.answerable import judge
from mindchat.ports import CountsWords
from mindchat.prompts.rewriting import KINDS
from mindchat.values import Evidence, Passage, Span, WordCounts

if TYPE_CHECKING:
    from mindchat.engine.turn import Turn


def choose(turn: Turn) -> Iterator[Event]:
    """Set turn.answerable and cut the turn's passages to their evidence, unless they stay whole. Nothing happens where
    nothing was searched.
    """
    passages, options = turn.hop.passages, turn.config.retrieve
    counts = _counts(turn)
    if turn.parts.given or not turn.hop.queries or not (passages or counts):
        return
    ask = asking(turn.config.engine.language)
    chosen = select(turn.hop.question, passages, options.evidence_words, ask)
    turn.answerable = judge(turn.hop.question, passages, chosen, counts, ask)
    if options.evidence == "passages" or (turn.config.layout.as_ in KINDS and turn.config.layout.repeat != 0):
        chosen = ()
    else:
        turn.hop = replace(turn.hop, passages=shown(passages, chosen))
    turn.rarity_known = counts is not None
    words = sum(len(passage.read.split()) for passage in turn.hop.passages)
    yield ev.EvidenceChosen(chosen, words, sum(len(passage.text.split()) for passage in passages), turn.answerable)


def shown(passages: Sequence[Passage], chosen: Sequence[Evidence]) -> tuple[Passage, ...]:
    """The passages that have evidence, in their order, each with the stretches that are to be read."""
    spans: dict[str, list[Span]] = {}
    starts = {passage.id: passage.start for passage in passages}
    for evidence in chosen:
        start = starts[evidence.passage]
        spans.setdefault(evidence.passage, []).append(Span(evidence.start - start, evidence.end - start))
    return tuple(replace(passage, shown=tuple(spans[passage.id])) for passage in passages if passage.id in spans)


def _counts(turn: Turn) -> WordCounts | None:
    """How rare the question's words are in the index; None if nothing can tell."""
    retriever = turn.parts.retriever
    if not isinstance(retriever, CountsWords):
        return None
    try:
        return retriever.count_words(turn.hop.question)
    except IndexMissingError:  # the passages come from memory alone
        return None
