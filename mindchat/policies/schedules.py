"""Policies that do not look at the model: never, once before the first word, after every n sentences.

Owns: none, once (single retrieval, SR-RAG), sentences (FS-RAG for n = 1). Does not own: adaptive decisions.
Source: DRAGIN §4.2 names the baselines; methods.md B5.
"""

from __future__ import annotations

from collections.abc import Sequence

from mindchat.config import Config
from mindchat.language import language
from mindchat.policies.queries import sentence_query
from mindchat.ports import Ask
from mindchat.values import Draft, Entity, Hop, Passage, Query, Relation, Signal, Trigger, Verdict


class NoRetrieval:
    """Answer from what the model knows, or from the passages it was given."""

    name = "none"
    needs: frozenset[Signal] = frozenset()
    reasons = False
    extracts = False
    retracts = False
    accumulates = True

    def __init__(self, config: Config) -> None:
        self._config = config

    def before(self, hop: Hop, ask: Ask) -> Query | None:
        """Nothing is searched."""
        del hop, ask
        return None

    def when(self, draft: Draft, hop: Hop, ask: Ask) -> Verdict:
        """Never triggers."""
        del draft, hop, ask
        return Verdict(formula="never")

    def what(self, trigger: Trigger, draft: Draft, kept: Sequence[Entity], relations: Sequence[Relation], hop: Hop, ask: Ask) -> Query:
        """The question itself."""
        del trigger, draft, kept, relations, ask
        return Query(hop.question, "question")

    def which(self, found: Sequence[Passage], hop: Hop, ask: Ask) -> Sequence[Passage]:
        """All of them."""
        del hop, ask
        return found


class Once(NoRetrieval):
    """One search with the question, then the answer."""

    name = "once"

    def before(self, hop: Hop, ask: Ask) -> Query | None:
        """The question."""
        del ask
        return Query(hop.question, "question")


class Sentences(NoRetrieval):
    """One search before the first word and one after every n sentences, with the last sentence as query; nothing is retracted."""

    name = "sentences"
    reasons = True

    def before(self, hop: Hop, ask: Ask) -> Query | None:
        """The question."""
        del ask
        return Query(hop.question, "question")

    def when(self, draft: Draft, hop: Hop, ask: Ask) -> Verdict:
        """Triggers by count."""
        del ask
        due = (len(hop.sentences) + 1) % self._config.schedule.sentences == 0
        trigger = Trigger(draft.text.split()[-1] if draft.text.split() else "", len(draft.text), 0.0, None, reason="scheduled") if due else None
        return Verdict(formula=f"every {self._config.schedule.sentences} sentence(s)", trigger=trigger)

    def what(self, trigger: Trigger, draft: Draft, kept: Sequence[Entity], relations: Sequence[Relation], hop: Hop, ask: Ask) -> Query:
        """The sentence just written."""
        del trigger, kept, relations, ask
        return sentence_query(draft.text, hop.question, language(self._config.engine.language).reasoning_openers)
