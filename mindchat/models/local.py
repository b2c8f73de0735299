"""The local language model: our own decode loop over a transformers model, measuring while it generates.

Owns: the Model port on torch. Does not own: which file to load (loader), templates, the attention probe, the cache's
memory.
Source: MIND §3.2 (entropy from raw logits, attention received in the last layer); cache reuse is exact, token by token.
Not for two threads at once, except count() and render().
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

from mindchat.config import ModelSection
from mindchat.errors import CapabilityError, ModelMissingError, WindowError
from mindchat.models.decode.chat_templates import PLAIN_STOP, ChatFormat, Rendered
from mindchat.models.decode.detokenizer import Vocabulary
from mindchat.models.decode.greedy import Greedy, Request
from mindchat.models.decode.sampling import Sampler, Spread
from mindchat.models.decode.scoring import score_options, span_attention
from mindchat.models.install import damage
from mindchat.models.network import prepared_weights, projections
from mindchat.models.network.arithmetic import quickest_step
from mindchat.models.network.backbone import Backbone
from mindchat.models.network.kv_cache import Line, PrefixStore, shared
from mindchat.models.network.mapped_load import Lean
from mindchat.ports import NEVER, Cancel
from mindchat.values import Choice, Draft, Piece, Prefilled, Prompt, Signal, Span, StreamItem, Token

_SAMPLE = "Paris is the capital of France, and its river is the Seine."
_DTYPES = {"bf16": torch.bfloat16}
"""What the network is loaded in, if not in fp32: steps of fewer bytes stand beside the full weights."""
_ON_GPUS = {**_DTYPES, "auto": torch.bfloat16, "fp16": torch.float16}
"""The same on graphics processors, which have kernels of their own."""


_STEPS: dict[str, projections.Step] = {"fp16": "fp16", "int8": "int8"}
"""What a step is asked to compute with, if not with what the network is loaded in."""


class LocalModel:
    """A causal language model with its signals. Implements mindchat.ports.Model."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        section: ModelSection,
        *,
        id: str,
        pack: projections.Pack | None = None,
        known: tuple[projections.Step | None, bool] | None = None,
    ) -> None:
        self.section = section
        self._id = id
        self.vocabulary = Vocabulary(tokenizer)
        if not self.vocabulary.exact():
            raise ModelMissingError(
                f"The tokenizer of {id} spells words in a way that is not supported.",
                "Choose a model with a BPE vocabulary.",
            )
        self.format = ChatFormat(self.vocabulary)
        sample = self.vocabulary.continuation(_SAMPLE)
        step: projections.Step = "fp32"
        sure = True
        if known is None:
            step, sure = (
                quickest_step(model, sample, pack=pack)
                if section.arithmetic == "auto"
                else (_STEPS.get(section.arithmetic, step), True)
            )
        self._backbone = Backbone(model, sample, step=step, pack=pack, known=known)
        self._backbone.sure = sure
        self._prove: Callable[[LocalModel, Cancel], LocalModel | None] | None = None
        """What is left of this model's load: gives another one to be instead, if it is not what it was."""
        self.store = PrefixStore(self._backbone.fresh, section.cache_mb * 1024 * 1024, section.reuse)
        self.ends = self.format.end_ids() | _ends(model.generation_config, tokenizer)
        config = model.config.get_text_config()
        self._window: int = min(section.window or config.max_position_embeddings, config.max_position_embeddings)
        measured = {Signal.ATTENTION} if self._backbone.measures else set()
        self._provides = frozenset({Signal.LOGPROB, Signal.ENTROPY, Signal.HIDDEN} | measured)
        self._used = [0, 0, 0]

    @classmethod
    def load(
        cls, folder: Path, section: ModelSection, *, id: str, kept: prepared_weights.Kept | None = None
    ) -> LocalModel:
        """Load a converted or hub folder from disk; opens no socket. `id` is the name shown to people, `kept` what an
        earlier load left.

        Raises ModelMissingError if the folder is damaged or no text model, ModelTooLargeError.
        """
        kept = kept or prepared_weights.recalled(folder, section.arithmetic, section.threads)
        with damage.quiet(), damage.explained(id, folder):
            return cls._load(folder, section, id, kept)

    @classmethod
    def _load(cls, folder: Path, section: ModelSection, id: str, kept: prepared_weights.Kept) -> LocalModel:
        """The quicker way where an earlier load allows it, else the whole one."""
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        if kept.verdict is not None and kept.verdict.told:
            try:
                network = Lean(folder, lambda: _network(folder, section))
                return cls._lean(network, tokenizer, section, id, folder, kept.pack, kept.verdict)
            except (KeyError, OSError, ValueError, SafetensorError):  # laid out in another way, or not in fp32
                pass
            except RuntimeError:  # shapes that do not fit: the whole load says what is wrong
                kept = prepared_weights.Kept(projections.Pack(), None)
        return cls._whole(folder, tokenizer, section, id, kept)

    @classmethod
    def _lean(
        cls,
        network: Lean,
        tokenizer: Any,
        section: ModelSection,
        id: str,
        folder: Path,
        pack: projections.Pack,
        found: prepared_weights.Verdict,
    ) -> LocalModel:
        """A load without transformers' network, where an earlier one found that the fast step does all that is asked of
        it. Before it is used, it has to say what it said then: that needs all weights arranged, which goes on while
        nothing is asked.
        """
        loaded = cls(network, tokenizer, section, id=id, pack=pack, known=(found.step, found.measures))
        sample = loaded.vocabulary.continuation(_SAMPLE)
        loaded._backbone.choose_prefill(sample, found.prefill)

        def prove(model: LocalModel, cancel: Cancel) -> LocalModel | None:
            try:
                pack.finish(cancel.check)
                same = model._backbone.told(sample) == found.told
            except RuntimeError:  # as in load()
                same = False
            if same:
                prepared_weights.save_pack(pack, folder)
            pack.release()
            if not same:  # neither the copies nor the verdict are to be believed; two networks at once might not fit
                model._backbone.fast = None
            if same:
                return None
            with damage.explained(id, folder):
                return cls._whole(folder, tokenizer, section, id, prepared_weights.Kept(projections.Pack(), None))

        loaded._prove = prove
        return loaded

    @classmethod
    def _whole(
        cls, folder: Path, tokenizer: Any, section: ModelSection, id: str, kept: prepared_weights.Kept
    ) -> LocalModel:
        """A load that checks what was not found before, and keeps what it found."""
        pack, verdict = kept.pack, kept.verdict
        known = None if verdict is None else (verdict.step, verdict.measures)
        loaded = cls(_network(folder, section), tokenizer, section, id=id, pack=pack, known=known)
        network, sample = loaded._backbone, loaded.vocabulary.continuation(_SAMPLE)
        network.choose_prefill(sample, None if verdict is None else verdict.prefill)
        told = network.told(sample) if network.prefill == "step" else ()
        now = prepared_weights.Verdict(network.stepped, network.measures, network.prefill, told)
        if now != verdict and network.sure:
            prepared_weights.remember(folder, section.arithmetic, now)
        if now.step in ("fp16", "int8"):
            prepared_weights.save_pack(pack, folder)
        pack.finish(NEVER.check)
        pack.release()
        return loaded

    @property
    def settled(self) -> bool:
        """Whether nothing is left of the load."""
        return self._prove is None

    def settle(self, *, cancel: Cancel = NEVER) -> None:
        """See mindchat.ports.Settles: a load that took an earlier one's word is checked, and made anew if it was wrong.
        Every verb does it first.

        Interrupted while it arranges weights, it goes on where it was the next time.
        """
        if self._prove is not None:
            whole, self._prove = self._prove(self, cancel), None
            if whole is not None:
                self.__dict__.update(whole.__dict__)

    @property
    def backbone(self) -> Backbone:
        """The network, settled."""
        self.settle()
        return self._backbone

    # ── facts ──

    @property
    def id(self) -> str:
        """Catalogue id or path."""
        return self._id

    @property
    def provides(self) -> frozenset[Signal]:
        """The signals it can measure; without ATTENTION if the self-check at load failed."""
        return self._provides

    @property
    def window(self) -> int:
        """Most tokens of prompt and generation together."""
        return self._window

    def count(self, prompt: Prompt) -> int:
        """Tokens of the prompt as it would be sent."""
        return len(self.format.render(prompt).ids)

    def render(self, prompt: Prompt) -> str:
        """Every character that would be sent, chat template included."""
        return self.format.render(prompt).text

    def usage(self) -> tuple[int, int, int]:
        """(prompt tokens new, prompt tokens cached, generated) since the last call."""
        used = (self._used[0], self._used[1], self._used[2])
        self._used = [0, 0, 0]
        return used

    def warm(self, prompt: Prompt, *others: Prompt, cancel: Cancel = NEVER) -> int:
        """Compute the longest beginning that these prompts share and keep it cached: what each first question would
        wait for.

        Give two prompts of the same layout with different questions; a single one is computed whole. Returns the tokens
        of the shared beginning; counts in usage(). The prefix is dropped like any other when the cache is full.
        """
        self.settle(cancel=cancel)
        ids = self.format.render(prompt).ids
        for other in others:
            ids = ids[: shared(ids, self.format.render(other).ids)]
        line = self.store.take(ids)
        try:
            for _ in self._feed(line, ids[: self._window - 1], cancel):
                pass
        finally:
            self.store.give(line)
        return len(ids)

    def forget_prefixes(self) -> None:
        """Drop every cached prefix: the next call computes its whole prompt."""
        self.store.clear()

    # ── verbs ──

    def stream(
        self,
        prompt: Prompt,
        *,
        want: frozenset[Signal],
        max_tokens: int,
        stop: Sequence[str] = (),
        allow: Sequence[str] | None = None,
        cancel: Cancel = NEVER,
    ) -> Iterator[StreamItem]:
        """See mindchat.ports.Model.stream. Raises WindowError if the prompt alone fills the window."""
        rendered = self._fit(prompt, cancel)
        request = self._request(rendered, want, max_tokens, stop, cancel)
        options = None if allow is None else [tuple(self.vocabulary.continuation(option)) for option in allow]
        greedy = Greedy(self.backbone, self.vocabulary, self.ends, request, options)
        line = self.store.take(rendered.ids[:-1])
        try:
            logits = yield from self._prefill(line, rendered.ids, cancel)
            for item in greedy.run(line, logits):
                self._used[2] += isinstance(item, Token)
                yield item
        finally:
            self.store.give(line)

    def sample(
        self,
        prompt: Prompt,
        *,
        n: int,
        want: frozenset[Signal],
        max_tokens: int,
        temperature: float = 1.0,
        top_k: int = 50,
        top_p: float = 0.9,
        seed: int = 0,
        stop: Sequence[str] = (),
        cancel: Cancel = NEVER,
    ) -> Sequence[Draft]:
        """See mindchat.ports.Model.sample: the same seed gives the same samples."""
        rendered = self._fit(prompt, cancel)
        request = self._request(rendered, want, max_tokens, stop, cancel)
        sampler = Sampler(self.backbone, self.vocabulary, self.ends, request, Spread(temperature, top_k, top_p, seed))
        line = self.store.take(rendered.ids[:-1])
        try:
            logits = self._prefilled(line, rendered.ids, cancel)
            kv = line.kv.branch(len(line.ids), n, room=request.max_tokens + 2)
        finally:
            self.store.give(line)
        drafts = sampler.run(kv, logits.expand(n, -1), n)
        self._used[2] += sum(len(draft.tokens) for draft in drafts)
        return drafts

    def choose(self, prompt: Prompt, options: Sequence[str], *, cancel: Cancel = NEVER) -> Sequence[Choice]:
        """See mindchat.ports.Model.choose."""
        rendered = self._fit(prompt, cancel)
        ids = [self.vocabulary.continuation(option) for option in options]
        line = self.store.take(rendered.ids[:-1])
        try:
            logits = self._prefilled(line, rendered.ids, cancel)
            totals = score_options(self.backbone, line.kv, logits, ids, cancel)
        finally:
            self.store.give(line)
        self._used[0] += sum(map(len, ids))
        return [Choice(option, total, len(tokens)) for option, total, tokens in zip(options, totals, ids, strict=True)]

    def attention(self, prompt: Prompt, draft: Draft, span: Span, *, cancel: Cancel = NEVER) -> Sequence[Piece]:
        """See mindchat.ports.Model.attention; pieces are all tokens before the span. Raises CapabilityError if it
        cannot measure attention.
        """
        if Signal.ATTENTION not in self._provides:
            raise CapabilityError(
                f"{self._id} cannot measure attention here.", "Choose a policy that needs none, such as flare."
            )
        rendered = self._fit(prompt, cancel)
        ids = (*rendered.ids, *draft.ids[: span.start])
        line = self.store.take(ids)
        try:
            self._used[1] += len(line.ids)
            for _ in self._feed(line, ids, cancel):
                pass
            weights = span_attention(self.backbone, line, draft.ids[span.start : span.end], cancel)
        finally:
            self.store.give(line)
        origins = (*rendered.origins, *["reasoning"] * span.start)
        return [
            Piece(text, weight, origin)
            for text, weight, origin in zip(self.vocabulary.shown(ids), weights, origins, strict=True)
        ]

    # ── feeding ──

    def _fit(self, prompt: Prompt, cancel: Cancel) -> Rendered:
        self.settle(cancel=cancel)
        rendered = self.format.render(prompt)
        if len(rendered.ids) >= self._window:
            raise WindowError(
                f"The prompt has {len(rendered.ids)} tokens; the window of {self._id} has {self._window}.",
                "Shorten the question, lower -k or --repeat, or raise model.window.",
            )
        return rendered

    def _request(
        self, rendered: Rendered, want: frozenset[Signal], max_tokens: int, stop: Sequence[str], cancel: Cancel
    ) -> Request:
        stops = (*stop, PLAIN_STOP) if self.format.plain else tuple(stop)
        return Request(
            want & self._provides,
            min(max_tokens, self._window - len(rendered.ids)),
            tuple(s for s in stops if s),
            cancel,
        )

    def _prefill(self, line: Line, ids: Sequence[int], cancel: Cancel) -> Generator[Prefilled, None, Tensor]:
        """Complete the line to `ids`, reporting after each chunk; returns the logits (1, V) behind it."""
        started, cached = time.perf_counter(), len(line.ids)
        self._used[1] += cached
        last: Tensor | None = None
        for logits in self._feed(line, ids, cancel):
            last = logits
            yield Prefilled(len(line.ids), len(ids), cached, time.perf_counter() - started)
        assert last is not None
        return last

    def _prefilled(self, line: Line, ids: Sequence[int], cancel: Cancel) -> Tensor:
        """_prefill() without the news."""
        self._used[1] += len(line.ids)
        last: Tensor | None = None
        for logits in self._feed(line, ids, cancel):
            last = logits
        assert last is not None
        return last

    def _feed(self, line: Line, ids: Sequence[int], cancel: Cancel) -> Iterator[Tensor | None]:
        """Feed what the line lacks of `ids` in chunks that end at multiples of the chunk size; the last one yields
        logits (1, V).
        """
        size = self.section.prefill_chunk
        while len(line.ids) < len(ids):
            cancel.check()
            at = len(line.ids)
            end = min((at // size + 1) * size, len(ids))
            last, fed = end == len(ids), torch.tensor([ids[at:end]], device=self.backbone.device)
            if last and end - at == 1:
                logits: Tensor | None = self.backbone.step(fed, line.kv)[0]
            else:
                chunk = self.backbone.forward(fed, line.kv, int(last))
                logits = None if chunk is None else chunk[:, -1]
            line.ids += ids[at:end]
            self._used[0] += end - at
            yield logits


def _network(folder: Path, section: ModelSection) -> Any:
    """The transformers model with the attention function that can be measured: on the processor, on a graphics card, or
    its layers over several.
    """
    from mindchat.models.network import attention_hook

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    dtype = (_ON_GPUS if gpus else _DTYPES).get(section.arithmetic, torch.float32)
    spread = {"device_map": "auto"} if gpus > 1 else {}
    safe = {"use_safetensors": True, "local_files_only": True, "trust_remote_code": False}
    with damage.quiet():
        model, loading = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=dtype,
            attn_implementation=attention_hook.register(),
            output_loading_info=True,
            **safe,
            **spread,
        )
    damage.require_all(loading)
    return (model if spread else model.to("cuda" if gpus else "cpu")).eval()


def _ends(generation: Any, tokenizer: Any) -> frozenset[int]:
    """End ids as the model's own files name them."""
    named = [getattr(generation, "eos_token_id", None), tokenizer.eos_token_id]
    return frozenset(
        i for each in named for i in (each if isinstance(each, (list, tuple)) else [each]) if i is not None
    )
