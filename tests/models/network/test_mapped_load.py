"""Loads without transformers' network: the same numbers, the same words, and the whole network where something is not
as it was.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from mindchat.config import ModelSection
from mindchat.errors import Interrupted, ModelMissingError
from mindchat.models import local
from mindchat.models.install.manifest import Manifest, write_manifest
from mindchat.models.local import LocalModel
from mindchat.models.network import fast_step, prefill, prepared_weights, projections
from mindchat.models.network.kv_cache import KV, windows_of
from mindchat.models.network.mapped_load import Lean
from mindchat.ports import Cancel
from mindchat.values import Message, Prompt, Text, Token

from ..conftest import byte_level_tokenizer, tiny_model
from .test_fast_step import IDS, LAYOUTS

FP16 = ModelSection(arithmetic="fp16", threads=1)
PROMPT = Prompt((Message("user", (Text("Where is Rome?"),)),))
ROPES: dict[str, dict[str, Any]] = {
    "default": {"rope_type": "default", "rope_theta": 5000.0},
    "linear": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
    "llama3": {
        "rope_type": "llama3",
        "rope_theta": 10000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16,
    },
    "yarn": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16},
}

pytestmark = [
    pytest.mark.skipif(not projections.uniform("fp16"), reason="no kernel on this processor"),
    pytest.mark.slow,
]


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("the whole network was asked for")


def logits_of(model: Any, step: projections.Step) -> torch.Tensor:
    """A text half as a chunk, half token by token."""
    built = fast_step.build(model, step=step)
    assert built is not None
    kv = KV(windows_of(model.config) or ())
    first = built.chunk(IDS[:, :15], kv, 15)
    assert first is not None
    return torch.cat([first[0], *(built(IDS[:, i : i + 1], kv)[0] for i in range(15, 30))])


def saved(model: Any, where: Path) -> Path:
    model.save_pretrained(where)
    byte_level_tokenizer().save_pretrained(where)
    write_manifest(where, Manifest(1, "tiny.gguf", "a" * 64, "float32", 1000, 64, "5", {}))
    return where


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("step", projections.FORMS)
def test_the_same_numbers_without_the_network(layout: str, step: projections.Step, tmp_path: Path) -> None:
    network = tiny_model(layout)
    lean = Lean(saved(network, tmp_path / "m"), never)
    mine, own = logits_of(lean, step), logits_of(network, step)
    assert (
        torch.allclose(mine, own, atol=1e-4) if step == "fp32" else torch.equal(mine, own)
    )  # torch's fp32 depends on where a tensor begins


@pytest.mark.parametrize("rope", ROPES)
@pytest.mark.parametrize("tied", [False, True])
def test_every_rotary_variant_of_the_fast_step(rope: str, tied: bool, tmp_path: Path) -> None:
    assert set(ROPES) == fast_step.ROPES
    network = tiny_model("llama", rope_parameters=ROPES[rope], tie_word_embeddings=tied)
    lean = Lean(saved(network, tmp_path / "m"), never)
    assert torch.equal(logits_of(lean, "fp16"), logits_of(network, "fp16"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed model, loaded once."""
    where = saved(tiny_model("llama", len(byte_level_tokenizer())), tmp_path / "tiny")
    monkeypatch.setattr(prefill, "quickest_prefill", lambda _: ("step", True))
    LocalModel.load(where, FP16, id="tiny")
    return where


def words(model: LocalModel) -> list[int]:
    return [item.id for item in model.stream(PROMPT, want=frozenset(), max_tokens=12) if isinstance(item, Token)]


def test_a_second_load_needs_no_network_until_something_asks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, asked = local._network, list[Path]()
    monkeypatch.setattr(local, "_network", lambda where, section: asked.append(where) or own(where, section))
    second = LocalModel.load(folder, FP16, id="tiny")
    said = words(second)
    assert not asked
    assert second.backbone.model is second.backbone.model
    assert asked == [folder]
    prepared_weights._memo(None).unlink()
    third = LocalModel.load(folder, FP16, id="tiny")
    assert len(asked) == 2
    assert words(third) == said
    assert (third.provides, third.ends, third.window) == (second.provides, second.ends, second.window)


def test_a_load_waits_for_no_arrangement(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks in its first second; what the thread beside has not come to is arranged by the first prompt."""
    arranged: list[int] = []
    for kernel in (projections.fp16_weights, projections.int8_weights):
        own = kernel.arrange
        monkeypatch.setattr(kernel, "arrange", lambda *held, own=own: arranged.append(len(held)) or own(*held))
    monkeypatch.setattr(projections.Pack, "begin", lambda *_: None)
    second = LocalModel.load(folder, FP16, id="tiny")
    assert (second.window, second.count(PROMPT) > 0, arranged) == (
        second._backbone._given.config.max_position_embeddings,
        True,
        [],
    )
    assert second.warm(PROMPT) > 0
    once = len(arranged)
    assert once == 4 * len(second.backbone._given.get_decoder().layers) + 1
    assert words(second)
    assert len(arranged) == once


def test_reading_ahead_makes_way_while_weights_are_arranged(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine thread does other things, too: what was arranged stays, and the rest is done when something asks
    again.
    """
    arranged: list[int] = []
    own, wish = projections.fp16_weights.arrange, Cancel()
    monkeypatch.setattr(
        projections.fp16_weights,
        "arrange",
        lambda *held: arranged.append(1) or (wish.set() if len(arranged) == 3 else None) or own(*held),
    )
    monkeypatch.setattr(projections.Pack, "begin", lambda *_: None)
    second = LocalModel.load(folder, FP16, id="tiny")
    for verb in (
        lambda: second.warm(PROMPT, cancel=wish),
        lambda: list(second.stream(PROMPT, want=frozenset(), max_tokens=2, cancel=wish)),
    ):
        with pytest.raises(Interrupted):
            verb()
        assert len(arranged) == 3
    assert words(second)
    assert len(arranged) == 4 * len(second.backbone._given.get_decoder().layers)


def other_weights(folder: Path) -> None:
    tiny_model("llama", len(byte_level_tokenizer()), seed=5).save_pretrained(folder)


def other_copies(folder: Path) -> None:
    """A pack of other weights under this model's name."""
    pack = projections.Pack()
    assert fast_step.build(tiny_model("llama", len(byte_level_tokenizer()), seed=5), step="fp16", pack=pack)
    assert prepared_weights.save_pack(pack, folder)


def no_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"no tensors")


@pytest.mark.parametrize("first", ["ask", "warm"])
@pytest.mark.parametrize("change", [other_weights, other_copies])
def test_what_says_something_else_is_checked_anew(
    folder: Path, monkeypatch: pytest.MonkeyPatch, change: Any, first: str
) -> None:
    change(folder)
    own, asked = local._network, list[Path]()
    monkeypatch.setattr(local, "_network", lambda where, section: asked.append(where) or own(where, section))
    second = LocalModel.load(folder, FP16, id="tiny")
    if first == "warm":
        second.warm(PROMPT)
    said = words(second)
    assert asked == [folder]
    logits = second.backbone.forward(IDS, second.backbone.fresh(), 30)
    assert logits is not None
    assert torch.allclose(logits[0], second.backbone.model(IDS).logits[0].float(), atol=0.3)
    third = LocalModel.load(folder, FP16, id="tiny")
    assert words(third) == words(second) == said
    assert asked == [folder]


def test_what_cannot_be_mapped_is_loaded_whole_and_checked_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of the hub are bfloat16: the network is needed, what an earlier load found is not lost."""
    tiny_model("llama", len(byte_level_tokenizer())).bfloat16().save_pretrained(folder)
    write_manifest(folder, Manifest(1, "hub", "c" * 64, "bfloat16", 1000, 64, "5", {}))
    first = LocalModel.load(folder, FP16, id="tiny")
    for module, name in (
        (local.Backbone, "_check"),
        (prefill, "quickest_prefill"),
        (prepared_weights, "remember"),
        (torch.Tensor, "half"),
    ):
        monkeypatch.setattr(module, name, never)
    second = LocalModel.load(folder, FP16, id="tiny")
    assert words(second) == words(first)
    assert not isinstance(second.backbone._given, Lean)


@pytest.mark.parametrize("file", [prepared_weights.NAME, "generation_config.json"])
def test_a_file_that_is_gone_is_made_again_or_done_without(folder: Path, file: str) -> None:
    first = LocalModel.load(folder, FP16, id="tiny")
    (folder / file).unlink()
    second = LocalModel.load(folder, FP16, id="tiny")
    assert (words(second), second.ends) == (words(first), first.ends)
    assert isinstance(second.backbone._given, Lean)
    assert (folder / prepared_weights.NAME).is_file()


def test_arranging_on_threads_leaves_the_warnings_as_they_are() -> None:
    before = list(warnings.filters)
    pack = projections.Pack({f"layer{i}.out.half": torch.randn(1500, 896).half() for i in range(24)})
    pack.begin("fp16")
    for i in range(24):
        pack.arranged(f"layer{i}.out.half", never)()
    assert warnings.filters == before


def test_of_a_model_that_was_given_up_nothing_is_arranged(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on, arranged = threading.Event(), threading.Event(), list[int]()

    def slow(weight: torch.Tensor) -> str:
        arranged.append(len(weight))
        begun.set()
        assert go_on.wait(60)
        return "arranged"

    monkeypatch.setattr(projections.fp16_weights, "arrange", slow)
    pack = projections.Pack({f"layer{i}.out.half": torch.zeros(i + 1, 2) for i in range(9)})
    pack.begin("fp16")
    assert begun.wait(60)
    (thread,) = [each for each in threading.enumerate() if each.name == "arrange"]
    pack.release()
    del pack
    go_on.set()
    thread.join(60)
    assert not thread.is_alive()
    assert arranged == [9]


def test_the_program_ends_while_weights_are_arranged(folder: Path) -> None:
    """At its end no thread may be left in the middle of a computation."""
    code = (
        "import time\nfrom pathlib import Path\nfrom mindchat.config import ModelSection\nfrom mindchat.models import"
        " local\nfrom mindchat.models.network import projections\nown ="
        " projections.fp16_weights.arrange\nprojections.fp16_weights.arrange = lambda *held: (time.sleep(0.2),"
        f" own(*held))[1]\nwhere, section = Path({str(folder)!r}), ModelSection(arithmetic='fp16', threads=1)\nmodel ="
        " local.LocalModel.load(where, section, id='tiny')\nprint(model.settled, flush=True)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout.strip(), ran.stderr) == (0, "False", "")


def test_what_fails_to_be_arranged_says_so_each_time() -> None:
    pack = projections.Pack()
    for _ in range(2):
        with pytest.raises(AssertionError, match="asked for"):
            pack.arranged("p.half", never)()


def test_a_damaged_file_is_named_by_the_whole_load(folder: Path) -> None:
    no_weights(folder)
    with pytest.raises(ModelMissingError, match="its weights are damaged"):
        LocalModel.load(folder, FP16, id="tiny")


def test_what_a_load_imports(folder: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom mindchat.config import ModelSection\nfrom mindchat.models.local"
        f" import LocalModel\nmodel = LocalModel.load(Path({str(folder)!r}), ModelSection(arithmetic='fp16',"
        " threads=1), id='tiny')\nprint(model.backbone.stepped, sorted({'transformers.modeling_utils',"
        " 'torch._dynamo'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "fp16 []"
