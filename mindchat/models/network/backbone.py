"""One forward step of the network: ids in, logits out, with the attention row and the hidden state on request.

Owns: calling the transformers model with our cache, or the fast step where one fits; the probes.
Does not own: what to feed next (decoding, sampling, scoring).
Tensors: ids (B, T) -> logits (B, n, V) of the last n positions.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from mindchat.errors import ModelMissingError
from mindchat.models.network import attention_rows, fast_step, prefill, projections
from mindchat.models.network.entropy import entropy_of, log_probabilities
from mindchat.models.network.kv_cache import KV, windows_of
from mindchat.models.network.mapped_load import Lean

if TYPE_CHECKING:
    from mindchat.models.network.attention_hook import (
        Probe,
    )  # with transformers' modelling code, which most loads can do without

_CHECKED = 3
"""Steps that the self-checks at load compare."""
_MAX_KL = {"fp32": 1e-4, "fp16": 0.02, "int8": 0.1}
"""Largest Kullback-Leibler divergence, nats, of the fast step's distributions from the network's own."""

_MAX_NARROW_KL = 0.02
"""The same for a prefill with bfloat16 projections."""


_NAMES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
_TOLERATED = {"int8": torch.int8, "fp16": torch.float16}
"""Which tolerance attention rows of a step have, if not that of the network's own numbers."""


class Backbone:
    """A network ready to be fed: a transformers model, or a Lean one (only with `known`). `sample` is a short text's
    ids, for the self-check.

    `step`: what a step shall compute with, if that keeps to the network's distributions. `known` (step, measures): an
    earlier check's outcome on this machine, which stands for a new one. `pack`: copies of its weights.
    """

    def __init__(
        self,
        model: Any,
        sample: Sequence[int],
        *,
        step: projections.Step = "fp32",
        pack: projections.Pack | None = None,
        known: tuple[projections.Step | None, bool] | None = None,
    ) -> None:
        self._given = model
        self.device: torch.device = model.device
        self.windows = windows_of(model.config)
        if self.windows is None:
            kind = model.config.model_type
            raise ModelMissingError(
                f"Models of type {kind} keep their past in a way that is not supported.",
                "Choose a Llama, Qwen, Mistral, Phi or Gemma.",
            )
        self.fast: fast_step.FastStep | None = None
        self._probe: Probe | None = None
        self._pack = projections.Pack() if pack is None else pack
        self.prefill: prefill.Prefill = ""
        """What a prefill computes with beside the steps."""
        self.sure = True
        """Whether what was measured to choose the arithmetic can be relied on, and so may be kept for the next load."""
        ids = torch.tensor([list(sample)], device=self.device)
        self.measures = self._check(ids, step) if known is None else self._trust(ids, *known)
        """Whether step() gives attention rows, checked against eager attention: the model must not pretend."""

    @property
    def model(self) -> Any:
        """The transformers network."""
        return self._given.whole if isinstance(self._given, Lean) else self._given

    @cached_property
    def cache_name(self) -> str:
        """The argument by which the network takes its cache."""
        return "cache" if "cache" in inspect.signature(self.model.forward).parameters else "past_key_values"

    @property
    def arithmetic(self) -> str:
        """What one decoding step computes with: fp16 or int8 (weights only), fp32, bf16 …"""
        return self.stepped or _NAMES.get(self._given.dtype, str(self._given.dtype))

    def fresh(self) -> KV:
        """An empty cache for one sequence."""
        assert self.windows is not None
        return KV(self.windows)

    @torch.inference_mode()
    def forward(self, ids: Tensor, kv: KV, logits: int = 0) -> Tensor | None:
        """Feed ids (B, T) behind what kv holds; logits of the last `logits` positions (B, logits, V), or None for 0."""
        if self.prefill == "step" and self.fast is not None:
            return self.fast.chunk(ids, kv, logits)
        return self._through(ids, kv, logits)

    @torch.inference_mode()
    def _through(self, ids: Tensor, kv: KV, logits: int = 0) -> Tensor | None:
        """The same through transformers."""
        arguments = {"input_ids": ids, self.cache_name: kv, "use_cache": True}
        if not logits:
            self.model.get_decoder()(**arguments)
            return None
        return self.model(**arguments, logits_to_keep=logits).logits  # type: ignore[no-any-return]

    def step(self, ids: Tensor, kv: KV, *, row: bool = False) -> tuple[Tensor, Tensor | None]:
        """Feed one token to each sequence, ids (B, 1): logits (B, V), and with `row` the last layer's attention row (B,
        positions held).
        """
        row = row and self.measures
        if self.fast is not None:
            logits, measured, _ = self.fast(ids, kv, row=row)
            return logits, self._whole(measured, kv)
        if self._probe is None or not row:
            return self._last(ids, kv), None
        self._probe.on = True
        try:
            logits = self._last(ids, kv)
        finally:
            self._probe.on = False
        return logits, self._whole(self._probe.row, kv)

    @torch.inference_mode()
    def middle(self, ids: Tensor, kv: KV) -> tuple[Tensor, Tensor]:
        """Feed one token to each sequence: logits (B, V), and the hidden states (B, d) that leave the middle layer,
        fp32.
        """
        if self.fast is not None:
            logits, _, state = self.fast(ids, kv)
            return logits, state
        held: list[Tensor] = []
        layers = self.model.get_decoder().layers
        hook = layers[max(len(layers) // 2 - 1, 0)].register_forward_hook(
            lambda _m, _i, output: held.append(output[0] if isinstance(output, tuple) else output)
        )
        try:
            logits = self._last(ids, kv)
        finally:
            hook.remove()
        return logits, held[-1][:, -1].float()

    def _last(self, ids: Tensor, kv: KV) -> Tensor:
        """Feed through transformers: logits (B, V) of the last position."""
        logits = self._through(ids, kv, 1)
        assert logits is not None
        return logits[:, 0]

    @staticmethod
    @torch.inference_mode()
    def _whole(row: Tensor | None, kv: KV) -> Tensor | None:
        """The row over all positions held: those outside the last layer's window get no attention."""
        if row is None or row.shape[1] == kv.length:
            return row
        return torch.nn.functional.pad(row, (kv.length - row.shape[1], 0))

    @torch.inference_mode()
    def _check(self, ids: Tensor, asked: projections.Step) -> bool:
        """Choose the step: the fast one if its distributions on the sample are the network's own. Returns whether its
        rows are right too.
        """
        from mindchat.models.network import attention_hook

        registered = self.model.config._attn_implementation == attention_rows.NAME
        first = ids.shape[1] - _CHECKED
        rows, logits = (
            attention_hook.eager(self.model, ids)
            if registered
            else (None, self.model(input_ids=ids, use_cache=False).logits[0])
        )
        if bool(logits.isnan().any()):
            raise ModelMissingError(
                "The model's weights are damaged: what they compute are no numbers.", "Fetch the model anew."
            )
        start = self.fresh()
        self.forward(ids[:, :first], start)
        self.measures = True  # for the time of the check
        wanted: tuple[projections.Step, ...] = (asked, "fp32")
        for step in dict.fromkeys(wanted):
            self.fast = fast_step.build(self.model, step=step, pack=self._pack)
            if self.fast is None:
                continue
            mine, measured = self._steps(ids[:, first:], start)
            if self._divergence(logits[first:], mine) <= _MAX_KL[step]:
                return rows is not None and attention_rows.agrees(
                    measured, rows, _TOLERATED.get(step, self.model.dtype)
                )
            self.fast = None
        self._probe = attention_hook.attach(self.model, ids) if registered else None
        if self._probe is None or rows is None:
            return False
        return attention_rows.agrees(self._steps(ids[:, first:], start)[1], rows, self.model.dtype)

    @property
    def stepped(self) -> projections.Step | None:
        """Which fast step was chosen; None for transformers' own."""
        return None if self.fast is None else self.fast.step

    def _trust(self, ids: Tensor, step: projections.Step | None, measures: bool) -> bool:
        """Take the step that an earlier check chose."""
        self.fast = fast_step.build(self._given, step=step, pack=self._pack) if step else None
        if self.stepped != step:
            return self._check(ids, step or "fp32")
        if self.fast is None and measures:
            from mindchat.models.network import attention_hook

            self._probe = attention_hook.attach(self.model, ids)
        return measures

    @torch.inference_mode()
    def choose_prefill(self, sample: Sequence[int], known: prefill.Prefill | None = None) -> None:
        """What a prefill computes with beside steps of fewer bytes: the quickest here that changes next to nothing. May
        change the network in place.

        `known`: an earlier choice on this machine, which stands for a new one.
        """
        if self.stepped in (None, "fp32") or self.fast is None:
            return
        kind, sure = (known, True) if known is not None else prefill.quickest_prefill(self.fast.step)
        self.sure = self.sure and sure
        if not kind:
            return
        ids = torch.tensor([list(sample)], device=self.device)
        own = self.model(input_ids=ids, use_cache=False).logits[0] if known is None else None
        undo = prefill.narrow(self.model, self._pack) if kind == "bf16" else None
        self.prefill = kind
        if own is None:
            return
        mine = self.forward(ids, self.fresh(), len(sample))
        assert mine is not None
        if self._divergence(own, mine[0]) > (_MAX_NARROW_KL if kind == "bf16" else _MAX_KL[self.fast.step]):
            self.prefill = ""
            if undo is not None:
                undo()

    def told(self, sample: Sequence[int]) -> tuple[int, ...]:
        """The likeliest id behind each id of a text: what another load of these weights has to say, too."""
        logits = self.forward(torch.tensor([list(sample)], device=self.device), self.fresh(), len(sample))
        assert logits is not None
        return tuple(logits[0].argmax(dim=-1).tolist())

    def _steps(self, ids: Tensor, start: KV) -> tuple[Tensor, list[Tensor]]:
        """Logits (T, V) and attention rows of ids (1, T), fed one by one behind a copy of `start`."""
        kv = start.branch(start.length)
        both = [self.step(ids[:, i : i + 1], kv, row=True) for i in range(ids.shape[1])]
        return torch.cat([logits for logits, _ in both]), [row[0] for _, row in both if row is not None]

    @staticmethod
    def _divergence(own: Tensor, mine: Tensor) -> float:
        """Largest KL divergence, nats, over the rows of two sets of logits (T, V)."""
        full = log_probabilities(own)
        return float((-entropy_of(full) - (full.exp() * log_probabilities(mine)).sum(dim=-1)).max())
