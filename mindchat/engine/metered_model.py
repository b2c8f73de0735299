"""Metered access to the model: what plug-ins get instead of the model itself.

Owns: counting by kind, ModelAsked events (kept until the loop drains them), collecting a stream into a Draft. Does not
own: generation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from mindchat.events import Event, ModelAsked, Notice
from mindchat.ports import Cancel, Model
from mindchat.values import (
    Attended,
    Choice,
    Draft,
    Finish,
    Finished,
    Message,
    Piece,
    Prompt,
    Signal,
    Span,
    StreamItem,
    Text,
    Token,
    TurnState,
)
from mindchat.word_signals import received

T = TypeVar("T")


def collect(items: Iterator[StreamItem], want: frozenset[Signal]) -> Draft:
    """A whole stream as one draft."""
    tokens: list[Token] = []
    rows: list[Attended] = []
    finish = Finish.OPEN
    for item in items:
        match item:
            case Token():
                tokens.append(item)
            case Attended():
                rows.append(item)
            case Finished():
                finish = item.finish
    settled = received(rows, len(tokens)) if Signal.ATTENTION in want else None
    return Draft("".join(token.text for token in tokens), tuple(tokens), settled, finish)


class MeteredAsk:
    """ports.Ask over one turn: every call looks at the cancel token and leaves a ModelAsked event."""

    def __init__(
        self, model: Model, cancel: Cancel, seed: int, layout: Callable[[TurnState], Prompt] | None = None
    ) -> None:
        self._layout = layout
        self._model = model
        self._cancel = cancel
        self._seed = seed
        self._news: list[Event] = []

    @property
    def provides(self) -> frozenset[Signal]:
        """The model's signals."""
        return self._model.provides

    def drain(self) -> list[Event]:
        """Events since the last drain, for the loop to pass on."""
        news, self._news = self._news, []
        return news

    def meter(self, kind: str, started: float) -> None:
        """Report the call that has just ended."""
        new, cached, generated = self._model.usage()
        self._news.append(ModelAsked(kind, new, cached, generated, time.monotonic() - started))

    def _metered(self, kind: str, call: Callable[[], T]) -> T:
        self._cancel.check()
        started = time.monotonic()
        self._model.usage()
        try:
            return call()
        finally:
            self.meter(kind, started)

    def complete(
        self,
        prompt: Prompt,
        *,
        max_tokens: int,
        kind: str,
        stop: Sequence[str] = (),
        allow: Sequence[str] | None = None,
    ) -> Draft:
        """Greedy completion with its log-probabilities and entropies."""
        want = frozenset({Signal.LOGPROB, Signal.ENTROPY}) & self._model.provides

        def call() -> Draft:
            return collect(
                self._model.stream(
                    prompt, want=want, max_tokens=max_tokens, stop=stop, allow=allow, cancel=self._cancel
                ),
                want,
            )

        return self._metered(kind, call)

    def sample(
        self, prompt: Prompt, *, n: int, max_tokens: int, kind: str, want: frozenset[Signal], stop: Sequence[str] = ()
    ) -> Sequence[Draft]:
        """n samples with the turn's seed."""
        return self._metered(
            kind,
            lambda: self._model.sample(
                prompt, n=n, want=want, max_tokens=max_tokens, seed=self._seed, stop=stop, cancel=self._cancel
            ),
        )

    def choose(self, prompt: Prompt, options: Sequence[str], *, kind: str) -> Sequence[Choice]:
        """Scores of the options as continuations."""
        return self._metered(kind, lambda: self._model.choose(prompt, options, cancel=self._cancel))

    def attention(self, prompt: Prompt, draft: Draft, span: Span, *, kind: str) -> Sequence[Piece]:
        """Attention of the span's tokens to everything before."""
        return self._metered(kind, lambda: self._model.attention(prompt, draft, span, cancel=self._cancel))

    def count(self, text: str) -> int:
        """Tokens of a plain text as one user turn."""
        return self._model.count(Prompt((Message("user", (Text(text),)),)))

    def reasoning(self, hop: TurnState) -> Prompt:
        """As the turn would lay it out now."""
        assert self._layout is not None, "outside a turn there is no reasoning"
        return self._layout(hop)

    def note(self, text: str) -> None:
        """Passed on as a Notice."""
        self._news.append(Notice(text))
