"""The entity filters: none, chain of thought, confidence, both in the paper's order, and a choice by question type.

Owns: keep or drop, with a reason for each. Does not own: extraction, the facts that memory keeps (memory.filter).
Source: MIND §3.3 and Eq 4; DESIGN.md D14. Anchors (names of the question) are never dropped by confidence: none was
measured.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mindchat.config import Config
from mindchat.ports import Ask
from mindchat.prompts.side import cot_prompt
from mindchat.text.language import language
from mindchat.values import Entity, Sifted, TurnState

COT_TOKENS = 96
_DECISION = re.compile(r"^\s*(\d+)[.):]?\s*(keep|drop)\b[\s:,-]*(.*)$", re.IGNORECASE)


class KeepAll:
    """No filter: every entity is used (the paper's lower bound)."""

    name = "none"

    def __init__(self, config: Config) -> None:
        del config

    def keep(self, found: Sequence[Entity], hop: TurnState, ask: Ask) -> tuple[Sequence[Sifted], bool]:
        """Everything is kept."""
        del hop, ask
        return [Sifted(entity, True, "no filter") for entity in found], False


class Confidence:
    """Eq 4: keep the k most confident entities at or above the minimum; anchors stay."""

    name = "conf"

    def __init__(self, config: Config) -> None:
        self._options = config.filter

    def keep(self, found: Sequence[Entity], hop: TurnState, ask: Ask) -> tuple[Sequence[Sifted], bool]:
        """Ranked by conf(e); the reason names the value and the bound that decided."""
        del hop, ask
        scored = [entity for entity in found if entity.confidence is not None]
        best = sorted(scored, key=lambda entity: -(entity.confidence or 0.0))[: self._options.k]
        return [self._judge(entity, entity in best) for entity in found], False

    def _judge(self, entity: Entity, ranked: bool) -> Sifted:
        if entity.confidence is None:
            return Sifted(
                entity, True, "anchor: named by the question" if entity.span is None else "not measured: kept"
            )
        value = f"conf {entity.confidence:.2f}"
        if entity.confidence < self._options.minimum:
            return Sifted(entity, False, f"{value} < {self._options.minimum:g}")
        if not ranked:
            return Sifted(entity, False, f"{value}, not among the best {self._options.k}")
        return Sifted(entity, True, f"{value} ≥ {self._options.minimum:g}")


class ChainOfThought:
    """One model call that checks each entity against question and reasoning; what it does not mention is kept."""

    name = "cot"

    def __init__(self, config: Config) -> None:
        del config

    def keep(self, found: Sequence[Entity], hop: TurnState, ask: Ask) -> tuple[Sequence[Sifted], bool]:
        """Keep or drop with the model's reason; an unreadable line keeps its entity and says so."""
        if not found:
            return [], False
        reply = ask.complete(
            cot_prompt(hop.question, hop.accepted, [e.text for e in found]),
            max_tokens=COT_TOKENS,
            kind="filter",
            stop=("\n\n",),
        )
        decided: dict[int, tuple[bool, str]] = {}
        # the prefill is the first line's number
        for line in f"1{reply.text}".splitlines():
            if match := _DECISION.match(line):
                decided.setdefault(int(match[1]), (match[2].casefold() == "keep", match[3].strip()[:80]))
        sifted = []
        for number, entity in enumerate(found, 1):
            kept, why = decided.get(number, (True, ""))
            sifted.append(
                Sifted(
                    entity,
                    kept,
                    f"cot: {why}" if why else "cot: no readable decision, kept" if number not in decided else "cot",
                )
            )
        return _rescue(sifted)


class ConfidenceAndChainOfThought:
    """The paper's hybrid: chain of thought first, then Eq 4 over what is left."""

    name = "conf+cot"

    def __init__(self, config: Config) -> None:
        self._cot = ChainOfThought(config)
        self._conf = Confidence(config)

    def keep(self, found: Sequence[Entity], hop: TurnState, ask: Ask) -> tuple[Sequence[Sifted], bool]:
        """Survivors of both; if none is left, the most confident entity is rescued and counted (both together may drop
        all).
        """
        first, rescued = self._cot.keep(found, hop, ask)
        second = {s.entity: s for s in self._conf.keep([s.entity for s in first if s.kept], hop, ask)[0]}
        sifted = [second.get(s.entity, s) for s in first]
        kept, again = _rescue(sifted)
        return kept, rescued or again


class Auto:
    """Confidence for yes/no and comparison questions, chain of thought for the rest (Table 1: CoT loses on StrategyQA,
    Conf on bridges).
    """

    name = "auto"

    def __init__(self, config: Config) -> None:
        self._words = language(config.engine.language)
        self._cot, self._conf = ChainOfThought(config), Confidence(config)

    def keep(self, found: Sequence[Entity], hop: TurnState, ask: Ask) -> tuple[Sequence[Sifted], bool]:
        """Delegates; a single entity is kept without asking the model."""
        if len(found) <= 1:
            return [Sifted(entity, True, "the only one") for entity in found], False
        direct = self._words.polar(hop.question) or self._words.comparison(hop.question)
        chosen = self._conf if direct else self._cot
        return chosen.keep(found, hop, ask)


def _rescue(sifted: list[Sifted]) -> tuple[list[Sifted], bool]:
    """If everything was dropped, keep the most confident entity (anchors count as most confident)."""
    if not sifted or any(s.kept for s in sifted):
        return sifted, False
    best = max(
        range(len(sifted)),
        key=lambda i: float("inf") if sifted[i].entity.span is None else (sifted[i].entity.confidence or 0.0),
    )
    saved = Sifted(sifted[best].entity, True, f"rescued: all had been dropped ({sifted[best].why})")
    return [saved if i == best else s for i, s in enumerate(sifted)], True
