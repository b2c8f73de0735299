"""What the first prompt of every question begins with, read before there is a question.

Owns: which prompts stand for all first prompts of a configuration. Does not own: their wording (composer, policy),
finding what they share and keeping it (models). Nothing is told twice: the prompts are laid out by the parts that lay
out a real turn's, for inputs that differ wherever two turns may differ, so what they share is the constant part,
exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mindchat.ports import NEVER, Cancel, ReadsAhead
from mindchat.values import Fact, Passage, Prompt, TurnState

if TYPE_CHECKING:
    from mindchat.engine.loop import Parts

_PASSAGE = Passage("p", "p", "P", "P.", 0, 2, 0.0, 1)
_FACT = Fact("m", "s", "p", "o", 0.0, "d", "p", "s p o")
_HOPS = (
    TurnState(0, "Who?"),
    TurnState(0, "Is it?"),
    TurnState(0, "Who?", passages=(_PASSAGE,)),
    TurnState(0, "Who?", facts=(_FACT,)),
)
_PAST = (("Who came before?", "Nobody"),)


def openings(parts: Parts) -> tuple[Prompt, ...]:
    """First prompts of a turn, as different from each other as they can be: with and without documents and memory, for
    two questions, with and without history.
    """
    if parts.policy.reasons:
        return tuple(parts.policy.lay(parts.composer.reasoning(hop, (), ())) for hop in _HOPS)
    plain = (parts.composer.answer(hop, 0, ()) for hop in _HOPS)
    return (*plain, parts.composer.answer(_HOPS[0], 0, _PAST))


def read_ahead(parts: Parts, cancel: Cancel = NEVER) -> int:
    """Let the model read what they share; how many tokens that is, 0 for a model that keeps nothing between calls.

    Raises Interrupted when cancelled; what was read by then is kept.
    """
    if not isinstance(parts.model, ReadsAhead):
        return 0
    first, *others = openings(parts)
    return parts.model.warm(first, *others, cancel=cancel)
