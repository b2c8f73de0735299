"""DRAGIN: RIND with a fixed threshold decides when, the attention of the flagged words decides what.

Owns: the policy dragin. Does not own: the score (rind), the query (qfs).
Source: arXiv:2403.10081 §3.1-3.3 and its code, with these differences: content words are chosen before the decision,
not after it (the code retrieves for function words, with no flagged word left to ask about); entropies are those of the
raw distribution; only the flagged sentence is written again, from the flagged word on, instead of a whole continuation
of which one sentence is used. As in the code, passages replace one another and the sentence written after a search is
accepted without a second judgement.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mindchat.config import Config
from mindchat.policies.base import Base, Rewriting
from mindchat.policies.qfs import qfs
from mindchat.policies.rind import judge
from mindchat.ports import Ask
from mindchat.values import Draft, Entity, Query, Relation, Signal, Trigger, TurnState, Verdict


class Dragin(Base):
    """S = H · a / mean(a) · s against dragin.theta; query of dragin.top_n words."""

    name = "dragin"
    needs = frozenset({Signal.ENTROPY, Signal.ATTENTION})
    retracts = True
    accumulates = False

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._options = replace(config.rind, threshold="fixed", fixed=config.dragin.theta, anchors=False, min_words=1)
        self._rewriting = Rewriting()

    def before(self, hop: TurnState, ask: Ask) -> Query | None:
        """DRAGIN starts from what the model knows."""
        del hop, ask
        self._rewriting.reset()
        return None

    def when(self, draft: Draft, hop: TurnState, ask: Ask) -> Verdict:
        """The first content word above θ; every factor is told also where the sentence is not judged."""
        del ask
        verdict = judge(draft, hop.question, self.words, self._options, attention="sentence")
        if verdict.trigger is not None and self._rewriting.now(hop):
            return replace(verdict, trigger=None, formula=f"{verdict.formula}; written after a search: accepted")
        return verdict

    def what(
        self,
        trigger: Trigger,
        draft: Draft,
        kept: Sequence[Entity],
        relations: Sequence[Relation],
        hop: TurnState,
        ask: Ask,
    ) -> Query:
        """By the attention of every word above θ."""
        del kept, relations
        self._rewriting.begin(hop)
        verdict = judge(draft, hop.question, self.words, self._options, attention="sentence")
        flagged = [word.start for word in verdict.words if word.score > (verdict.threshold or 0.0)]
        return qfs(draft, flagged or [trigger.start], hop, ask, self.words, self.config.dragin.top_n)
