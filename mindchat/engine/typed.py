"""An answer that is not of the asked type: a sentence is cut to the part that is, the rest is doubtful.

Owns: which part of a sentence is of the asked type. Does not own: types (mindchat.evidence), the next hop of a bridge
(engine.auto_steps).
Source: ours. Cut only where one part alone fits: a sentence with two such parts is left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mindchat.engine.answering import asked_names
from mindchat.evidence import Asked, Asking, asking
from mindchat.evidence.fitting import Misfit, kind_of, misfit
from mindchat.text.folding import fold
from mindchat.text.names import find_names
from mindchat.values import Passage

if TYPE_CHECKING:
    from mindchat.engine.turn import Turn

WANTED = {Asked.WHO: "person", Asked.WHERE: "place"}
WORDS: dict[Misfit, str] = {
    "yes_no": "it says yes or no to another kind of question",
    "sentence": "it is a sentence where a few words are asked",
    "echo": "it repeats a name of the question",
    "bridge": "it names a step on the way, not its end",
    "kind": "it is not of the kind that is asked",
}
"""Why an answer does not fit, for people."""


def unfit(turn: Turn, short: str) -> Misfit:
    """Why a short answer is not of the asked type; "" if nothing speaks against it, or answer.typed is off."""
    if turn.config.answer.typed == "off":
        return ""
    return misfit(short, turn.hop.question, asking(turn.config.engine.language), turn.grounds(turn.hop).passages)


def cut_to_span(turn: Turn, short: str) -> str:
    """The one part of a sentence that is of the asked type; "" if there is none, or more than one."""
    ask, question = asking(turn.config.engine.language), turn.hop.question
    found = _parts(short, question, ask, turn.grounds(turn.hop).passages)
    return found[0] if len(found) == 1 else ""


def _parts(short: str, question: str, ask: Asking, passages: Sequence[Passage]) -> list[str]:
    asked = ask.asked(question)
    if asked is Asked.WHICH_OF_TWO:
        return [name for name in asked_names(question, ask.words) if fold(name) in fold(short)]
    kinds = find_names(short, ask.words)
    if asked is Asked.WHEN:
        return [text for text, _, _, kind in kinds if kind != "name" and ask.spans["date"].search(text)]
    given = fold(question)
    names = [text for text, _, _, kind in kinds if kind == "name" and fold(text) not in given]
    return [name for name in names if kind_of(name, passages, ask) == WANTED[asked]] if asked in WANTED else []
