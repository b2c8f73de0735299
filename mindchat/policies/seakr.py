"""SeaKR: k samples of the next step; if their closing hidden states spread, the model does not know, and a passage is
chosen that calms them.

Owns: the policy seakr: gate, query, re-ranking, what the answer rests on. Does not own: sampling and hidden states
(models), the log-determinant (signals). Source: arXiv:2406.19215 §3 and its code. The paper's δ = -6 belongs to k = 20
samples: see carried(). The final choice is made between answer prompts (rationale alone, passages alone), and only the
chosen answer is then generated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from mindchat.answers import says_unknown
from mindchat.config import Config
from mindchat.policies.base import Base, Rewriting
from mindchat.policies.flare import sureness
from mindchat.ports import Ask, Basis
from mindchat.prompts.core.layouts import UserRole
from mindchat.text.clean import clean_line
from mindchat.values import Draft, Entity, Passage, Prompt, Query, Relation, Signal, Trigger, TurnState, Verdict
from mindchat.word_signals import log_det_gram

PAPER_K = 20
MOST_PASSAGES = 5
KEEP_ABOVE = 0.9
"""A word of the step enters the query if all its tokens have at least this probability (the code's max(1 - p) ≤ 0.1).
"""
CUES = frozenset({"thus", "so", "answer", "is"})


def strength(hidden: Sequence[Any]) -> float:
    """Mean squared length of the centred states: Σ over dimensions of (z - mean)², averaged over the samples."""
    import numpy as np

    z = np.asarray([np.asarray(state, dtype=np.float64) for state in hidden])  # (k, d)
    return float(((z - z.mean(axis=1, keepdims=True)) ** 2).sum(axis=1).mean())


def carried(delta: float, k: int, size: float) -> float:
    """δ for k samples from δ for 20.

    U = (1/k) log det averages k log-eigenvalues of the Gram matrix: one is the states' common part, about k · size, the
    others are their spread. With fewer samples the common part weighs more, so that the same spread gives a higher U.
    The mean log-eigenvalue of the spread that δ means at 20 samples is kept. carried(δ, 20, size) == δ.
    """
    size = max(size, 1e-12)
    spread = (delta * PAPER_K - math.log(PAPER_K * size)) / (PAPER_K - 1)
    return ((k - 1) * spread + math.log(k * size)) / k


class Seakr(Base):
    """Retrieve iff U > δ; keep the passage with the lowest U (seakr.rerank)."""

    name = "seakr"
    needs = frozenset({Signal.HIDDEN, Signal.LOGPROB})
    retracts = True
    cap = MOST_PASSAGES

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._rewriting = Rewriting()

    def before(self, hop: TurnState, ask: Ask) -> Query | None:
        """Only says what it will cost."""
        del hop
        self._rewriting.reset()
        k, found = self.config.seakr.k, self.config.retrieve.k
        more = f", each search up to {found} times {k} more" if self.config.seakr.rerank else ""
        ask.note(f"SeaKR is slow: each sentence costs {k} further samples{more}, and the answer {2 * k}.")
        return None

    def _samples(self, prompt: Prompt, max_tokens: int, ask: Ask) -> list[Draft]:
        """k samples with their closing states; those that say nothing are dropped."""
        drafts = ask.sample(
            prompt,
            n=self.config.seakr.k,
            max_tokens=max_tokens,
            kind="sample",
            want=frozenset({Signal.HIDDEN}),
            stop=("\n",),
        )
        return [draft for draft in drafts if draft.text.strip() and draft.hidden is not None]

    def _measure(self, prompt: Prompt, ask: Ask) -> tuple[float, float, int]:
        """(U, mean squared length, samples used) of the next sentence. NaN if fewer than two samples are left."""
        states = [draft.hidden for draft in self._samples(prompt, self.config.engine.sentence_tokens, ask)]
        if len(states) < 2:
            return math.nan, math.nan, len(states)
        return log_det_gram(states, self.config.seakr.alpha), strength(states), len(states)

    def when(self, draft: Draft, hop: TurnState, ask: Ask) -> Verdict:
        """Samples of the same step; a step that states the answer, or is written after a search, is accepted."""
        if self.words.answered(draft.text) or self._rewriting.now(hop):
            return Verdict(
                formula="U is not measured: "
                + ("the answer is stated" if self.words.answered(draft.text) else "written after a search")
            )
        u, size, used = self._measure(ask.reasoning(hop), ask)
        if math.isnan(u):
            return Verdict(
                terms=(("k", float(used)),), formula="U is not measured: fewer than two samples say anything"
            )
        delta = carried(self.config.seakr.delta, used, size)
        terms = (("U", u), ("delta", self.config.seakr.delta), ("k", float(used)), ("size", size))
        formula = f"U = log det(Z J Zᵀ + αI) / k; θ = δ carried over from {PAPER_K} to k samples"
        words = draft.text.split()
        trigger = (
            Trigger(words[0] if words else "", 0, u, delta, reason=f"U {u:.2f} > {delta:.2f} over {used} samples")
            if u > delta
            else None
        )
        return Verdict((), delta, terms, formula, trigger)

    def what(
        self,
        trigger: Trigger,
        draft: Draft,
        kept: Sequence[Entity],
        relations: Sequence[Relation],
        hop: TurnState,
        ask: Ask,
    ) -> Query:
        """The question and the step without the words that the model was unsure of (unless question or last step has
        them).
        """
        del trigger, kept, relations, ask
        self._rewriting.begin(hop)
        given = {
            word.casefold().strip(".,?!")
            for word in f"{hop.question} {hop.sentences[-1] if hop.sentences else ''}".split()
        }
        sure = [s.word.text for s in sureness(draft) if s.probability >= KEEP_ABOVE or s.word.text.casefold() in given]
        step = [word for word in sure if self.words.content(word) and word.casefold() not in CUES]
        return Query(clean_line(" ".join((hop.question, *step))), "template" if step else "question")

    def which(self, found: Sequence[Passage], hop: TurnState, ask: Ask) -> Sequence[Passage]:
        """The one new passage with which the samples agree most; each passage's U is told."""
        seen = {passage.id for passage in hop.passages}
        fresh = [passage for passage in found if passage.id not in seen]
        if not self.config.seakr.rerank or len(fresh) < 2:
            return found
        measured = []
        for passage in fresh:
            u, _, _ = self._measure(ask.reasoning(replace(hop, passages=(*hop.passages, passage))), ask)
            measured.append((math.inf if math.isnan(u) else u, passage.rank, passage))
        best = min(measured, key=lambda item: item[:2])
        ask.note(
            "SeaKR: "
            + "; ".join(f"{p.title or p.id}: U {u:.2f}" for u, _, p in measured)
            + f". Kept: {best[2].title or best[2].id}."
        )
        return [best[2]]

    def basis(self, hop: TurnState, ask: Ask) -> Basis:
        """Rationale or passages, whichever answers with the lower U; one whose samples mostly do not know loses. Both
        if neither can be measured.
        """
        if not self.config.answer.reasoning:
            return "both"
        states = {"reasoning": replace(hop, passages=()), "passages": replace(hop, accepted="", sentences=())}
        found = {name: self._doubt(UserRole(self.config).answer(state, 0, ()), ask) for name, state in states.items()}
        ask.note("SeaKR, answer: " + ", ".join(f"from the {name} alone U {u:.2f}" for name, u in found.items()) + ".")
        if all(math.isinf(u) for u in found.values()):
            return "both"
        return "reasoning" if found["reasoning"] < found["passages"] else "passages"  # equal: what can be cited

    def _doubt(self, prompt: Prompt, ask: Ask) -> float:
        """U of an answer; ∞ if fewer than two samples say anything or most of them say that they do not know."""
        drafts = self._samples(prompt, self.config.answer.max_tokens, ask)
        if len(drafts) < 2 or sum(says_unknown(draft.text) for draft in drafts) * 2 > len(drafts):
            return math.inf
        return log_det_gram([draft.hidden for draft in drafts], self.config.seakr.alpha)
