"""Answer from one search in one call; only where that answer is unsure, go on for a few calls.

Owns: the first search and how many calls may follow. Does not own: what they are (engine.auto_steps). Source: ours.
"""

from __future__ import annotations

from mindchat.policies.schedules import Once


class Auto(Once):
    """Once, and at most two more calls where its answer does not fit, stands nowhere or was written unsurely."""

    name = "auto"
    further = 2
    chains = True
