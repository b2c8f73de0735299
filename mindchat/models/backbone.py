"""One forward step of the network: ids in, logits out, with the attention row and the hidden state on request.

Owns: calling the transformers model with our cache, the probes. Does not own: what to feed next (decoding, sampling, scoring).
Tensors: ids (B, T) -> logits (B, n, V) of the last n positions.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from mindchat.errors import ModelMissingError
from mindchat.models import attention
from mindchat.models.cache import KV, windows_of

_CHECKED = 4
"""Rows that the self-check at load compares."""


class Backbone:
    """A network ready to be fed. `sample` is a short text's ids, for the self-check."""

    def __init__(self, model: Any, sample: Sequence[int]) -> None:
        self.model = model
        self.device: torch.device = model.device
        self.windows = windows_of(model.config)
        if self.windows is None:
            kind = model.config.model_type
            raise ModelMissingError(
                f"Models of type {kind} keep their past in a way that is not supported.", "Choose a Llama, Qwen, Mistral, Phi or Gemma."
            )
        parameters = inspect.signature(model.forward).parameters
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"
        self._decoder = model.get_decoder()
        self._hidden: Tensor | None = None
        layers = self._decoder.layers
        self._middle = layers[max(len(layers) // 2 - 1, 0)]
        self.probe = self._checked_probe(torch.tensor([list(sample)], device=self.device))

    def fresh(self) -> KV:
        """An empty cache for one sequence."""
        assert self.windows is not None
        return KV(self.windows)

    @torch.inference_mode()
    def forward(self, ids: Tensor, kv: KV, logits: int = 0) -> Tensor | None:
        """Feed ids (B, T) behind what kv holds; logits of the last `logits` positions (B, logits, V), or None for 0."""
        arguments = {"input_ids": ids, self._cache_name: kv, "use_cache": True}
        if not logits:
            self._decoder(**arguments)
            return None
        return self.model(**arguments, logits_to_keep=logits).logits  # type: ignore[no-any-return]

    def step(self, ids: Tensor, kv: KV, *, row: bool = False) -> tuple[Tensor, Tensor | None]:
        """Feed one token to each sequence, ids (B, 1): logits (B, V), and with `row` the last layer's attention row (B, positions held)."""
        if self.probe is None or not row:
            logits = self.forward(ids, kv, 1)
            assert logits is not None
            return logits[:, 0], None
        self.probe.on = True
        try:
            logits = self.forward(ids, kv, 1)
        finally:
            self.probe.on = False
        assert logits is not None
        measured = self.probe.row
        assert measured is not None
        hidden = kv.length - measured.shape[1]  # positions outside the last layer's window get no attention
        return logits[:, 0], torch.nn.functional.pad(measured, (hidden, 0)) if hidden else measured

    @torch.inference_mode()
    def middle(self, ids: Tensor, kv: KV) -> tuple[Tensor, Tensor]:
        """Feed one token to each sequence: logits (B, V), and the hidden states (B, d) that leave the middle layer, fp32."""
        held: list[Tensor] = []
        hook = self._middle.register_forward_hook(lambda _m, _i, output: held.append(output[0] if isinstance(output, tuple) else output))
        try:
            logits = self.forward(ids, kv, 1)
        finally:
            hook.remove()
        assert logits is not None
        return logits[:, 0], held[-1][:, -1].float()

    def _checked_probe(self, ids: Tensor) -> attention.Probe | None:
        """The probe if what it measures on the sample equals eager attention; otherwise None: the model must not pretend."""
        if self.model.config._attn_implementation != attention.NAME:
            return None
        self.probe = attention.attach(self.model, ids)
        if self.probe is None:
            return None
        kv = self.fresh()
        self.forward(ids[:, :-_CHECKED], kv)
        rows = [self.step(ids[:, i : i + 1], kv, row=True)[1] for i in range(ids.shape[1] - _CHECKED, ids.shape[1])]
        measured = [row[0] for row in rows if row is not None]
        reference = attention.eager_rows(self.model, ids)
        return self.probe if attention.agrees(measured, reference, self.model.dtype) else None
