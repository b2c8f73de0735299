from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from mindchat.models.network import attention_hook, fast_step, fp16_weights, int8_weights, prefill, projections
from mindchat.models.network.backbone import Backbone
from mindchat.models.network.entropy import entropy_of, log_probabilities
from mindchat.models.network.projections import quantize

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
    rows = attention_hook.eager(backbone.model, IDS)[0]
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


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("cut", [1, 11, 29])
def test_many_tokens_at_once_are_what_the_network_computes(tiny: Any, layout: str, cut: int) -> None:
    backbone = tiny(layout).backbone
    kv = backbone.fresh()
    assert backbone.fast.chunk(IDS[:, :cut], kv) is None
    logits = backbone.fast.chunk(IDS[:, cut:], kv, 30 - cut)
    assert kv.length == 30
    assert torch.allclose(logits[0], backbone.model(IDS).logits[0, cut:], atol=1e-4)
    many = kv.branch(cut, batch=2)
    both = backbone.fast.chunk(IDS[:, cut:].expand(2, -1), many, 1)
    assert torch.allclose(both[:, 0], logits[:, -1].expand(2, -1), atol=1e-4)


def test_other_layouts_are_left_to_transformers(tiny: Any) -> None:
    assert {name: tiny(name).backbone.fast for name in ("phi3", "gemma3", "smollm3")} == {
        "phi3": None,
        "gemma3": None,
        "smollm3": None,
    }


def test_quantized_weights_are_within_half_a_step(tiny: Any) -> None:
    weight = torch.randn(40, 64, generator=torch.Generator().manual_seed(2)) * torch.logspace(-4, 4, 40)[:, None]
    weight[3] = 0.0
    packed, scale = quantize(weight)
    assert packed.dtype == torch.int8
    error = (packed.float() * scale.float()[:, None] - weight).abs()
    assert bool((error <= scale.float()[:, None] * 0.5001).all())
    assert bool(torch.isfinite(scale).all())


halves = pytest.mark.skipif(not fp16_weights.available(), reason="torch brings the kernel on x86 only")
whole_numbers = pytest.mark.skipif(not int8_weights.available(), reason="torch brings the kernel on x86 only")


@whole_numbers
@pytest.mark.parametrize("spread", [0.0, 3.0])
def test_whole_numbers_keep_fourteen_bits_of_activations(spread: float) -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(5, 300, generator=generator) * torch.logspace(-spread, spread, 300)
    x[3] = 0.0
    weight = torch.randint(-127, 128, (40, 300), generator=generator, dtype=torch.int8)
    scale = torch.rand(40, generator=generator) + 0.1
    found = int8_weights.Digits(int8_weights.arrange(weight, scale))(x)
    exact = x.double() @ (weight.double() * scale.double()[:, None]).T
    bound = (
        x.abs().amax(1, keepdim=True) / int8_weights.TOP / 2 * (weight.double().abs() * scale.double()[:, None]).sum(1)
    )
    assert bool(((found - exact).abs() <= bound * 1.001 + 1e-6).all())
    assert torch.equal(found[3], torch.zeros(40))


@whole_numbers
def test_extreme_numbers_do_not_overflow() -> None:
    x = torch.stack([torch.full((5000,), 7.0), torch.full((5000,), -7.0), torch.tensor([7.0, -7.0]).repeat(2500)])
    weight = torch.stack(
        [torch.full((5000,), 127), torch.full((5000,), -127), torch.tensor([127, -127]).repeat(2500)]
    ).to(torch.int8)
    found = int8_weights.Digits(int8_weights.arrange(weight, torch.ones(3)))(x)
    assert torch.allclose(found, x @ weight.float().T, rtol=1e-5, atol=1.0)


@whole_numbers
def test_a_row_does_not_depend_on_what_is_computed_beside_it() -> None:
    x = torch.randn(64, 896, generator=torch.Generator().manual_seed(3))
    project = int8_weights.Digits(
        int8_weights.arrange(*quantize(torch.randn(70, 896, generator=torch.Generator().manual_seed(4))))
    )
    together = project(x)
    for size in (1, 3, 32):
        assert torch.equal(torch.cat([project(rows) for rows in x.split(size)]), together)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["fp16", "int8"])
def test_a_step_of_fewer_bytes_computes_what_its_prefill_computes(
    tiny: Any, layout: str, kind: projections.Step
) -> None:
    step = fast_step.build(tiny(layout).backbone.model, step=kind)
    if step is None or not step.uniform:
        pytest.skip("no kernel on this processor")
    one, many = tiny(layout).backbone.fresh(), tiny(layout).backbone.fresh()
    logits = step.chunk(IDS, many, 30)[0]
    alone = torch.cat([step(IDS[:, i : i + 1], one)[0] for i in range(30)])
    assert float((logits - alone).abs().max()) < 1e-3 * float(alone.abs().max())
    for a, b in zip(one.layers, many.layers, strict=True):
        assert torch.allclose(a.keys[:, :, :30], b.keys[:, :, :30], rtol=1e-2, atol=2e-4)


def test_without_the_kernel_torchs_own_int8_steps(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(int8_weights, "available", lambda: False)
    model = tiny("qwen2").backbone.model
    monkeypatch.setattr(fp16_weights, "available", lambda: False)
    assert fast_step.build(model, step="fp16") is None
    assert not projections.uniform("fp16")
    step = fast_step.build(model, step="int8")
    assert step is not None
    assert not step.uniform
    kv = tiny("qwen2").backbone.fresh()
    logits = torch.cat([step(IDS[:, i : i + 1], kv)[0] for i in range(30)])
    own = log_probabilities(model(IDS).logits[0])
    assert float((own.exp() * (own - log_probabilities(logits))).sum(-1).mean()) < 0.02
    assert prefill.quickest_prefill("int8")[0] in ("", "bf16")


def test_the_finer_part_is_as_good_as_exact() -> None:
    torch.manual_seed(5)
    parts, x = [torch.nn.Linear(64, 8), torch.nn.Linear(64, 6)], torch.randn(3, 64)
    with torch.inference_mode():
        found, own = (
            projections.rounded(parts, "p", projections.Pack(), finer=True)(x),
            projections.full(parts, "p", projections.Pack())(x),
        )
    error = (found - own).abs()
    assert float(error[:, :8].max()) > 3 * float(error[:, 8:].max())


def test_a_fast_step_that_computes_something_else_is_not_used(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("llama").backbone.model
    monkeypatch.setattr(fast_step.FastStep, "_logits", lambda self, x: self._to_logits(x) * 1.5)
    assert Backbone(model, IDS[0].tolist()).fast is None


@halves
@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_half_weights_round_weights_only(spread: float) -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(70, 300, generator=generator) * torch.logspace(-spread, spread, 300)
    weight = torch.randn(40, 300, generator=generator)
    project = fp16_weights.Half(fp16_weights.arrange(weight))
    exact = x.double() @ weight.half().double().T
    assert torch.allclose(project(x).double(), exact, rtol=1e-5, atol=1e-4 * 10**spread)
    for rows in (1, 3, 64):
        assert torch.allclose(project(x[:rows]), project(x)[:rows], rtol=1e-5, atol=1e-4 * 10**spread)


@halves
def test_weights_beyond_half_precision_stay_finite() -> None:
    part = torch.nn.Linear(4, 2, bias=False)
    part.weight.data = torch.tensor([[1e9, 0.0, 0.0, 0.0], [0.0, -1e9, 1e-9, 1.0]])
    pack = projections.Pack()
    assert bool(torch.isfinite(projections.halved([part], "p", pack)(torch.ones(1, 4))).all())
    assert bool(torch.isfinite(pack.made["p.half"]).all())


@halves
def test_a_kernel_that_rounds_activations_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        fp16_weights.Half,
        "__call__",
        lambda self, x: torch.ops.quantized.linear_dynamic_fp16(x.half().float(), self._arranged),
    )
    assert not fp16_weights.available.__wrapped__()


@pytest.mark.model
@pytest.mark.parametrize(("step", "kl", "change", "same"), [("int8", 0.01, 0.1, 0.9), ("fp16", 0.001, 0.01, 0.95)])
def test_fewer_bytes_keep_answers_and_entropies_of_smollm(
    smollm: Any, step: projections.Step, kl: float, change: float, same: float
) -> None:
    if not projections.possible(step):
        pytest.skip("no kernel on this processor")
    sample = smollm.vocabulary.continuation("Paris is the capital of France, and its river is the Seine.")
    backbone = Backbone(smollm.backbone.model, sample, step=step)
    assert backbone.arithmetic == step
    assert backbone.measures
    text = (
        "The Seine is a river in northern France. It rises near Dijon and flows through Paris into the English Channel"
        " at Le Havre."
    )
    ids = torch.tensor([smollm.vocabulary.continuation(text)])
    kv = backbone.fresh()
    backbone.forward(ids[:, :4], kv)
    mine = log_probabilities(torch.cat([backbone.step(ids[:, i : i + 1], kv)[0] for i in range(4, ids.shape[1])]))
    with torch.inference_mode():
        own = log_probabilities(backbone.model(ids).logits[0, 4:])
    assert float((own.exp() * (own - mine)).sum(-1).mean()) < kl
    assert float((entropy_of(mine) - entropy_of(own)).abs().mean()) < change
    assert float((mine.argmax(-1) == own.argmax(-1)).float().mean()) > same


def test_narrow_prefill_changes_next_to_nothing_and_can_be_undone() -> None:
    torch.manual_seed(0)
    x = torch.randn(9, 64)
    block = torch.nn.Module()
    block.proj = torch.nn.Linear(64, 32)  # type: ignore[assignment]

    class Net:
        def get_decoder(self) -> Any:
            return SimpleNamespace(layers=torch.nn.ModuleList([block]))

    full = block.proj(x)  # type: ignore[operator]
    widen = prefill.narrow(Net())
    narrowed = block.proj(x)  # type: ignore[operator]
    assert type(block.proj) is prefill.NarrowLinear
    assert narrowed.dtype == torch.float32
    assert 0 < (full - narrowed).abs().max() < 0.03
    widen()
    assert torch.equal(block.proj(x), full)  # type: ignore[operator]
