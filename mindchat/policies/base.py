"""What most policies share: no search before the first word, no entities, all passages kept, the loop's own prompt.

Owns: Base, and the small facts about sentences that several methods need. Does not own: any decision.
"""

from __future__ import annotations

from collections.abc import Sequence

from mindchat.config import Config
from mindchat.ports import Ask, Basis
from mindchat.text.language import language
from mindchat.values import Draft, Entity, Passage, Prompt, Query, Relation, Signal, Trigger, TurnState, Verdict


class Base:
    """Never retrieves; subclasses change what their method does differently."""

    name = ""
    needs: frozenset[Signal] = frozenset()
    reasons = True
    extracts = False
    retracts = False
    accumulates = True
    tokens = 0
    cap = 0
    searches = True
    further = 0
    chains = False

    def __init__(self, config: Config) -> None:
        self.config = config
        self.words = language(config.engine.language)

    def lay(self, prompt: Prompt) -> Prompt:
        """The loop's own prompt."""
        return prompt

    def before(self, hop: TurnState, ask: Ask) -> Query | None:
        """Nothing is searched before the first word."""
        del hop, ask
        return None

    def when(self, draft: Draft, hop: TurnState, ask: Ask) -> Verdict:
        """Never triggers."""
        del draft, hop, ask
        return Verdict(formula="never")

    def what(
        self,
        trigger: Trigger,
        draft: Draft,
        kept: Sequence[Entity],
        relations: Sequence[Relation],
        hop: TurnState,
        ask: Ask,
    ) -> Query | tuple[Query, ...]:
        """The question itself."""
        del trigger, draft, kept, relations, ask
        return Query(hop.question, "question")

    def which(self, found: Sequence[Passage], hop: TurnState, ask: Ask) -> Sequence[Passage]:
        """All of them."""
        del hop, ask
        return found

    def basis(self, hop: TurnState, ask: Ask) -> Basis:
        """Both: the loop's one answer over reasoning and passages."""
        del hop, ask
        return "both"


def scheduled(draft: Draft, reason: str) -> Trigger:
    """A trigger that comes by the clock: the whole draft stands."""
    words = draft.text.split()
    return Trigger(words[-1] if words else "", len(draft.text), 0.0, None, reason=reason)


class Rewriting:
    """Whether the sentence at hand is being written again: the methods below accept it as it then comes, as their
    papers do.
    """

    def __init__(self) -> None:
        self._sentences = -1

    def begin(self, hop: TurnState) -> None:
        """A search for the sentence that comes after the accepted ones."""
        self._sentences = len(hop.sentences)

    def reset(self) -> None:
        """A new turn."""
        self._sentences = -1

    def now(self, hop: TurnState) -> bool:
        """Whether that sentence is still the one at hand."""
        return self._sentences == len(hop.sentences)
