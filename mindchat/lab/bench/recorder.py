"""The model calls of a real turn, written down as they happen, to be made again.

Owns: Recorder (ports.Model around a model on this machine) and the calls it keeps. Does not own: the turn (engine),
timing and reuse (bench.turns). A call is made again with as many tokens as were taken the first time: a sentence that
the loop left in its middle is left there again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mindchat.ports import NEVER, Cancel
from mindchat.values import Choice, Draft, Piece, Prefilled, Prompt, Signal, Span, StreamItem, Token

if TYPE_CHECKING:
    from mindchat.models.local import LocalModel


class Outcome(Struct, frozen=True):
    """What a call gave: seconds until its first token (for scores: until all of them), and the words or choices
    themselves.
    """

    first: float
    said: Any


class Call(Struct, frozen=True):
    """One call of a turn."""

    verb: str
    ids: tuple[int, ...]
    """What the model reads: the prompt, for attention() the draft behind it too."""
    origins: tuple[str, ...]
    """Of each id; see models.templates.Rendered."""
    again: Callable[[], Outcome]


class Recorder:
    """Passes everything on and keeps the calls. Implements mindchat.ports.Model."""

    def __init__(self, model: LocalModel) -> None:
        self._model = model
        self.calls: list[Call] = []

    @property
    def id(self) -> str:
        """The model's."""
        return self._model.id

    @property
    def provides(self) -> frozenset[Signal]:
        """The model's."""
        return self._model.provides

    @property
    def window(self) -> int:
        """The model's."""
        return self._model.window

    def count(self, prompt: Prompt) -> int:
        """Tokens of the prompt; no call."""
        return self._model.count(prompt)

    def render(self, prompt: Prompt) -> str:
        """Every character sent; no call."""
        return self._model.render(prompt)

    def usage(self) -> tuple[int, int, int]:
        """The model's account."""
        return self._model.usage()

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
        """See ports.Model; the call is kept when the stream ends or is left."""
        made = 0
        items = self._model.stream(prompt, want=want, max_tokens=max_tokens, stop=stop, allow=allow, cancel=cancel)
        try:
            for item in items:
                made += isinstance(item, Token)
                yield item
        finally:
            items.close()  # type: ignore[attr-defined]  # a generator
            taken = max(made, 1)
            self._keep("stream", prompt, lambda: self._streamed(prompt, want, taken, stop, allow))

    def _streamed(
        self, prompt: Prompt, want: frozenset[Signal], tokens: int, stop: Sequence[str], allow: Sequence[str] | None
    ) -> Outcome:
        began, first, ids = time.perf_counter(), 0.0, list[int]()
        for item in self._model.stream(prompt, want=want, max_tokens=tokens, stop=stop, allow=allow):
            if isinstance(item, Prefilled) or (isinstance(item, Token) and not ids):
                first = time.perf_counter() - began
            if isinstance(item, Token):
                ids.append(item.id)
        return Outcome(first, ids)

    def sample(
        self, prompt: Prompt, *, n: int, want: frozenset[Signal], max_tokens: int, cancel: Cancel = NEVER, **rest: Any
    ) -> Sequence[Draft]:
        """See ports.Model."""

        def again() -> Outcome:
            return _whole(
                lambda: [
                    draft.ids for draft in self._model.sample(prompt, n=n, want=want, max_tokens=max_tokens, **rest)
                ]
            )

        found = self._model.sample(prompt, n=n, want=want, max_tokens=max_tokens, cancel=cancel, **rest)
        self._keep("sample", prompt, again)
        return found

    def choose(self, prompt: Prompt, options: Sequence[str], *, cancel: Cancel = NEVER) -> Sequence[Choice]:
        """See ports.Model."""

        def again() -> Outcome:
            return _whole(lambda: max(self._model.choose(prompt, options), key=lambda choice: choice.logprob).option)

        found = self._model.choose(prompt, options, cancel=cancel)
        self._keep("choose", prompt, again)
        return found

    def attention(self, prompt: Prompt, draft: Draft, span: Span, *, cancel: Cancel = NEVER) -> Sequence[Piece]:
        """See ports.Model."""
        found = self._model.attention(prompt, draft, span, cancel=cancel)
        behind = draft.ids[: span.start]
        self._keep(
            "attention",
            prompt,
            lambda: _whole(lambda: [p.text for p in self._model.attention(prompt, draft, span)]),
            behind,
        )
        return found

    def _keep(self, verb: str, prompt: Prompt, again: Callable[[], Outcome], behind: tuple[int, ...] = ()) -> None:
        sent = self._model.format.render(prompt)
        self.calls.append(Call(verb, (*sent.ids, *behind), (*sent.origins, *["reasoning"] * len(behind)), again))


def _whole(call: Callable[[], Any]) -> Outcome:
    began = time.perf_counter()
    said = call()
    return Outcome(time.perf_counter() - began, said)
