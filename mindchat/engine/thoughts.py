"""Reasoning models think aloud between <think> and </think>: which of their words are reasoning to be shown to others,
and which are not.

Owns: following those marks through a running draft. Does not own: what is done with a thought (turn). A thought stays
in the model's own turn, so that it can build on it, but gives no words to extraction, queries, memory or the answer
prompt (ours: MIND does not say which words of a model that thinks aloud are its reasoning).
"""

from __future__ import annotations

OPEN, CLOSE = "<think>", "</think>"


class Thoughts:
    """State over the sentences of one turn."""

    def __init__(self) -> None:
        self.inside = False
        self.seen = False
        """Whether this model thinks aloud at all: then blank lines do not end its reasoning."""

    def opened_by(self, sent: str) -> None:
        """Some chat templates open the thought themselves; `sent` is the prompt as it is sent."""
        if sent.rstrip().endswith(OPEN):
            self.inside = self.seen = True

    def visible(self, text: str) -> str:
        """What of the next sentence lies outside thoughts; the marks themselves never do."""
        out, rest = "", text
        while rest:
            before, mark, rest = rest.partition(CLOSE if self.inside else OPEN)
            out += "" if self.inside else before
            if mark:
                self.inside, self.seen = not self.inside, True
        return out
