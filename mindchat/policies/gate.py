"""The cheap gate: a short answer from what the model knows; if its words were unsure, one search, else none.

Owns: the policy gate. Does not own: the answer that is given (the loop asks again, with or without passages).
Source: AdaRAGUE (arXiv:2501.12835) finds that such a gate beats adaptive loops at half their price; the signal here is
the mean token entropy.
"""

from __future__ import annotations

from mindchat.policies.base import Base
from mindchat.ports import Ask
from mindchat.prompts.methods import closed_book
from mindchat.values import Query, Signal, TurnState


class Gate(Base):
    """Retrieve once if the mean entropy of a closed-book answer exceeds gate.entropy (nats per token)."""

    name = "gate"
    needs = frozenset({Signal.ENTROPY})
    reasons = False

    def before(self, hop: TurnState, ask: Ask) -> Query | None:
        """The question, or None; the measured value is told either way."""
        options = self.config.gate
        reply = ask.complete(closed_book(hop.question), max_tokens=options.max_tokens, kind="gate", stop=("\n",))
        entropies = [token.entropy for token in reply.tokens if token.entropy is not None and token.text.strip()]
        mean = sum(entropies) / len(entropies) if entropies else None
        # an empty draft is no sure answer: search
        search = mean is None or mean > options.entropy
        measured = (
            "no answer from memory"
            if mean is None
            else f"mean entropy {mean:.2f} {'>' if search else '≤'} {options.entropy:g} nats"
        )
        ask.note(f"Gate: {measured}: {'one search' if search else 'no search'}.")
        return Query(hop.question, "question") if search else None
