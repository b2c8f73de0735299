"""Sentences out of a token stream, with their signals.

Owns: where a sentence ends in a running stream, which tokens and attention rows belong to it. Does not own: judging it.
A full stop ends a sentence only when the next word is seen; that word's token is held back for the next sentence, not
shown twice.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator

from msgspec.structs import replace

from mindchat.engine.thoughts import CLOSE
from mindchat.events import Event, PromptPrefilled, TokenDrafted
from mindchat.text.language import Language
from mindchat.values import Attended, Draft, Finish, Finished, Prefilled, Signal, StreamItem, Token
from mindchat.word_signals import received


class SentenceStream:
    """Cuts one running generation into drafts of one sentence each, or of `every` tokens. close() stops the model."""

    def __init__(
        self, items: Iterator[StreamItem], words: Language, *, want: frozenset[Signal], limit: int, every: int = 0
    ) -> None:
        self._items = items
        self._words = words
        self._attends = Signal.ATTENTION in want
        self._limit = limit
        self._every = every
        self._tokens: list[Token] = []
        self._rows: list[Attended] = []
        self._first = 0
        """Index in the stream of self._tokens[0]."""
        self._shown = 0
        """How many of the held tokens have been yielded."""
        self._finish: Finish | None = None
        self._cut = False
        """Whether the limit ends the first sentence."""
        self.first_token_at: float | None = None
        """time.monotonic() of the stream's first token."""

    def close(self) -> None:
        """Stop generating."""
        close = getattr(self._items, "close", None)
        if close is not None:
            close()

    def next(self) -> Generator[Event, None, Draft | None]:
        """The next sentence; None if nothing more comes. Yields prefill progress and the tokens as they are drafted."""
        while True:
            end = self._end()
            # what comes after the sentence's end is held back: it is shown as part of the next one
            for token in self._tokens[self._shown : end]:
                yield TokenDrafted(token, "reasoning")
                self._shown += 1
            if end is not None and self._settled(end):
                return self._take(end)
            item = next(self._items, None)
            match item:
                case Prefilled():
                    yield PromptPrefilled(item.done, item.total, item.cached, item.seconds)
                case Token():
                    self._tokens.append(item)
                    self.first_token_at = self.first_token_at or time.monotonic()
                case Attended():
                    self._rows.append(item)
                case Finished():
                    self._finish = item.finish
                case None:
                    self._finish = self._finish or Finish.OPEN

    def _end(self) -> int | None:
        """How many of the held tokens make the first sentence (or unit of `every` tokens); None: not known yet."""
        if self._every:
            known = len(self._tokens) >= self._every or self._finish is not None
            return min(self._every, len(self._tokens)) if known else None
        text = "".join(token.text for token in self._tokens)
        end = self._words.first_end(text, closed=self._finish is not None)
        thought = text.find(CLOSE) + len(CLOSE)
        if thought >= len(CLOSE) and (end is None or end > thought):
            end = thought  # what follows a thought is a sentence of its own
        if end is None:
            if self._finish is not None:
                return len(self._tokens)
            self._cut = len(self._tokens) >= self._limit
            return self._limit if self._cut else None
        count, at = 0, 0
        for token in self._tokens:
            if at >= end and token.text:
                break
            at += len(token.text)
            count += 1
        return count

    def _settled(self, count: int) -> bool:
        """Whether the attention that the first `count` held tokens pay is known: the last one's row comes right after
        the next token.
        """
        return (
            not self._attends
            or self._finish is not None
            or any(row.query >= self._first + count - 1 for row in self._rows)
        )

    def _take(self, count: int) -> Draft | None:
        if count == 0:
            return None
        taken, self._tokens = self._tokens[:count], self._tokens[count:]
        attention = received(self._rows, count, self._first) if self._attends else None
        self._first += count
        self._shown = max(0, self._shown - count)
        going = Finish.CUT if self._cut else Finish.OPEN
        finish, self._cut = self._finish if self._finish is not None and not self._tokens else going, False
        tokens = tuple(replace(token, index=index) for index, token in enumerate(taken))
        return Draft("".join(token.text for token in tokens), tokens, attention, finish)


UNFINISHED = " …"
"""Behind a sentence that a limit ended."""


def beginning(draft: Draft, end: int) -> Draft:
    """The tokens of a draft that lie wholly before character `end`."""
    count = 0
    for span in draft.offsets():
        if span.end > end or (span.start == span.end and span.start >= end):
            break
        count += 1
    tokens = draft.tokens[:count]
    settled = draft.received[:count] if draft.received is not None else None
    return Draft("".join(token.text for token in tokens), tokens, settled, Finish.OPEN)


def joined(first: Draft, second: Draft) -> Draft:
    """Two drafts that follow one another as one, tokens numbered through."""
    if not first.tokens:
        return second
    tokens = tuple(replace(token, index=index) for index, token in enumerate((*first.tokens, *second.tokens)))
    settled = None if first.received is None or second.received is None else first.received + second.received
    return Draft(first.text + second.text, tokens, settled, second.finish)
