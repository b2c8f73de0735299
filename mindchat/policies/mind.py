"""MIND: RIND decides when, the filtered entities decide what.

Owns: the policies mind, rind-fixed and rind-entropy. Does not own: scores (rind), queries (queries), memory.
Source: MIND §3.2-3.4; where the paper is silent, DESIGN.md D5 and D8 to D14.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mindchat.config import Config
from mindchat.policies.base import Base, Rewriting
from mindchat.policies.copied import copied
from mindchat.policies.queries import WRITERS
from mindchat.policies.rind import judge
from mindchat.ports import Ask
from mindchat.values import Draft, Entity, Query, Relation, Signal, Trigger, TurnState, Verdict, WordScore


class Mind(Base):
    """Dynamic threshold over S = H · a · s; sub-query from the kept entities."""

    name = "mind"
    needs = frozenset({Signal.ENTROPY, Signal.ATTENTION})
    extracts = True
    retracts = True

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.accumulates = config.retrieve.keep == "accumulate"
        self._options = config.rind
        self._attention: str = config.rind.attention
        self._earlier: list[WordScore] = []
        self._begun: list[WordScore] = []
        """The clean beginning of the flagged sentence; it counts in θ when the rest is written again."""
        self._rewriting = Rewriting()

    def before(self, hop: TurnState, ask: Ask) -> Query | None:
        """The question, with rind.first; MIND itself starts from what the model knows. Also the place where a turn
        begins.
        """
        del ask
        self._earlier, self._begun = [], []
        self._rewriting.reset()
        return Query(hop.question, "question") if self._options.first and not hop.passages else None

    def when(self, draft: Draft, hop: TurnState, ask: Ask) -> Verdict:
        """Eq 3 over the sentence (or over all accepted words and it: rind.window = running)."""
        del ask
        running = self._earlier if self._options.window == "running" else []
        if not self._rewriting.now(hop):
            self._begun = []
        verdict = judge(
            draft,
            hop.question,
            self.words,
            self._options,
            attention=self._attention,
            earlier=running,
            begun=self._begun,
        )
        if (leak := copied(draft, hop)) is not None:
            doubt = verdict.trigger
            first = leak if doubt is None or leak.start < doubt.start else msgspec.structs.replace(doubt, stands=False)
            verdict = msgspec.structs.replace(verdict, trigger=first)
        if verdict.trigger is None:
            self._earlier += [*self._begun, *verdict.words]
        else:
            start = verdict.trigger.start
            self._begun += [word for word in verdict.words if word.end <= start]
            self._rewriting.begin(hop)
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
        """By the configured writer."""
        return WRITERS[self.config.query.form](self.config, trigger, draft, kept, relations, hop, ask)


class RindFixed(Mind):
    """The same with a fixed threshold (Table 4's control)."""

    name = "rind-fixed"

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._options = msgspec.structs.replace(config.rind, threshold="fixed")


class RindEntropy(Mind):
    """The same with a = 1: for models that give no attention, and as its ablation."""

    name = "rind-entropy"
    needs = frozenset({Signal.ENTROPY})

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._attention = "none"
