"""An encoder on torch: texts to vectors of unit length.

Owns: ports.Encoder over a transformers network that reads both ways: tokens, pooling, batches. Does not own: which
folder it is (encoders), what a passage's text is (corpus), keeping vectors (corpus).
Source: Sentence-BERT (Reimers and Gurevych, arXiv:1908.10084); how a network's vectors become one is said by the files
that sentence-transformers writes beside it. Several threads may call; one works at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModel, AutoTokenizer

from mindchat.errors import ModelMissingError
from mindchat.models.install import damage
from mindchat.models.install.hub import POOLING
from mindchat.models.install.manifest import flat
from mindchat.text.foreign_json import decode_json

BATCH = 32
"""Texts read together, those of like length: padding costs as much as words."""
_PROMPTS = {"question": ("query",), "passage": ("document", "passage")}
"""What sentence-transformers calls the words that some networks want before a text."""


class SentenceEncoder:
    """Implements ports.Encoder."""

    def __init__(self, network: Any, tokenizer: Any, *, pooling: str, length: int, prompts: dict[str, str]):
        self._network, self._tokenizer = network, tokenizer
        self._pooling, self._length, self._prompts = pooling, length, prompts
        self._guard = threading.Lock()

    @classmethod
    def load(cls, folder: Path, *, id: str, threads: int = 0) -> SentenceEncoder:
        """Load from disk; opens no socket. `id` is shown to people. Raises ModelMissingError if the
        folder holds no encoder.
        """
        if threads:
            torch.set_num_threads(threads)
        with damage.quiet(), damage.explained(id, folder):
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
            network, loading = AutoModel.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False, use_safetensors=True, dtype=torch.float32,
                output_loading_info=True,
            )  # fmt: skip
            # the pooler is a layer for sentence pairs, which no vector here passes through
            missing = [name for name in map(str, loading.get("missing_keys") or ()) if not name.startswith("pooler.")]
            damage.require_all({"missing_keys": missing})
            longest = int(network.config.max_position_embeddings)
            told = _read(folder / "sentence_bert_config.json").get("max_seq_length")
            return cls(
                network.eval(), tokenizer, pooling=_pooling(folder, id),
                length=min(int(told or longest), longest, int(tokenizer.model_max_length)), prompts=_prompts(folder),
            )  # fmt: skip

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See ports.Encoder."""
        return self._encode([self._prompts["passage"] + text for text in texts])

    def question(self, text: str) -> NDArray[np.float32]:
        """See ports.Encoder."""
        vector: NDArray[np.float32] = self._encode([self._prompts["question"] + text])[0]
        return vector

    def _encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        found = np.zeros((len(texts), int(self._network.config.hidden_size)), np.float32)
        with self._guard, torch.inference_mode():
            for start in range(0, len(order), BATCH):
                rows = order[start : start + BATCH]
                found[rows] = self._batch([texts[at] for at in rows])
        return found

    def _batch(self, texts: list[str]) -> NDArray[np.float32]:
        read = self._tokenizer(texts, padding=True, truncation=True, max_length=self._length, return_tensors="pt")
        states = self._network(**read).last_hidden_state
        if self._pooling == "cls":
            pooled = states[:, 0]
        else:
            kept = read["attention_mask"].unsqueeze(-1).to(states.dtype)
            pooled = (states * kept).sum(1) / kept.sum(1).clamp(min=1e-9)
        vectors: NDArray[np.float32] = torch.nn.functional.normalize(pooled, dim=-1).numpy()
        return vectors


def _pooling(folder: Path, id: str) -> str:
    """mean | cls. Raises ModelMissingError for a folder that does not say, or says another way."""
    told = _read(folder / flat(POOLING)) or _read(folder / POOLING)
    chosen = [
        name.removeprefix("pooling_mode_") for name, on in told.items() if name.startswith("pooling_mode_") and on
    ]
    named = {"mean_tokens": "mean", "cls_token": "cls"}
    if len(chosen) != 1 or chosen[0] not in named:
        what = f"pools in a way that is not known here ({', '.join(chosen)})" if chosen else "does not say how it pools"
        raise ModelMissingError(
            f"{id} is no encoder that can be used here: it {what}.",
            f"An encoder of sentence-transformers has {POOLING}; mean and cls are known.",
        )
    return named[chosen[0]]


def _prompts(folder: Path) -> dict[str, str]:
    told = _read(folder / "config_sentence_transformers.json").get("prompts") or {}
    return {kind: next((str(told[name]) for name in names if told.get(name)), "") for kind, names in _PROMPTS.items()}


def _read(file: Path) -> dict[str, Any]:
    try:
        found = decode_json(file.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ModelMissingError(
            f"{file.name} of the encoder cannot be read: {error}.", "Fetch the encoder again: mindchat models pull."
        ) from error
    return found if isinstance(found, dict) else {}
