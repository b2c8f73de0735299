"""The cache under many turns: memory stays within its limit, and no text changes for what was dropped. And the same
code on a graphics processor.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from mindchat.config import ModelSection
from mindchat.models.local import LocalModel
from mindchat.values import Attended, Finished, Message, Prefilled, Prompt, Signal, Text, Token

from .conftest import byte_level_tokenizer, tiny_model

pytestmark = pytest.mark.slow

WORDS = "Paris is big and its river is the Seine. Rome was not built in a day, nor was Vienna."
ALL = frozenset({Signal.LOGPROB, Signal.ENTROPY, Signal.ATTENTION})


def said(model: LocalModel, prompt: Prompt, want: frozenset[Signal] = frozenset()) -> tuple[list[int], int]:
    """Ids, and how many prompt tokens were cached."""
    items = list(model.stream(prompt, want=want, max_tokens=3))
    return [item.id for item in items if isinstance(item, Token)], next(
        item.cached for item in items if isinstance(item, Prefilled)
    )


@pytest.mark.parametrize("family", ["llama", "mistral"])
def test_the_limit_holds_over_two_hundred_turns(tiny: Any, family: str) -> None:
    cached, fresh = tiny(family, cache_mb=1), tiny(family, reuse=False)
    chance = random.Random(5)
    limit, dropped = 1 << 20, 0
    words: list[str] = []
    for turn in range(200):
        words = words[: chance.randint(0, len(words))] + chance.choices(WORDS.split(), k=chance.randint(1, 60))
        prompt = Prompt((Message("user", (Text(" ".join(words)),)),))
        before = cached.store.nbytes
        ids, _ = said(cached, prompt)
        assert cached.store.nbytes <= limit
        dropped += cached.store.nbytes < before
        if turn % 10 == 9:
            assert ids == said(fresh, prompt)[0]
    assert dropped > 3  # the limit was met, again and again


@pytest.mark.parametrize(
    "device",
    ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no such device"))],
)
@pytest.mark.parametrize("family", ["llama", "qwen2", "mistral", "gemma3"])
def test_bfloat16_runs_on_the_same_path(family: str, device: str) -> None:
    network = tiny_model(family).to(device, torch.bfloat16)
    model, alone = (
        LocalModel(network, byte_level_tokenizer(), ModelSection(reuse=reuse), id=family) for reuse in (True, False)
    )
    assert model.backbone.arithmetic == "bf16"
    first = Prompt((Message("user", (Text("Is Paris big? " * 8),)),))
    items = list(model.stream(first, want=ALL, max_tokens=6))
    tokens = [item for item in items if isinstance(item, Token)]
    assert len([item for item in items if isinstance(item, Attended)]) == (
        len(tokens) if model.backbone.measures else 0
    )
    assert all(token.entropy is not None and 0 <= token.entropy < 7 for token in tokens)
    assert isinstance(items[-1], Finished)
    longer = Prompt((*first.messages, Message("assistant", (Text("Yes."),)), Message("user", (Text("And Rome?"),))))
    (reused, held), (computed, none) = said(model, longer), said(alone, longer)
    assert held > 0 == none
    assert reused[0] == computed[0]
    drafts = model.sample(first, n=3, want=frozenset({Signal.HIDDEN}), max_tokens=4, seed=1)
    assert [draft.hidden.shape for draft in drafts if draft.hidden is not None] == [(32,)] * 3
    assert {choice.option for choice in model.choose(first, ["Yes", "No"])} == {"Yes", "No"}
