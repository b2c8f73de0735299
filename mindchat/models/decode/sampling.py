"""Seeded samples: several continuations of one prompt, batched over one shared prefill.

Owns: tempered, truncated sampling and the hidden state at the closing position (SeaKR §3.1). Does not own: the
uncertainty computed from it (mindchat.word_signals.log_det_gram). Signals of sampled tokens stay those of the raw
distribution.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from msgspec import Struct
from torch import Tensor

from mindchat.models.decode.detokenizer import Vocabulary
from mindchat.models.decode.greedy import Request
from mindchat.models.decode.stop_strings import Tail
from mindchat.models.network.backbone import Backbone
from mindchat.models.network.entropy import logprob_and_entropy
from mindchat.models.network.kv_cache import KV
from mindchat.values import Attended, Draft, Finish, Signal, Token
from mindchat.word_signals import received


class Spread(Struct, frozen=True):
    """How samples are drawn."""

    temperature: float
    top_k: int
    """0: no limit."""
    top_p: float
    seed: int


def truncated(logits: Tensor, spread: Spread) -> Tensor:
    """Probabilities (B, V) after temperature, then top-k, then top-p (the smallest set whose mass reaches top_p; never
    empty).
    """
    scaled = logits.float() / spread.temperature
    k = min(spread.top_k or scaled.shape[-1], scaled.shape[-1])
    top, index = scaled.topk(k, dim=-1)  # (B, k), descending
    mass = top.softmax(dim=-1)
    mass = mass.masked_fill(mass.cumsum(dim=-1) - mass >= spread.top_p, 0.0)
    mass[:, 0].clamp_(min=torch.finfo(mass.dtype).tiny)
    return torch.zeros_like(scaled).scatter_(-1, index, mass / mass.sum(dim=-1, keepdim=True))


class _Row:
    """One sample under way."""

    def __init__(self, vocabulary: Vocabulary, stop: Sequence[str]) -> None:
        self.decoder = vocabulary.detokenizer()
        self.tail = Tail(stop)
        self.tokens: list[Token] = []
        self.rows: list[Attended] = []
        self.finish: Finish | None = None
        self.hidden: Tensor | None = None
        self.drawn = 0

    def close(self, finish: Finish) -> None:
        """No more tokens."""
        self.finish = finish
        if finish is not Finish.STOP:
            self.tokens += self.tail.close(self.decoder.close())

    def draft(self, *, attention: bool) -> Draft:
        """The sample as a draft."""
        got = received(self.rows, len(self.tokens)) if attention else None
        state = None if self.hidden is None else self.hidden.cpu().numpy()
        return Draft("".join(t.text for t in self.tokens), tuple(self.tokens), got, self.finish or Finish.LENGTH, state)


class Sampler:
    """Draws n continuations in step."""

    def __init__(
        self, backbone: Backbone, vocabulary: Vocabulary, ends: frozenset[int], request: Request, spread: Spread
    ) -> None:
        self._backbone, self._ends, self._request, self._spread = backbone, ends, request, spread
        self._vocabulary = vocabulary
        self._close_id = min(ends) if ends else 0
        self._hidden = Signal.HIDDEN in request.want
        self._attention = Signal.ATTENTION in request.want

    def run(self, kv: KV, logits: Tensor, n: int) -> list[Draft]:
        """n drafts; kv holds the prompt for n sequences, logits (n, V) follow it."""
        generator = torch.Generator().manual_seed(self._spread.seed)
        rows = [_Row(self._vocabulary, self._request.stop) for _ in range(n)]
        first = kv.length
        for step in range(self._request.max_tokens):
            self._request.cancel.check()
            feed = self._draw(rows, logits, generator, step)
            if all(row.finish is not None and (row.hidden is not None or not self._hidden) for row in rows):
                break
            logits = self._feed(rows, feed, kv, first, step)
        for row in rows:
            if row.finish is None:
                row.close(Finish.LENGTH)
        if self._hidden and any(row.hidden is None for row in rows):
            self._capture(rows, kv)
        return [row.draft(attention=self._attention) for row in rows]

    def _draw(self, rows: list[_Row], logits: Tensor, generator: torch.Generator, step: int) -> list[int]:
        """Take one token for each open row; the ids to feed: a finished row gets the end mark, where its hidden state
        is read.
        """
        drawn = torch.multinomial(truncated(logits, self._spread).cpu(), 1, generator=generator)[:, 0]
        logprobs, entropies = logprob_and_entropy(logits, drawn.to(logits.device))
        feed = []
        for row, token, logprob, entropy in zip(rows, drawn.tolist(), logprobs, entropies, strict=True):
            if row.finish is None and token in self._ends:
                row.close(Finish.EOS)
            elif row.finish is None:
                row.drawn += 1
                ready, stopped = row.tail.push(Token(step, token, row.decoder.feed(token), logprob, entropy))
                row.tokens += ready
                if stopped:
                    row.close(Finish.STOP)
            feed.append(token if row.finish is None else self._close_id)
        return feed

    def _feed(self, rows: list[_Row], feed: list[int], kv: KV, first: int, step: int) -> Tensor:
        """Feed one token to every row: logits (n, V); collects hidden states of rows that just ended, and attention
        rows.
        """
        ids = torch.tensor(feed, device=self._backbone.device)[:, None]
        if self._hidden and any(row.finish is not None and row.hidden is None for row in rows):
            logits, states = self._backbone.middle(ids, kv)
            for row, state in zip(rows, states, strict=True):
                if row.finish is not None and row.hidden is None:
                    row.hidden = state
            return logits
        logits, measured = self._backbone.step(ids, kv, row=self._attention)
        if measured is not None:
            for row, values in zip(rows, measured[:, first : first + step].tolist(), strict=True):
                if row.finish is None:
                    row.rows.append(Attended(step, tuple(values)))
        return logits

    def _capture(self, rows: list[_Row], kv: KV) -> None:
        """One more step with the end mark for rows that reached the limit."""
        ids = torch.full((len(rows), 1), self._close_id, device=self._backbone.device)
        _, states = self._backbone.middle(ids, kv)
        for row, state in zip(rows, states, strict=True):
            if row.hidden is None:
                row.hidden = state
