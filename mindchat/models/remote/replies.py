"""A server's words as tokens with signals: pieces of text and the log-probabilities that came with them, brought
together.

Owns: reading `logprobs` in both forms that servers use, entropy from the likeliest tokens, what belongs to which token,
an echo cut off.
Does not own: requests (server), the connection (wire). Imports no torch.
"""

from __future__ import annotations

import codecs
import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mindchat.models.decode.stop_strings import Tail
from mindchat.text.clean import Cleaner
from mindchat.values import Finish, Token

FLOOR = -1e4
"""Stands in for log 0, which some servers write as -9999 or null."""
VOCABULARY = 262_144
"""The largest vocabulary in common use (Gemma 3): over so many tokens the unseen probability may be spread, at most."""


LETTERS, SPARE = 16, 256
"""Characters that a token may have on average, and a reply beyond that: several times what any vocabulary gives."""


class Scored(Struct, frozen=True):
    """One token as the server reports it."""

    text: str
    """As far as its characters are complete."""
    logprob: float
    """Nats, ≤ 0."""
    top: tuple[tuple[str, float], ...] = ()
    """The likeliest tokens at its place with their log-probabilities, likeliest first."""


def entropy_bounds(logprobs: Sequence[float], vocabulary: int = VOCABULARY) -> tuple[float, float]:
    """The least and the greatest entropy, nats, of a distribution whose k likeliest tokens have these
    log-probabilities.

    With p the known probabilities, m their smallest and r = 1 - Σp what is left, the unseen tokens have at most m each.
    So each of their terms -q·log q is at least q·(-log min(m, r)), and H ≥ -Σ p·log p - r·log min(m, r); spread evenly
    over the rest of the vocabulary they reach the greatest, H ≤ -Σ p·log p - r·log(r / (V - k)). The gap is r·log((V -
    k)·min(m, r) / r): under 0.1 nats once 99 % are known.
    """
    known = [math.exp(value) for value in logprobs]
    own = -sum(p * value for p, value in zip(known, logprobs, strict=True))
    rest = 1.0 - sum(known)
    if rest <= 1e-6 or not known:
        return max(own, 0.0), max(own, 0.0)
    least = own - rest * math.log(max(min(*known, rest), 1e-12))
    return least, max(least, own - rest * math.log(rest / max(vocabulary - len(known), 1)))


def choices_of(event: Mapping[str, Any], ended: bool) -> Iterator[Mapping[str, Any]]:
    """The choice that was asked for, until it has ended: a server may send others, and words behind its end."""
    for choice in event.get("choices") or ():
        if not ended and not choice.get("index"):
            yield choice
            ended = bool(choice.get("finish_reason"))


def scored_of(choice: Mapping[str, Any]) -> list[Scored]:
    """The tokens of one choice (or of one event of it); both forms: a list of objects, or parallel lists. Empty if
    there are none.
    """
    found = choice.get("logprobs") or {}
    if isinstance(found.get("content"), list):
        return [
            Scored(_text(item), value_of(item.get("logprob")), _ranked(item.get("top_logprobs") or []))
            for item in found["content"]
        ]
    texts, values = found.get("tokens") or [], found.get("token_logprobs") or []
    tops = found.get("top_logprobs") or [{}] * len(texts)
    return [
        Scored(
            _whole(text),
            value_of(value),
            tuple(sorted(((str(t), value_of(v)) for t, v in (top or {}).items()), key=lambda pair: -pair[1])),
        )
        for text, value, top in zip(texts, values, tops, strict=False)
    ]


def _ranked(items: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(((_text(item), value_of(item.get("logprob"))) for item in items), key=lambda pair: -pair[1]))


def _text(item: Mapping[str, Any]) -> str:
    """The token's characters; bytes that are no whole character are kept apart as surrogates, for Utf8 to join."""
    if isinstance(item.get("bytes"), list):
        return bytes(item["bytes"]).decode("utf-8", "surrogateescape")
    return _whole(item.get("token") or "")


def _whole(text: str) -> str:
    """Without halves of characters, which JSON can spell and UTF-8 cannot: they would be taken for bytes that wait for
    others.
    """
    return text.encode("utf-8", "replace").decode("utf-8")


def value_of(value: Any) -> float:
    """A log-probability in [FLOOR, 0]."""
    number = float(value) if isinstance(value, int | float) else FLOOR
    return min(max(number, FLOOR), 0.0) if not math.isnan(number) else FLOOR


class Allowance:
    """The limit of tokens, held here too: a server may ignore it, in words, in thoughts that it keeps apart, or in
    figures without words.
    """

    def __init__(self, limit: int) -> None:
        self._tokens, self._letters = limit, LETTERS * limit + SPARE
        self.exceeded = False
        """Whether more came than was asked for; what was granted before stays."""

    def grant(self, said: Mapping[str, Any], scored: Sequence[Scored]) -> tuple[Mapping[str, Any], Sequence[Scored]]:
        """What of an event is within the limit."""
        texts = {key: str(said[key]) for key in ("content", "reasoning_content", "reasoning") if said.get(key)}
        if not texts and not scored:
            return said, scored
        cost = max(len(scored), 1)
        self.exceeded = self.exceeded or cost > self._tokens or sum(map(len, texts.values())) > self._letters
        if scored and cost > self._tokens:  # the text of the tokens that are granted
            scored = scored[: self._tokens]
            self._letters = min(self._letters, sum(len(each.text) for each in scored))
        if self._tokens < 1:
            return {}, ()
        texts = {key: text[: self._letters] for key, text in texts.items()}
        self._tokens -= min(cost, self._tokens)
        self._letters -= sum(map(len, texts.values()))
        return texts, scored


class Assembler:
    """Tokens of one answer, in order: text that came is dealt out to the tokens that were reported for it."""

    def __init__(self, *, logprob: bool, entropy: bool) -> None:
        self._logprob, self._entropy = logprob, entropy
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._cleaner = Cleaner()
        self._text = ""
        self._waiting: deque[tuple[str, Scored]] = deque()

    def feed(self, text: str, scored: Sequence[Scored]) -> Iterator[Token]:
        """What is certain after this event. Index 0 and id -1 stand in until the stream numbers them."""
        self._text += text
        for each in scored:
            self._waiting.append((self._utf8.decode(each.text.encode("utf-8", "surrogateescape")), each))
        while self._waiting and self._text.startswith(self._waiting[0][0]):
            piece, each = self._waiting.popleft()
            self._text = self._text[len(piece) :]
            yield self._token(piece, each)
        if self._text and (not self._waiting or not self._waiting[0][0].startswith(self._text)):
            # text without figures, or figures of something else (a control token that is not shown): the text is what
            # counts
            figures = self._waiting[0][1] if self._waiting else None
            self._waiting.clear()
            piece, self._text = self._text, ""
            yield self._token(piece, figures)

    def skip(self) -> None:
        """Forget figures that belong to words that are not shown."""
        self._waiting.clear()

    def close(self) -> Iterator[Token]:
        """What was held back."""
        rest, self._text = self._cleaner.feed(self._text) + self._cleaner.close(), ""
        if rest:
            yield Token(0, -1, rest)

    def _token(self, piece: str, each: Scored | None) -> Token:
        entropy = (
            entropy_bounds([value for _, value in each.top])[0]
            if each is not None and self._entropy and len(each.top) > 1
            else None
        )
        return Token(
            0, -1, self._cleaner.feed(piece), each.logprob if each is not None and self._logprob else None, entropy
        )


class Echo:
    """Cuts off the words that an answer was asked to begin with, if it begins with them."""

    def __init__(self, words: str) -> None:
        self._words = words.strip()
        self._held: list[Token] = []
        self._text = ""

    def push(self, token: Token) -> list[Token]:
        """The tokens that are no echo."""
        if not self._words:
            return [token]
        self._held.append(token)
        self._text += token.text
        said = self._text.lstrip()
        if self._words.startswith(said) and said != self._words:
            return []
        held, words = self.close(), self._words
        self._words = ""
        if not said.startswith(words):
            return held
        rest = said[len(words) :]
        return [replace(held[-1], text=rest)] if rest else []

    def close(self) -> list[Token]:
        """What was held back: an echo that broke off is an answer."""
        held, self._held = self._held, []
        return held


class Reader:
    """From events to tokens: put together, without echo, without stop string."""

    def __init__(self, assembler: Assembler, echo: Echo, tail: Tail) -> None:
        self._assembler, self._echo, self._tail = assembler, echo, tail
        self.stopped = False

    def feed(self, said: Mapping[str, Any], scored: Sequence[Scored]) -> Iterator[Token]:
        """Tokens that are certain after these words (a delta or a message); thoughts that the server keeps apart are
        not shown.
        """
        text = _whole(said.get("content") or "")
        if not text and (said.get("reasoning_content") or said.get("reasoning")):
            self._assembler.skip()
            return
        for token in self._assembler.feed(text, scored):
            yield from self._pass(token)

    def close(self) -> Iterator[Token]:
        """What was held back, if no stop string came."""
        if not self.stopped:
            for token in self._assembler.close():
                yield from self._pass(token)
            for token in self._echo.close():
                yield from self._ended(token)
            if not self.stopped:
                yield from self._tail.close()

    def _pass(self, token: Token) -> Iterator[Token]:
        for each in self._echo.push(token):
            yield from self._ended(each)

    def _ended(self, token: Token) -> Iterator[Token]:
        if not self.stopped:
            ready, self.stopped = self._tail.push(token)
            yield from ready


FINISHES = {"length": Finish.LENGTH, "max_tokens": Finish.LENGTH}
"""A server's finish_reason; any other one means that the model closed its turn."""
