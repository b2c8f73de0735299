"""“Your documents do not say”: when no answer is generated, and what is said instead.

Owns: the two reasons to refuse (a name that no document has, too little evidence), reading a mistyped name as the one
that is there, the words.
Does not own: finding missing names (corpus), answerability (mindchat.evidence), the settings that switch it off
(answer.refuse). What memory holds counts as said: where it has facts for the question, no name is missing.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mindchat import events as ev
from mindchat.events import Event
from mindchat.text.clean import clean_line
from mindchat.text.folding import fold
from mindchat.values import Absent, Answer, Query

if TYPE_CHECKING:
    from mindchat.engine.turn import Turn

NOTHING_SAID = "Your documents do not say."
"""What people read when the documents hold no answer."""
MISTYPED = 0.85
"""Least share of equal characters (difflib's ratio) for a name that is read as another one."""
_DIGITS = re.compile(r"\d+")


def mistyped(absent: Absent) -> str:
    """The one near name that a missing name surely stands for; "" if none does. A name with another number is another
    name.
    """
    name = fold(absent.name)
    if len(name) < 5:
        return ""
    likeness = [(difflib.SequenceMatcher(None, name, fold(near)).ratio(), near) for near in absent.near]
    sure = [
        near for share, near in likeness if share >= MISTYPED and _DIGITS.findall(near) == _DIGITS.findall(absent.name)
    ]
    return sure[0] if len(sure) == 1 else ""


def read_names(turn: Turn, absent: Sequence[Absent]) -> Iterator[Event]:
    """Put names that are there in the place of mistyped ones, and say so; the others are kept in turn.absent."""
    question = turn.hop.question
    for item in absent:
        meant = "" if turn.as_typed else mistyped(item)
        if meant and item.name in question:
            question = question.replace(item.name, meant)
        else:
            turn.absent = (*turn.absent, item)
    if question != turn.hop.question:
        turn.hop = replace(turn.hop, question=question)
        yield ev.QuestionRewritten(question)


def names_missing(turn: Turn) -> Answer | None:
    """The answer to a question about names that no document has, before anything is searched; None: go on."""
    policy = turn.parts.policy
    if not (refuses(turn) and turn.absent and policy.searches) or (turn.parts.memory is not None and _remembered(turn)):
        return None
    said = " ".join(_missing(item) for item in turn.absent)
    names = ", ".join(f"“{clean_line(item.name, 80)}”" for item in turn.absent)
    return _refused(f"{NOTHING_SAID} {said}", f"no document names {names}")


def too_little(turn: Turn) -> Answer | None:
    """The answer where the evidence cannot hold one, before the answer's model call; None: go on."""
    found = turn.answerable
    if not refuses(turn) or found is None or found.enough or not turn.rarity_known or turn.hop.facts:
        return None
    return _refused(
        f"{NOTHING_SAID} Nothing that was found states what you ask.",
        f"what was found is unlikely to hold an answer ({found.p:.2f})",
    )


def refuses(turn: Turn) -> bool:
    """Whether this turn may be refused at all: not where the passages came with the question."""
    return turn.config.answer.refuse == "on" and not turn.parts.given


def _remembered(turn: Turn) -> bool:
    memory = turn.parts.memory
    assert memory is not None
    recalled = memory.recall(Query(turn.hop.question, "question"))
    return bool(recalled.facts or recalled.skip)


def _missing(item: Absent) -> str:
    near = ", ".join(f"“{clean_line(name, 80)}”" for name in item.near)
    return f"No document names “{clean_line(item.name, 80)}”." + (f" Near: {near}." if near else "")


def _refused(text: str, why: str) -> Answer:
    return Answer(text, "", True, "not_in_documents", (), why)
