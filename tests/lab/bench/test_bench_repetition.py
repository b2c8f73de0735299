"""What a second copy costs: the report, and that both ways compute the same tokens in the same place."""

from __future__ import annotations

from typing import Any

import pytest

from mindchat.config import Config
from mindchat.errors import UsageError
from mindchat.lab.bench.repetition import bench_repetition
from mindchat.models.network.kv_cache import shared
from mindchat.models.network.transformers_prefill import prefill_behind
from mindchat.prompts.core import AssistantRole, UserRole
from mindchat.values import Passage, TurnState

pytestmark = pytest.mark.slow

WORDS = "The capital of France is Paris, and its river is the Seine. " * 12
HOP = TurnState(
    0, "Is Paris big?", passages=tuple(Passage(f"p{n}", "d", f"D{n}", f"{n}: {WORDS}", 0, 9, rank=n) for n in range(2))
)


@pytest.mark.parametrize("role", [UserRole, AssistantRole])
def test_a_copy_is_measured_beside_a_prefill_of_its_tokens(tiny: Any, role: Any) -> None:
    model, laid = tiny("llama"), role(Config())
    report = bench_repetition(model, laid, HOP, repeats=2)
    one, two = (model.format.render(laid.answer(HOP, copies, ())).ids for copies in (0, 1))
    assert report["copy_tokens"] == len(two) - len(one)
    assert report["cached_tokens"] >= shared(one, two)
    assert (
        report["cached_tokens"] + report["copy_tokens"] + report["again_tokens"] == report["prompt_tokens"] == len(two)
    )
    assert 0 <= report["again_share"] < 0.1
    assert report["same_first_token"]
    assert len(report["ratios"]) == 2
    assert min(report["ratios"]) < report["ratio"] < max(report["ratios"])
    assert min(report["copy_seconds"], report["plain_seconds"], report["first_copy_seconds"]) > 0


def test_nothing_to_repeat_is_said(tiny: Any) -> None:
    with pytest.raises(UsageError, match="adds no tokens"):
        bench_repetition(tiny("llama"), UserRole(Config()), TurnState(0, "Is Paris big?"), repeats=1)


def test_the_plain_prefill_is_the_networks_own(tiny: Any, family: str) -> None:
    """Whatever the split, the likeliest next token is that of one pass over everything; the network's attention is put
    back.
    """
    import torch

    model = tiny(family)
    ids = model.vocabulary.continuation(WORDS)[:60]
    used = model.backbone.model.config._attn_implementation
    whole = int(model.backbone.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1].argmax())
    assert [prefill_behind(model.backbone, ids[:at], ids[at:])[1] for at in (1, 20, 59)] == [whole] * 3
    assert model.backbone.model.config._attn_implementation == used
