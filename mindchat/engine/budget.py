"""The window: what is left out when not everything fits, and that it is said.

Owns: the order of leaving out: oldest turns of the history, then remembered facts, then the lowest-ranked passages, whole ones only.
Instructions, the question and the newest turn are never left out; if they alone do not fit, WindowError. Never a silent cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mindchat.errors import WindowError
from mindchat.events import DocumentDropped
from mindchat.values import Budget, Hop, Prompt

History = Sequence[tuple[str, str]]
Layout = Callable[[Hop, History], Prompt]
"""From what is left of a turn's state to the prompt."""


class Fitted(Struct, frozen=True):
    """A prompt that fits, and what it cost."""

    prompt: Prompt
    tokens: int
    hop: Hop
    """With the passages and facts that are in the prompt."""
    dropped: tuple[DocumentDropped, ...]


def fit(compose: Layout, hop: Hop, history: History, count: Callable[[Prompt], int], budget: Budget) -> Fitted:
    """Compose, count, and leave out one thing at a time until prompt and room fit into the window."""
    dropped: list[DocumentDropped] = []
    while True:
        prompt = compose(hop, history)
        tokens = count(prompt)
        if tokens + budget.room <= budget.window:
            return Fitted(prompt, tokens, hop, tuple(dropped))
        over = f"{tokens + budget.room - budget.window} tokens over the window of {budget.window}"
        if history:
            dropped.append(DocumentDropped(f"turn: {history[0][0][:60]}", over))
            history = history[1:]
        elif hop.facts:
            dropped.append(DocumentDropped(f"memory: {hop.facts[-1].id}", over))
            hop = replace(hop, facts=hop.facts[:-1])
        elif hop.passages:
            worst = max(range(len(hop.passages)), key=lambda i: (hop.passages[i].rank, -i))
            dropped.append(DocumentDropped(hop.passages[worst].id, over))
            hop = replace(hop, passages=hop.passages[:worst] + hop.passages[worst + 1 :])
        else:
            raise WindowError(
                f"The question is too long: it needs {tokens + budget.room} tokens, the model's window has {budget.window}.",
                "Shorten it, or index the text as a document and ask about it.",
            )
