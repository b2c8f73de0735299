from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from mindchat.config import ModelSection
from mindchat.models import local
from mindchat.models.install.manifest import Manifest, write_manifest
from mindchat.models.local import LocalModel
from mindchat.models.network import backbone, prefill, prepared_weights, projections
from mindchat.values import Message, Prefilled, Prompt, Signal, Text, Token

from ..conftest import byte_level_tokenizer, tiny_model

pytestmark = pytest.mark.slow

INT8 = ModelSection(arithmetic="int8")
FP16 = ModelSection(arithmetic="fp16")
FULL = ModelSection(arithmetic="fp32")
PROMPT = Prompt((Message("user", (Text("Where is Rome?"),)),))


def manifest(sha256: str) -> Manifest:
    return Manifest(1, "tiny.gguf", sha256, "float32", 1000, 64, "5", {})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed tiny model, on a machine that gains from bfloat16."""
    where = tmp_path / "tiny"
    tokenizer = byte_level_tokenizer()
    tiny_model("llama", len(tokenizer)).save_pretrained(where)
    tokenizer.save_pretrained(where)
    write_manifest(where, manifest("a" * 64))
    monkeypatch.setattr(backbone, "_MAX_KL", {"fp16": 99.0, "int8": 99.0, "fp32": 1e-4})
    monkeypatch.setattr(backbone, "_MAX_NARROW_KL", 99.0)
    monkeypatch.setattr(prefill, "quickest_prefill", lambda _: ("bf16", True))
    return where


def said(model: LocalModel) -> list[tuple[int, float | None]]:
    items = model.stream(PROMPT, want=frozenset({Signal.ENTROPY}), max_tokens=8)
    return [(token.id, token.entropy) for token in items if isinstance(token, Token)]


@pytest.mark.parametrize("way", ["step", "bf16", ""])
@pytest.mark.parametrize("section", [INT8, FP16], ids=["int8", "fp16"])
def test_a_second_load_rounds_and_checks_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, way: str, section: ModelSection
) -> None:
    if section.arithmetic == "fp16" and not projections.possible("fp16"):
        pytest.skip("no kernel on this processor")
    monkeypatch.setattr(prefill, "quickest_prefill", lambda _: (way, True))
    first = LocalModel.load(folder, section, id="tiny")
    assert (folder / prepared_weights.NAME).is_file()
    assert not list(folder.glob("*.part"))

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("computed again")

    monkeypatch.setattr(projections, "quantize", never)
    monkeypatch.setattr(backbone.Backbone, "_check", never)
    monkeypatch.setattr(prefill, "quickest_prefill", never)
    monkeypatch.setattr(prepared_weights, "remember", never)
    monkeypatch.setattr(torch.Tensor, "half", never)
    second = LocalModel.load(folder, section, id="tiny")
    assert second.backbone.arithmetic == section.arithmetic
    assert second.provides == first.provides
    assert said(second) == said(first)
    assert second.backbone.prefill == way
    narrowed = [module for module in second.backbone.model.modules() if type(module) is prefill.NarrowLinear]
    assert len(narrowed) == (3 * 7 if way == "bf16" else 0)


def test_one_pack_serves_both_and_a_load_arranges_only_what_it_steps_with(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (projections.uniform("fp16") and projections.uniform("int8")):
        pytest.skip("no kernel on this processor")
    for section in (INT8, FP16):
        LocalModel.load(folder, section, id="tiny")
    arranged: list[str] = []
    for form in (projections.fp16_weights, projections.int8_weights):
        own, name = form.arrange, form.__name__.rpartition(".")[2]
        monkeypatch.setattr(form, "arrange", lambda *held, own=own, name=name: arranged.append(name) or own(*held))
    for section, expected in ((INT8, {"int8_weights": 3 * 4 + 1}), (FP16, {"fp16_weights": 3 * 4, "int8_weights": 1})):
        arranged.clear()
        said(LocalModel.load(folder, section, id="tiny"))
        assert {name: arranged.count(name) for name in arranged} == expected


def test_other_weights_and_a_damaged_file_are_packed_anew(folder: Path) -> None:
    LocalModel.load(folder, INT8, id="tiny")
    whole = (folder / prepared_weights.NAME).read_bytes()
    assert prepared_weights.open_pack(folder).held
    (folder / prepared_weights.NAME).write_bytes(whole[:100])
    assert not prepared_weights.open_pack(folder).held
    LocalModel.load(folder, INT8, id="tiny")
    assert prepared_weights.open_pack(folder).held
    write_manifest(folder, manifest("b" * 64))
    assert not prepared_weights.open_pack(folder).held
    assert prepared_weights.recall(folder, "int8") is None


def test_a_folder_that_is_not_ours_is_left_as_it_is(folder: Path) -> None:
    (folder / "mindchat.json").unlink()
    before = sorted(folder.iterdir())
    assert LocalModel.load(folder, INT8, id="tiny").backbone.arithmetic == "int8"
    assert sorted(folder.iterdir()) == before
    assert prepared_weights.recall(folder, "int8") is None


def test_a_verdict_of_full_precision_is_kept_too(folder: Path) -> None:
    LocalModel.load(folder, FULL, id="tiny")
    found = prepared_weights.recall(folder, "fp32")
    assert found is not None
    assert (found.step, found.measures, found.prefill) == ("fp32", True, "")
    assert not (folder / prepared_weights.NAME).exists()
    assert LocalModel.load(folder, FULL, id="tiny").backbone.stepped == "fp32"
    memo = prepared_weights._memo(None)
    memo.write_text("{broken")
    assert prepared_weights.recall(folder, "fp32") is None


def test_what_a_busy_machine_measured_holds_for_this_load_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefill, "quickest_prefill", lambda _: ("bf16", False))
    assert LocalModel.load(folder, INT8, id="tiny").backbone.prefill == "bf16"
    assert prepared_weights.recall(folder, "int8") is None
    monkeypatch.setattr(local, "quickest_step", lambda *_, **__: ("int8", False))
    monkeypatch.setattr(prefill, "quickest_prefill", lambda _: ("", True))
    assert LocalModel.load(folder, ModelSection(arithmetic="auto"), id="tiny").backbone.arithmetic == "int8"
    assert prepared_weights.recall(folder, "auto") is None


def test_several_graphics_processors_share_the_layers_and_one_takes_them_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = tiny_model("llama", len(byte_level_tokenizer()))
    asked: dict[str, Any] = {}
    moved: list[str] = []
    monkeypatch.setattr(network, "to", lambda device: moved.append(device) or network)
    monkeypatch.setattr(
        local.AutoModelForCausalLM, "from_pretrained", lambda _, **rest: asked.update(rest) or (network, {})
    )
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for count in (2, 1):
        monkeypatch.setattr(torch.cuda, "device_count", lambda count=count: count)
        LocalModel.load(folder, ModelSection(arithmetic="auto"), id="tiny")
        assert asked.pop("dtype") == torch.bfloat16
        assert asked.pop("device_map", None) == ("auto" if count == 2 else None)
    assert moved == ["cuda"]


def test_a_disk_that_cannot_be_written_only_costs_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack = projections.Pack()
    pack.get(["a"], lambda: (torch.zeros(3),))
    monkeypatch.setattr(prepared_weights.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1})())
    assert not prepared_weights.save_pack(pack, folder)
    assert not (folder / prepared_weights.NAME).exists()


def test_warming_computes_what_the_first_questions_share(tiny: Any) -> None:
    model = tiny("llama")

    def laid(question: str) -> Prompt:
        return Prompt((Message("system", (Text("Answer in full sentences."),)), Message("user", (Text(question),))))

    held = model.warm(laid("a"), laid("b"))
    assert 0 < held < model.count(laid("a"))
    model.usage()
    step, *_ = (
        item
        for item in model.stream(laid("Is Paris big?"), want=frozenset(), max_tokens=1)
        if isinstance(item, Prefilled)
    )
    assert step.cached == held
    assert model.usage()[1] == held
    assert model.warm(laid("a")) == model.count(laid("a"))
