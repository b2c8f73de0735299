"""Repeated reasoning prompts (CoRe, Appendix E) and the prefix cache: the same tokens with reuse and without, and all
that is shared is reused.
"""

from __future__ import annotations

from typing import Any

import pytest

from mindchat.config import Config, load_config
from mindchat.engine.metered_model import collect
from mindchat.models.network.kv_cache import shared
from mindchat.prompts.core import AssistantRole, UserRole
from mindchat.values import Draft, Prompt, Signal, TurnState

from ..fakes import WORLD

QUESTION = "Where was the director of Metropolis born?"


def hops(model: Any, role: str, repeat: int) -> list[Prompt]:
    """Three hops: a passage more with each, and before the last one a sentence."""
    settings = load_config(
        environ={}, assignments=("layout.reasoning=hop", f"layout.repeat={repeat}", f"layout.role={role}")
    ).config
    laid = (UserRole if role == "user" else AssistantRole)(settings)
    said = collect(
        model.stream(laid.reasoning(TurnState(0, QUESTION), (), ()), want=frozenset(), max_tokens=5), frozenset()
    )
    states: list[tuple[int, list[Draft]]] = [(1, []), (2, []), (3, [said])]
    made = [
        TurnState(number, QUESTION, passages=WORLD[:number], sentences=tuple(d.text for d in kept))
        for number, kept in states
    ]
    return [laid.reasoning(hop, kept, ()) for hop, (_, kept) in zip(made, states, strict=True)]


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("repeat", [1, 2])
def test_the_same_tokens_with_reuse_and_without(tiny: Any, role: str, repeat: int) -> None:
    reusing, plain = tiny("llama"), tiny("llama", reuse=False)
    earlier: list[tuple[int, ...]] = []
    prompts = hops(plain, role, repeat)
    reusing.usage()
    for prompt in prompts:
        drafts = [
            collect(model.stream(prompt, want=frozenset({Signal.ENTROPY}), max_tokens=4), frozenset())
            for model in (reusing, plain)
        ]
        assert drafts[0].ids == drafts[1].ids
        assert [t.entropy for t in drafts[0].tokens] == pytest.approx([t.entropy for t in drafts[1].tokens], abs=1e-3)
        ids = reusing.format.render(prompt).ids
        new, cached, _ = reusing.usage()
        assert new + cached == len(ids)
        assert cached >= max((shared(ids, sent) for sent in earlier), default=0)
        earlier.append(ids)
    bare = reusing.format.render(UserRole(Config()).reasoning(TurnState(0, "?"), (), ())).ids
    assert cached > shared(earlier[-1], bare) > 0, "more than the instructions: documents of the first copy too"
