"""Damaged and hostile model folders: each is refused in one sentence, nothing of a foreign library reaches the
terminal, nothing is run.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mindchat.config import ModelSection
from mindchat.errors import MindChatError, ModelMissingError, ModelTooLargeError
from mindchat.models.install import damage
from mindchat.models.loader import open_model

from ..conftest import FAMILIES, byte_level_tokenizer, tiny_model

pytestmark = pytest.mark.slow

Change = Callable[[Path], Any]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model as a hub gives it."""
    folder = tmp_path_factory.mktemp("sound") / "tiny"
    tokenizer = byte_level_tokenizer()
    tiny_model("llama", len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def config(**changed: Any) -> Change:
    def change(folder: Path) -> None:
        file = folder / "config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **changed}))

    return change


def write(name: str, text: str) -> Change:
    return lambda folder: (folder / name).write_text(text)


def cut(name: str, size: int) -> Change:
    return lambda folder: os.truncate(folder / name, size)


def drop(name: str) -> Change:
    return lambda folder: (folder / name).unlink()


def tensors(change: Callable[[dict[str, Any]], Any]) -> Change:
    def rewrite(folder: Path) -> None:
        from safetensors.torch import load_file, save_file

        held = load_file(folder / "model.safetensors")
        change(held)
        save_file(held, folder / "model.safetensors", metadata={"format": "pt"})

    return rewrite


def pickled(folder: Path) -> None:
    import torch
    from safetensors.torch import load_file

    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def code_of_its_own(folder: Path) -> None:
    config(model_type="theirs", auto_map={"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"})(folder)
    (folder / "evil.py").write_text("raise SystemExit('the code of a model was run')\n")


UP = "model.layers.1.mlp.up_proj.weight"
DAMAGES: dict[str, Change] = {
    "config: no JSON": write("config.json", "{"),
    "config: too deep": write("config.json", "[" * 100_000),
    "config: a list": write("config.json", "[]"),
    "config: unknown type": config(model_type="nonsense"),
    "config: \x1b[31mtype": config(model_type="\x1b[31mnonsense\x1b[0m\nline"),
    "config: no type": config(model_type=None),
    "config: an encoder": config(model_type="bert", architectures=["BertModel"]),
    "config: no decoder alone": config(model_type="t5", architectures=["T5ForConditionalGeneration"]),
    "config: a width that is none": config(hidden_size="abc"),
    "config: another width": config(hidden_size=40),
    "config: no heads": config(num_attention_heads=0),
    "config: heads that do not divide": config(num_attention_heads=3),
    "config: fewer than no layers": config(num_hidden_layers=-1),
    "config: more layers than weights": config(num_hidden_layers=5),
    "config: a smaller vocabulary": config(vocab_size=100),
    "config: a vast vocabulary": config(vocab_size=10**9),
    "config: vast depth": config(num_hidden_layers=10**7),
    "config: an infinite window": write("config.json", '{"num_attention_heads": 1e999}'),
    "config: code of its own": code_of_its_own,
    "config: code of another repository": config(model_type="theirs", auto_map={"AutoConfig": "evil/repo--x.Y"}),
    "config: quantised by a package": config(quantization_config={"quant_method": "gptq", "bits": 4}),
    "config: quantised somehow": config(quantization_config=3),
    "config: unknown angles": config(rope_parameters={"rope_type": "nope"}),
    "config: unknown activation": config(hidden_act="evil"),
    "config: unknown format": config(dtype="float7"),
    "weights: one missing": tensors(lambda held: held.pop(UP)),
    "weights: one of another shape": tensors(lambda held: held.update({UP: held[UP][:3, :3].clone()})),
    "weights: no numbers": tensors(lambda held: held[UP].mul_(float("nan"))),
    "weights: cut": cut("model.safetensors", 20_000),
    "weights: empty": cut("model.safetensors", 0),
    "weights: four bytes": cut("model.safetensors", 4),
    "weights: junk": write("model.safetensors", "x" * 5000),
    "weights: none": drop("model.safetensors"),
    "weights: a pickle": pickled,
    "tokenizer: none": drop("tokenizer.json"),
    "tokenizer: cut": cut("tokenizer.json", 100),
    "tokenizer: odd": write("tokenizer.json", '{"model": {}}'),
    "tokenizer: too deep": write("tokenizer.json", "[" * 100_000),
    "tokenizer: no JSON": write("tokenizer_config.json", "{"),
    "tokenizer: a list": write("tokenizer_config.json", "[]"),
    "tokenizer: code of its own": write(
        "tokenizer_config.json", '{"tokenizer_class": "E", "auto_map": {"AutoTokenizer": ["x.Y", null]}}'
    ),
    "tokenizer: special tokens": write("special_tokens_map.json", "{"),
    "generation: a list": write("generation_config.json", "[3]"),
    "template: broken": write("chat_template.jinja", "{% for"),
    "template: an exception": write("chat_template.jinja", "{{ 1 / 0 }}"),
    "template: reaches out": write("chat_template.jinja", "{{ messages.__class__.__mro__ }}"),
}


def opened(folder: Path, home: Path, **settings: Any) -> Any:
    return open_model(ModelSection(name=str(folder), **{"arithmetic": "fp32", **settings}), home / "models")


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_folder_is_a_sentence_and_nothing_else(
    sound: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    folder = tmp_path / "tiny"
    shutil.copytree(sound, folder)
    DAMAGES[name](folder)
    capfd.readouterr()
    with pytest.raises(MindChatError) as caught:
        opened(folder, tmp_path)
    assert isinstance(caught.value, ModelMissingError | ModelTooLargeError)
    said = caught.value.message + caught.value.hint
    assert "\n" not in said
    assert "\x1b" not in said
    assert caught.value.message.endswith(".")
    assert caught.value.hint
    assert len(caught.value.message) < 400 + len(str(folder))
    assert capfd.readouterr() == ("", "")


def test_a_sound_folder_loads_without_a_word(sound: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    assert opened(sound, tmp_path).window == 2048
    assert capfd.readouterr() == ("", "")
    assert (
        logging.get_verbosity(),
        logging.is_progress_bar_enabled(),
    ) == before, "an embedding program keeps its own settings"


def test_what_we_installed_is_fetched_anew_and_a_folder_of_ones_own_is_looked_at(tmp_path: Path) -> None:
    for ours, wanted in ((True, "mindchat models pull tiny"), (False, "config.json")):
        if ours:
            (tmp_path / damage.MARKER).write_text("{}")
        else:
            (tmp_path / damage.MARKER).unlink()
        with pytest.raises(ModelMissingError) as caught, damage.explained("tiny", tmp_path):
            raise KeyError("odd")
        assert wanted in caught.value.hint


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("CUDA out of memory."),
    ],
)
def test_memory_that_ends_is_told_as_such(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(ModelTooLargeError), damage.explained("tiny", tmp_path):
        raise error


@pytest.mark.parametrize("kind", FAMILIES)
def test_no_family_is_thought_to_lack_weights(tmp_path: Path, kind: str) -> None:
    """Tied heads, norms of single heads and sliding windows are stored in their own ways."""
    tokenizer = byte_level_tokenizer()
    tiny_model(kind, len(tokenizer)).save_pretrained(tmp_path / kind)
    tokenizer.save_pretrained(tmp_path / kind)
    assert opened(tmp_path / kind, tmp_path).id == kind
