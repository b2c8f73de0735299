from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from mindchat.models import attention, fast
from mindchat.models.backbone import Backbone
from mindchat.models.fast import quantize
from mindchat.models.signals import entropy_of, log_probabilities

IDS = torch.randint(3, 380, (1, 30), generator=torch.Generator().manual_seed(4))
LAYOUTS = ("llama", "qwen2", "qwen2-window", "qwen3", "mistral")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_fast_step_is_the_networks_own_step(tiny: Any, layout: str) -> None:
    backbone = tiny(layout).backbone
    step = backbone.fast
    assert step is not None
    kv = backbone.fresh()
    backbone.forward(IDS[:, :12], kv)
    own = backbone.model(IDS, output_hidden_states=True)
    rows = attention.eager(backbone.model, IDS)[0]
    for i in range(12, 30):
        logits, row = backbone.step(IDS[:, i : i + 1], kv, row=True)
        assert torch.allclose(logits[0], own.logits[0, i], atol=1e-4)
        assert torch.allclose(row[0], rows[i, : i + 1], atol=1e-5)
    _, state = backbone.middle(IDS[:, :1], kv)
    longer = backbone.model(torch.cat([IDS, IDS[:, :1]], 1), output_hidden_states=True)
    assert torch.allclose(state[0], longer.hidden_states[1][0, -1], atol=1e-4)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_batch_is_stepped_as_its_rows_are(tiny: Any, layout: str) -> None:
    backbone = tiny(layout).backbone
    kv = backbone.fresh()
    backbone.forward(IDS[:, :10], kv)
    many = kv.branch(10, batch=3)
    logits, rows = backbone.step(IDS[0, 10:13, None], many, row=True)
    for i in range(3):
        alone, row = backbone.step(IDS[:, 10 + i : 11 + i], kv.branch(10), row=True)
        assert torch.allclose(logits[i], alone[0], atol=1e-4)
        assert torch.allclose(rows[i], row[0], atol=1e-5)


def test_other_layouts_are_left_to_transformers(tiny: Any) -> None:
    assert {name: tiny(name).backbone.fast for name in ("phi3", "gemma3", "smollm3")} == {"phi3": None, "gemma3": None, "smollm3": None}


def test_quantized_weights_are_within_half_a_step(tiny: Any) -> None:
    weight = torch.randn(40, 64, generator=torch.Generator().manual_seed(2)) * torch.logspace(-4, 4, 40)[:, None]
    weight[3] = 0.0
    packed, scale = quantize(weight)
    assert packed.dtype == torch.int8
    error = (packed.float() * scale.float()[:, None] - weight).abs()
    assert bool((error <= scale.float()[:, None] * 0.5001).all())
    assert bool(torch.isfinite(scale).all())


def test_a_fast_step_that_computes_something_else_is_not_used(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("llama").backbone.model
    monkeypatch.setattr(fast.FastStep, "_logits", lambda self, x: self._to_logits(x) * 1.5)
    assert Backbone(model, IDS[0].tolist()).fast is None


@pytest.mark.model
def test_int8_keeps_answers_and_entropies_of_smollm(smollm: Any) -> None:
    backbone = Backbone(
        smollm.backbone.model, smollm.vocabulary.continuation("Paris is the capital of France, and its river is the Seine."), int8=True
    )
    assert backbone.arithmetic == "int8"
    assert backbone.measures
    text = "The Seine is a river in northern France. It rises near Dijon and flows through Paris into the English Channel at Le Havre."
    ids = torch.tensor([smollm.vocabulary.continuation(text)])
    kv = backbone.fresh()
    backbone.forward(ids[:, :4], kv)
    mine = log_probabilities(torch.cat([backbone.step(ids[:, i : i + 1], kv)[0] for i in range(4, ids.shape[1])]))
    with torch.inference_mode():
        own = log_probabilities(backbone.model(ids).logits[0, 4:])
    assert float((own.exp() * (own - mine)).sum(-1).mean()) < 0.01
    assert float((entropy_of(mine) - entropy_of(own)).abs().mean()) < 0.1
    assert float((mine.argmax(-1) == own.argmax(-1)).float().mean()) > 0.9


def test_narrow_prefill_changes_next_to_nothing_and_can_be_undone() -> None:
    torch.manual_seed(0)
    x = torch.randn(9, 64)
    block = torch.nn.Module()
    block.proj = torch.nn.Linear(64, 32)  # type: ignore[assignment]

    class Net:
        def get_decoder(self) -> Any:
            return SimpleNamespace(layers=torch.nn.ModuleList([block]))

    full = block.proj(x)  # type: ignore[operator]
    widen = fast.narrow(Net())
    narrowed = block.proj(x)  # type: ignore[operator]
    assert type(block.proj) is fast.NarrowLinear
    assert narrowed.dtype == torch.float32
    assert 0 < (full - narrowed).abs().max() < 0.03
    widen()
    assert torch.equal(block.proj(x), full)  # type: ignore[operator]
