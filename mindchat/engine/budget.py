"""The window: what is left out when not everything fits, and that it is said.

Owns: the order of leaving out: older turns of the history, then remembered facts, then the lowest-ranked passages,
whole ones only; and the allowances that history and memory have of their own, however large the window is.
Instructions, the question and the newest turn are never left out; if they alone do not fit, WindowError. Never a silent
cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mindchat.errors import WindowError
from mindchat.events import DocumentDropped
from mindchat.values import Budget, Fact, Passage, Prompt, TurnState

MEMORY_SHARE = 10
"""Remembered facts take at most the tenth part of the window, so that a small model still reads documents."""

_ALONE = {
    False: ("The question is too long: it needs", "Shorten it, or index the text as a document and ask about it."),
    True: (
        "The question is too long beside the turn before it: together they need",
        "Shorten it, or start a new conversation.",
    ),
}

History = Sequence[tuple[str, str]]
Layout = Callable[[TurnState, History], Prompt]
"""From what is left of a turn's state to the prompt."""


class Fitted(Struct, frozen=True):
    """A prompt that fits, and what it cost."""

    prompt: Prompt
    tokens: int
    hop: TurnState
    """With the passages and facts that are in the prompt."""
    dropped: tuple[DocumentDropped, ...]


def fit(compose: Layout, hop: TurnState, history: History, count: Callable[[Prompt], int], budget: Budget) -> Fitted:
    """Compose, count, and leave out one thing at a time until prompt and room fit into the window."""
    dropped: list[DocumentDropped] = []
    while True:
        prompt = compose(hop, history)
        tokens = count(prompt)
        if tokens + budget.room <= budget.window:
            return Fitted(prompt, tokens, hop, tuple(dropped))
        over = f"{tokens + budget.room - budget.window} tokens over the window of {budget.window}"
        if len(history) > 1:
            dropped.append(DocumentDropped(f"turn: {history[0][0][:60]}", over))
            history = history[1:]
        elif hop.facts:
            dropped.append(DocumentDropped(f"memory: {hop.facts[-1].id}", over))
            hop = replace(hop, facts=hop.facts[:-1])
        elif hop.passages:
            worst = leaving(hop.passages)[0]
            dropped.append(DocumentDropped(hop.passages[worst].id, over))
            hop = replace(hop, passages=hop.passages[:worst] + hop.passages[worst + 1 :])
        else:
            what, hint = _ALONE[bool(history)]
            raise WindowError(f"{what} {tokens + budget.room} tokens, the model's window has {budget.window}.", hint)


def leaving(passages: Sequence[Passage]) -> list[int]:
    """Their indices in the order in which they are left out: the lowest-ranked first, of equal ranks the one that
    stands first.
    """
    return sorted(range(len(passages)), key=lambda i: (-passages[i].rank, i))


def recent(
    history: History, count: Callable[[str], int], turns: int, tokens: int
) -> tuple[list[tuple[str, str]], tuple[DocumentDropped, ...]]:
    """The newest turns within both allowances, oldest first, and what was left out; 0 turns or tokens: the user wants
    no history, nothing is said.

    The newest turn stays however long it is: a follow-up is about it. `count`: tokens of a text.
    """
    if not turns or not tokens:
        return [], ()
    kept: list[tuple[str, str]] = []
    used = 0
    for asked, answer in reversed(history[-turns:]):
        used += count(f"{asked}\n{answer}")
        if kept and used > tokens:
            break
        kept.insert(0, (asked, answer))
    left = history[max(0, len(history) - turns) : len(history) - len(kept)]
    dropped = [DocumentDropped(f"turn: {asked[:60]}", f"over engine.history_tokens = {tokens}") for asked, _ in left]
    if (older := len(history) - turns) > 0:
        told = "turn: the first" if older == 1 else f"turns: the first {older}"
        dropped.insert(0, DocumentDropped(told, f"over engine.history_turns = {turns}"))
    return kept, tuple(dropped)


def remembered(
    old: Sequence[Fact],
    news: Sequence[Fact],
    count: Callable[[Sequence[Fact]], int],
    most: int,
    tokens: int,
    window: int,
) -> tuple[tuple[Fact, ...], tuple[DocumentDropped, ...]]:
    """The facts that stand in the prompt: the old ones and, best first, as many new ones as the allowances admit; and
    what was left out.

    `count`: tokens of a block of facts; `most`: how many facts (memory.max_facts); `tokens`: memory.max_tokens.
    """
    allowed = min(tokens, window // MEMORY_SHARE)
    bound = f"memory.max_tokens = {tokens}" if allowed == tokens else f"a tenth of the window of {window} tokens"
    kept, dropped = list(old), []
    for fact in news:
        if len(kept) >= most:
            dropped.append(DocumentDropped(f"memory: {fact.id}", f"over memory.max_facts = {most}"))
        elif count([*kept, fact]) > allowed:
            dropped.append(DocumentDropped(f"memory: {fact.id}", f"over {bound}"))
        else:
            kept.append(fact)
    return tuple(kept), tuple(dropped)
