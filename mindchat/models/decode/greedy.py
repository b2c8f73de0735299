"""Greedy decoding: one token a step, its signals, stop strings, constrained choice.

Owns: the loop, what is held back until it is certain, the order of items. Does not own: the prompt, the cache store
(hf). Off by one, twice: the entropy of token j comes from the distribution that token j was taken from; its attention
row is known one step later, when token j has been fed. MIND §3.2 Eq 1, 2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import torch
from msgspec import Struct
from torch import Tensor

from mindchat.models.decode.detokenizer import Vocabulary
from mindchat.models.decode.stop_strings import Tail
from mindchat.models.network.backbone import Backbone
from mindchat.models.network.entropy import logprob_and_entropy
from mindchat.models.network.kv_cache import Line
from mindchat.ports import Cancel
from mindchat.values import Attended, Finish, Finished, Signal, StreamItem, Token


class Request(Struct, frozen=True):
    """What the caller wants of one generation."""

    want: frozenset[Signal]
    max_tokens: int
    stop: tuple[str, ...]
    cancel: Cancel


class Trie:
    """The options of a constrained generation, as id sequences."""

    def __init__(self, options: Sequence[tuple[int, ...]]) -> None:
        if not options or not all(options):
            raise ValueError("allow needs at least one option, and no empty one")
        self._open = list(options)
        self._depth = 0

    @property
    def closed(self) -> bool:
        """Whether nothing can follow what was picked."""
        return all(len(option) == self._depth for option in self._open)

    def pick(self, logits: Tensor, ends: Sequence[int]) -> int | None:
        """The most likely id that continues an option; None: an option is complete, and ending is likelier than going
        on. logits (V,).
        """
        next_ids = sorted({option[self._depth] for option in self._open if len(option) > self._depth})
        complete = any(len(option) == self._depth for option in self._open)
        if not next_ids:
            return None
        best = max(next_ids, key=lambda i: float(logits[i]))
        if complete and ends and float(logits[list(ends)].max()) >= float(logits[best]):
            return None
        self._open = [option for option in self._open if len(option) > self._depth and option[self._depth] == best]
        self._depth += 1
        return best


class Greedy:
    """One greedy generation."""

    def __init__(
        self,
        backbone: Backbone,
        vocabulary: Vocabulary,
        ends: frozenset[int],
        request: Request,
        options: Sequence[tuple[int, ...]] | None,
    ) -> None:
        self._backbone, self._ends, self._request = backbone, ends, request
        self._decoder = vocabulary.detokenizer()
        self._trie = None if options is None else Trie(options)
        self._limit = request.max_tokens if options is None else max(map(len, options))
        self._measures = bool(request.want & {Signal.LOGPROB, Signal.ENTROPY})
        self._rows: deque[Attended] = deque()

    def run(self, line: Line, logits: Tensor) -> Iterator[StreamItem]:
        """Tokens and rows in the port's order, then Finished. `logits` (1, V) follow what the line holds; the line
        grows.
        """
        tail, first = Tail(self._request.stop), len(line.ids)
        last: Token | None = None
        finish = Finish.LENGTH
        for count in range(self._limit + 1):
            self._request.cancel.check()
            if self._trie is not None and self._trie.closed:
                finish = Finish.EOS
                break
            if count == self._limit:
                break
            token = self._next(logits, count)
            if token is None:
                finish = Finish.EOS
                break
            ready, stopped = tail.push(token)
            for last in ready:
                yield last
                yield from self._known(before=last.index)
            if stopped:
                finish = Finish.STOP
                break
            if count + 1 < self._limit if self._trie is None else not self._trie.closed:
                logits = self._feed(line, token.id, first)
        for last in [] if finish is Finish.STOP else tail.close(self._decoder.close()):
            yield last
            yield from self._known(before=last.index)
        if last is not None:
            if Signal.ATTENTION in self._request.want and first + last.index == len(line.ids):
                self._feed(line, last.id, first)  # its row is known only once it has been fed
            yield from self._known(before=last.index + 1)
        yield Finished(finish)

    def _next(self, logits: Tensor, index: int) -> Token | None:
        """The next token with its signals; None at the end of the turn."""
        if self._trie is not None:
            token = self._trie.pick(logits[0], sorted(self._ends))
        else:
            token = int(logits[0].argmax())
            token = None if token in self._ends else token
        if token is None:
            return None
        logprob = entropy = None
        if self._measures:
            logprobs, entropies = logprob_and_entropy(logits, torch.tensor([token], device=logits.device))
            logprob, entropy = logprobs[0], entropies[0]
        return Token(index, token, self._decoder.feed(token), logprob, entropy)

    def _feed(self, line: Line, token: int, first: int) -> Tensor:
        """Logits (1, V) after the token; its attention row, restricted to generated tokens, goes to the queue."""
        wanted = Signal.ATTENTION in self._request.want
        logits, row = self._backbone.step(torch.tensor([[token]], device=self._backbone.device), line.kv, row=wanted)
        line.ids.append(token)
        if row is not None:
            query = len(line.ids) - 1 - first
            self._rows.append(Attended(query, tuple(row[0, first : first + query].tolist())))
        return logits

    def _known(self, before: int) -> Iterator[Attended]:
        """Rows of queries below `before` that have not been given yet."""
        while self._rows and self._rows[0].query < before:
            yield self._rows.popleft()
