"""Policies that do not look at the model: never, once before the first word, after every n sentences, after every n
tokens.

Owns: none, once (single retrieval, SR-RAG), sentences (FS-RAG for n = 1), tokens (FL-RAG; the schedules of IC-RALM and
RETRO).
Does not own: adaptive decisions. Source: DRAGIN §4.2 names the baselines; tokens is the schedule of IC-RALM
(arXiv:2302.00083).
"""

from __future__ import annotations

from collections.abc import Sequence

from mindchat.config import Config
from mindchat.policies.base import Base, scheduled
from mindchat.policies.queries import sentence_query
from mindchat.ports import Ask
from mindchat.text.clean import clean_line
from mindchat.values import Draft, Entity, Query, Relation, Trigger, TurnState, Verdict


class NoRetrieval(Base):
    """Answer from what the model knows, or from the passages it was given."""

    name = "none"
    reasons = False
    searches = False


class Once(NoRetrieval):
    """One search with the question, then the answer."""

    name = "once"
    searches = True

    def before(self, hop: TurnState, ask: Ask) -> Query | None:
        """The question."""
        del ask
        return Query(hop.question, "question")


class Sentences(Base):
    """One search before the first word and one after every n sentences, with the last sentence as query; nothing is
    retracted.
    """

    name = "sentences"

    def before(self, hop: TurnState, ask: Ask) -> Query | None:
        """The question."""
        del ask
        return Query(hop.question, "question")

    def when(self, draft: Draft, hop: TurnState, ask: Ask) -> Verdict:
        """By count; a sentence that states the answer needs no more passages."""
        del ask
        every = self.config.schedule.sentences
        due = (len(hop.sentences) + 1) % every == 0 and not self.words.answered(draft.text)
        return Verdict(
            formula=f"every {every} sentence(s)",
            trigger=scheduled(draft, f"every {every} sentence(s)") if due else None,
        )

    def what(
        self,
        trigger: Trigger,
        draft: Draft,
        kept: Sequence[Entity],
        relations: Sequence[Relation],
        hop: TurnState,
        ask: Ask,
    ) -> Query:
        """The sentence just written."""
        del trigger, kept, relations, ask
        return sentence_query(draft.text, hop.question, self.words.reasoning_openers)


SCHEDULES = {(4, 32): "IC-RALM", (64, 64): "RETRO-style"}
"""(schedule.tokens, schedule.query_tokens) of the papers; IC-RALM shows one passage (retrieve.k = 1). RETRO itself
needs a model trained for it: only its schedule can be had here."""


class Tokens(Base):
    """One search before the first word and one after every n tokens, with the last ℓ tokens as query; nothing is
    retracted, passages are replaced.
    """

    name = "tokens"
    accumulates = False

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        schedule = config.schedule
        self.tokens = schedule.tokens
        named = SCHEDULES.get((schedule.tokens, schedule.query_tokens))
        self._formula = f"every {schedule.tokens} tokens, query: the last {schedule.query_tokens}" + (
            f" ({named})" if named else ""
        )
        self._written: list[str] = []

    def before(self, hop: TurnState, ask: Ask) -> Query | None:
        """The question."""
        del ask
        self._written = []
        return Query(hop.question, "question")

    def when(self, draft: Draft, hop: TurnState, ask: Ask) -> Verdict:
        """Always, unless the model closed its turn or the unit states the answer."""
        del hop, ask
        self._written += [token.text for token in draft.tokens]
        due = len(draft.tokens) == self.tokens and not self.words.answered(draft.text)
        return Verdict(formula=self._formula, trigger=scheduled(draft, self._formula) if due else None)

    def what(
        self,
        trigger: Trigger,
        draft: Draft,
        kept: Sequence[Entity],
        relations: Sequence[Relation],
        hop: TurnState,
        ask: Ask,
    ) -> Query:
        """The last ℓ tokens of what was written, across sentences."""
        del trigger, draft, kept, relations, ask
        text = clean_line("".join(self._written[-self.config.schedule.query_tokens :]))
        return (
            Query(text, "template") if any(map(self.words.content, text.split())) else Query(hop.question, "question")
        )
