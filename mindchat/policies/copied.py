"""Names that a model copied from the examples of its instructions.

Owns: finding them. Does not own: what follows (the policy triggers a retrieval). A copied name is written with next to
no entropy, so RIND cannot see it; the examples' names are invented, so one that stands in neither question nor passages
nor facts was copied. Such a sentence must not stand, whether or not a search brings something better.
"""

from __future__ import annotations

import re

from mindchat.prompts.side import exemplars
from mindchat.values import Draft, Trigger, TurnState


def copied(draft: Draft, hop: TurnState) -> Trigger | None:
    """A trigger at the first copied name; None if there is none. Names are told apart by case, as names are."""
    told = [f"{p.title}\n{p.text}" for p in hop.passages] + [f"{f.subject}\n{f.object}" for f in hop.facts]
    given = "\n".join([hop.question, *told])
    found = [
        match
        for name in exemplars("reasoning")["names"]
        if name not in given and (match := re.search(rf"\b{re.escape(name)}\b", draft.text))
    ]
    if not found:
        return None
    first = min(found, key=lambda match: match.start())
    return Trigger(
        first[0],
        first.start(),
        0.0,
        None,
        reason=f"{first[0]!r} is copied from the examples in the instructions",
        stands=False,
    )
