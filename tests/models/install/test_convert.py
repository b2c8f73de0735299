"""The conversion of a real (tiny) GGUF file, and its failures."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mindchat.errors import MindChatError, ModelMissingError, ModelTooLargeError
from mindchat.models.install import convert as conversion
from mindchat.models.install.convert import STEPS, convert
from mindchat.models.install.gguf_file import parameters_of, require_memory
from mindchat.models.install.manifest import MARKER, read_manifest

from .conftest import CHATML, byte_alphabet, write_gguf

pytestmark = pytest.mark.slow

Gguf = tuple[Path, dict[str, Any]]


def tensors(folder: Path) -> dict[str, Any]:
    from safetensors.numpy import load_file

    return dict(load_file(folder / "model.safetensors"))


def test_every_weight_is_exactly_the_dequantised_one(tiny_gguf: Gguf, converted: Path) -> None:
    held, exact = tensors(converted), tiny_gguf[1]
    names = {
        "token_embd": "model.embed_tokens",
        "output_norm": "model.norm",
        "blk.0.attn_norm": "model.layers.0.input_layernorm",
        "blk.0.ffn_norm": "model.layers.0.post_attention_layernorm",
        "blk.0.ffn_gate": "model.layers.0.mlp.gate_proj",
        "blk.0.ffn_up": "model.layers.0.mlp.up_proj",
        "blk.0.ffn_down": "model.layers.0.mlp.down_proj",
        "blk.0.attn_v": "model.layers.0.self_attn.v_proj",
        "blk.0.attn_output": "model.layers.0.self_attn.o_proj",
    }
    for theirs, ours in names.items():
        assert (held[f"{ours}.weight"] == exact[theirs]).all(), theirs
    for part in ("q", "k"):  # llama.cpp interleaves the halves of each head's rotation
        undone = exact[f"blk.0.attn_{part}"].reshape(2, 8, 2, 32).swapaxes(1, 2).reshape(32, 32)
        assert (held[f"model.layers.0.self_attn.{part}_proj.weight"] == undone).all()


def test_one_matrix_serves_as_embedding_and_head(converted: Path) -> None:
    assert "lm_head.weight" not in tensors(converted)
    assert json.loads((converted / "config.json").read_text())["tie_word_embeddings"] is True


def test_a_separate_output_matrix_stays_separate(tmp_path: Path) -> None:
    exact = write_gguf(tmp_path / "two.gguf", separate_head=True)
    list(convert(tmp_path / "two.gguf", tmp_path / "two", name="two", sha256="00"))
    held = tensors(tmp_path / "two")
    assert (held["lm_head.weight"] == exact["output"]).all()
    assert (held["model.embed_tokens.weight"] == exact["token_embd"]).all()
    assert json.loads((tmp_path / "two" / "config.json").read_text())["tie_word_embeddings"] is False
    assert parameters_of(tmp_path / "two.gguf") == sum(weight.size for weight in held.values())


def test_nothing_remembers_the_quantisation(converted: Path) -> None:
    config = json.loads((converted / "config.json").read_text())
    assert "quantization_config" not in config
    assert config["dtype"] == "float32"
    assert config["max_position_embeddings"] == 64


def test_tokenizer_and_template_travel_along(converted: Path) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(converted / "tokenizer.json"))
    text = "the thé 1764 \N{GRINNING FACE} 日本"
    assert tokenizer.decode(tokenizer.encode(text).ids) == text
    assert tokenizer.encode("the").tokens == ["t", "he"]
    assert tokenizer.encode("<|im_start|>").ids == [1]
    assert (converted / "chat_template.jinja").read_text() == CHATML
    settings = json.loads((converted / "tokenizer_config.json").read_text())
    assert (settings["bos_token"], settings["eos_token"]) == ("<|im_start|>", "<|im_end|>")
    assert len(byte_alphabet()) == len(set(byte_alphabet())) == 256


def test_the_manifest_says_what_it_was_made_from(tiny_gguf: Gguf, converted: Path) -> None:
    manifest = read_manifest(converted)
    assert manifest is not None
    assert (manifest.source, manifest.sha256, manifest.dtype, manifest.window) == (
        "tiny.gguf",
        "ab" * 32,
        "float32",
        64,
    )
    assert manifest.parameters == parameters_of(tiny_gguf[0])
    assert manifest.source_size == tiny_gguf[0].stat().st_size
    assert set(manifest.files) == {file.name for file in converted.iterdir()} - {MARKER}


@pytest.mark.parametrize("damage", ["shorter", "missing", "other converter", "no marker", "broken marker"])
def test_a_damaged_folder_is_not_taken_for_a_model(converted: Path, tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(converted, folder)
    weights, marker = folder / "model.safetensors", folder / MARKER
    assert read_manifest(folder) is not None
    if damage == "shorter":
        os.truncate(weights, weights.stat().st_size - 1)
    elif damage == "missing":
        (folder / "tokenizer.json").unlink()
    elif damage == "other converter":
        marker.write_text(marker.read_text().replace('"converter": 1', '"converter": 0'))
    elif damage == "no marker":
        marker.unlink()
    else:
        marker.write_text(marker.read_text()[:-20])
    assert read_manifest(folder) is None


def test_an_interrupted_conversion_leaves_the_old_folder(tiny_gguf: Gguf, converted: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    shutil.copytree(converted, folder)
    running = convert(tiny_gguf[0], folder, name="tiny", sha256="cd" * 32)
    assert next(running).step == STEPS[0]
    running.close()
    kept = read_manifest(folder)
    assert kept is not None
    assert kept.sha256 == "ab" * 32
    assert [file.name for file in tmp_path.iterdir()] == ["tiny"]


@pytest.mark.parametrize("body", [b"", b"GGUF" + b"\0" * 100, b"no model at all" * 100])
def test_a_broken_file_is_refused_before_any_work(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "bad.gguf").write_bytes(body)
    with pytest.raises(MindChatError, match=r"bad\.gguf is not a readable GGUF") as caught:
        parameters_of(tmp_path / "bad.gguf")
    assert caught.value.hint


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_the_child_does_not_outlive_a_killed_parent(tiny_gguf: Gguf, tmp_path: Path) -> None:
    import psutil

    code = (
        "import sys, time\nfrom pathlib import Path\nfrom mindchat.models.install.convert import convert\nrunning ="
        " convert(Path(sys.argv[1]), Path(sys.argv[2]), name='x', sha256='')\nnext(running)\nprint('on',"
        " flush=True)\ntime.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(tiny_gguf[0]), str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "on\n"
        children = psutil.Process(parent.pid).children()
        assert len(children) == 1
        parent.kill()
    assert psutil.wait_procs(children, timeout=30)[1] == []
    assert not (tmp_path / "out").exists()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelMissingError, match=r"none\.gguf"):
        list(convert(tmp_path / "none.gguf", tmp_path / "x", name="x", sha256=""))


@pytest.mark.parametrize(
    ("program", "error", "words"),
    [
        ("import os; os.kill(os.getpid(), 9)", ModelTooLargeError, "does not fit into memory"),
        ("raise MemoryError", ModelTooLargeError, "does not fit into memory"),
        ("raise OSError(28, 'No space left on device')", MindChatError, "disk is full"),
        ("raise ValueError('\\x1b[31mred')", MindChatError, "ValueError: red"),
        ("pass", MindChatError, "incomplete"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="a shell script stands in for the interpreter")
def test_what_happens_to_the_child_is_told(
    tiny_gguf: Gguf,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: str,
    error: type[MindChatError],
    words: str,
) -> None:
    stand_in = tmp_path / "python"
    stand_in.write_text(f"#!{sys.executable}\n{program}\n")
    stand_in.chmod(0o700)
    monkeypatch.setattr(conversion.sys, "executable", str(stand_in))
    with pytest.raises(error, match=words):
        list(convert(tiny_gguf[0], tmp_path / "out", name="x", sha256=""))
    assert not (tmp_path / "out").exists()


def test_unpacking_is_refused_when_memory_is_short(tiny_gguf: Gguf) -> None:
    require_memory(tiny_gguf[0], 1000)
    with pytest.raises(ModelTooLargeError, match="free"):
        require_memory(tiny_gguf[0], 10**15)


def test_a_file_that_lacks_a_tensor_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library would fill the part with random numbers, and the model would answer with them."""
    import gguf

    add = gguf.GGUFWriter.add_tensor
    monkeypatch.setattr(
        gguf.GGUFWriter,
        "add_tensor",
        lambda self, name, *args, **rest: None if "ffn_up" in name else add(self, name, *args, **rest),
    )
    write_gguf(tmp_path / "part.gguf", separate_head=False)
    with pytest.raises(MindChatError, match=r"part\.gguf cannot be converted: a part of its weights is missing"):
        list(convert(tmp_path / "part.gguf", tmp_path / "made", name="part", sha256="00"))
    assert not (tmp_path / "made").exists()


STRAYS = {
    "config.json": '{"model_type": "theirs", "auto_map": {"AutoConfig": "evil.Config"}}',
    "tokenizer_config.json": (
        '{"tokenizer_class": "E", "auto_map": {"AutoTokenizer": ["evil.T", null]}, "chat_template": "stray"}'
    ),
    "chat_template.jinja": "stray",
    "generation_config.json": '{"eos_token_id": 77}',
    "tokenizer.json": "{",
    "special_tokens_map.json": '{"eos_token": "the"}',
    "added_tokens.json": '{"the": 3}',
    "evil.py": "raise SystemExit('run')",
}


def test_what_lies_beside_the_file_is_not_part_of_it(tmp_path: Path, converted: Path, tiny_gguf: Gguf) -> None:
    """A folder of downloads holds other models' files, and strangers'."""
    shutil.copy(tiny_gguf[0], tmp_path / "tiny.gguf")
    for name, text in STRAYS.items():
        (tmp_path / name).write_text(text)
    list(convert(tmp_path / "tiny.gguf", tmp_path / "made", name="tiny", sha256="ab" * 32))
    for file in converted.iterdir():
        if file.name not in (MARKER, "weights.pack"):
            assert (tmp_path / "made" / file.name).read_bytes() == file.read_bytes(), file.name
    assert read_manifest(tmp_path / "made").source == "tiny.gguf"  # type: ignore[union-attr]
