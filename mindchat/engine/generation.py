"""One call whose words the user sees as they come, or does not see until they are taken.

Owns: from a model's stream to events and a draft. Does not own: which prompt is sent and what becomes of the words.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mindchat import events as ev
from mindchat.events import Event
from mindchat.text.clean import clean
from mindchat.values import Attended, Channel, Draft, Finish, Finished, Prefilled, Prompt, Signal, Token
from mindchat.word_signals import received

if TYPE_CHECKING:
    from mindchat.engine.turn import Turn


def shown(turn: Turn, token: Token, channel: Channel) -> Event:
    """A token on the screen."""
    turn.first_token = turn.first_token or time.monotonic()
    if channel == "answer":
        turn.answer_words += clean(token.text)
    return ev.TokenDrafted(token, channel)


def generate(
    turn: Turn,
    prompt: Prompt,
    *,
    kind: str,
    max_tokens: int,
    stop: tuple[str, ...] = ("\n",),
    channel: Channel | None = "answer",
    after: int = 0,
) -> Generator[Event, None, Draft]:
    """One metered call, its words on the channel as they come (None: not shown). `after`: how many tokens of the same
    text came before.
    """
    model = turn.parts.model
    want = frozenset({Signal.LOGPROB, Signal.ENTROPY, Signal.ATTENTION}) & model.provides
    tokens: list[Token] = []
    rows: list[Attended] = []
    finish = Finish.OPEN
    turn.cancel.check()
    model.usage()
    started = time.monotonic()
    for item in model.stream(prompt, want=want, max_tokens=max_tokens, stop=stop, cancel=turn.cancel):
        match item:
            case Prefilled():
                yield ev.PromptPrefilled(item.done, item.total, item.cached, item.seconds)
            case Token():
                tokens.append(item)
                if channel is not None:
                    yield shown(turn, replace(item, index=item.index + after), channel)
            case Attended():
                rows.append(item)
            case Finished():
                finish = item.finish
    turn.ask.meter(kind, started)
    yield from turn.ask.drain()
    settled = received(rows, len(tokens)) if Signal.ATTENTION in want else None
    return Draft("".join(token.text for token in tokens), tuple(tokens), settled, finish)
