"""What is held back at the end of a stream until it is certain: the beginning of a stop string.

Owns: Tail. Does not own: where tokens come from (decoding, sampling, server). Imports no torch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from mindchat.values import Token


class Tail:
    """Holds back tokens whose text may be the beginning of a stop string."""

    def __init__(self, stop: Sequence[str]) -> None:
        self._stop = tuple(stop)
        self._held: deque[Token] = deque()
        self._text = ""

    def push(self, token: Token) -> tuple[list[Token], bool]:
        """The tokens that are certain now, and whether a stop string is complete; it and what follows are cut off."""
        self._held.append(token)
        self._text += token.text
        found = [at for at in (self._text.find(stop) for stop in self._stop) if at >= 0]
        if found:
            return self._release(min(found), cut=True), True
        return self._release(self._certain()), False

    def close(self, rest: str = "") -> list[Token]:
        """All that is held, when nothing follows; `rest` is text that the decoder had held back."""
        tokens = list(self._held)
        if rest and tokens:
            tokens[-1] = _with_text(tokens[-1], tokens[-1].text + rest)
        self._held.clear()
        self._text = ""
        return tokens

    def _certain(self) -> int:
        """Characters that cannot be the beginning of a stop string any more."""
        longest = max(
            (size for stop in self._stop for size in range(1, len(stop)) if self._text.endswith(stop[:size])), default=0
        )
        return len(self._text) - longest

    def _release(self, certain: int, cut: bool = False) -> list[Token]:
        """Tokens within the first `certain` characters; with `cut` the one across the border is shortened and the rest
        dropped.
        """
        out, at = [], 0
        while self._held and at + len(self._held[0].text) <= certain and not (cut and at == certain):
            at += len(self._held[0].text)
            out.append(self._held.popleft())
        if cut and self._held and at < certain:
            out.append(_with_text(self._held[0], self._held[0].text[: certain - at]))
        self._text = "" if cut else self._text[at:]
        return out


def _with_text(token: Token, text: str) -> Token:
    return Token(token.index, token.id, text, token.logprob, token.entropy)
