"""The steps from the end of the reasoning to the answer; each yields events and returns its result.

Owns: the answer call and what is made of its words. Does not own: the reasoning before it (engine.turn), wording (prompts), citations
and confidence (engine.answering). Source: MIND §3.4; CoRe Tables 4 and 11.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import TYPE_CHECKING

from mindchat import events as ev
from mindchat.answers import extract_short
from mindchat.clean import clean
from mindchat.engine.answering import abstains, cite, confidence
from mindchat.events import Event
from mindchat.signals import received
from mindchat.values import Answer, Attended, Draft, Finish, Finished, Harvest, Prefilled, Prompt, Signal, Token

if TYPE_CHECKING:
    from mindchat.engine.turn import Turn


def answer(turn: Turn) -> Generator[Event, None, Answer]:
    """One answer call over question, facts, passages and reasoning (MIND §3.4), the context repeated (CoRe)."""
    yield turn.step("answer")
    repeat = turn.config.layout.repeat
    prompt = yield from turn.compose("answer", turn.config.answer.max_tokens, repeat if isinstance(repeat, int) else 1)
    draft = yield from generate(turn, prompt)
    text = clean(draft.text).strip()
    short = extract_short(f"Answer: {text}")
    sure = confidence(draft)
    abstained, why = abstains(short, sure, turn.config.answer.abstain_below)
    citations = () if abstained else cite(short, text, turn.hop.passages)
    if not turn.harvests and turn.pending is not None and not abstained:
        turn.harvests.append(Harvest(turn.hop.number, turn.pending[0], draft, turn.pending[1]))
    yield ev.DraftAccepted(text, "answer", len(draft.tokens))
    return Answer(text, short, abstained, sure, citations, why)


def generate(turn: Turn, prompt: Prompt) -> Generator[Event, None, Draft]:
    """The answer's words as they come."""
    model = turn.parts.model
    want = frozenset({Signal.LOGPROB, Signal.ENTROPY, Signal.ATTENTION}) & model.provides
    tokens: list[Token] = []
    rows: list[Attended] = []
    finish = Finish.OPEN
    turn.cancel.check()
    model.usage()
    started = time.monotonic()
    for item in model.stream(prompt, want=want, max_tokens=turn.config.answer.max_tokens, stop=("\n",), cancel=turn.cancel):
        match item:
            case Prefilled():
                yield ev.PromptPrefilled(item.done, item.total, item.cached, item.seconds)
            case Token():
                tokens.append(item)
                turn.first_token = turn.first_token or time.monotonic()
                turn.answer_words += clean(item.text)
                yield ev.TokenDrafted(item, "answer")
            case Attended():
                rows.append(item)
            case Finished():
                finish = item.finish
    turn.ask.meter("answer", started)
    yield from turn.ask.drain()
    settled = received(rows, len(tokens)) if Signal.ATTENTION in want else None
    return Draft("".join(token.text for token in tokens), tuple(tokens), settled, finish)
