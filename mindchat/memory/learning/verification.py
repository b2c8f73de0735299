"""Asking the model which value a passage gives for a slot: one batched pass over the claim's value and its distractors.

Owns: the wording of the question and p_true. Does not own: what follows from it (confidence.py). The options are the
claimed object, other spans of its type in the passage, and "unknown"; p_true is the object's share of their
probability. A yes/no question about each claim was tried first: the small default model said yes to claim and
distractors alike (DESIGN.md D24).
"""

from __future__ import annotations

import math

from mindchat.memory.learning.confidence import Signals
from mindchat.memory.learning.grounding import Grounded
from mindchat.ports import Ask
from mindchat.text.clean import clean_line
from mindchat.values import Message, Prompt, Text

_INSTRUCTION = "Answer with words of the passage only; if it does not say, answer: unknown."
UNKNOWN = "unknown"


def options(grounded: Grounded) -> list[str]:
    """The claimed object first, then its distractors, then "unknown"."""
    return [grounded.object, *grounded.distractors, UNKNOWN]


def prompt(grounded: Grounded, limit: int = 900) -> Prompt:
    """The question about a passage, cut to `limit` characters around the quote; the assistant's turn is open at the
    answer.
    """
    text = grounded.passage.text
    start = max(0, min(grounded.sentence.start - limit // 3, len(text) - limit))
    body = clean_line(text[start : start + limit])
    predicate = grounded.slot.predicate
    noun = predicate.nouns[0] if predicate.nouns else predicate.phrase
    question = f"\n\nQuestion: What is the {noun} of {clean_line(grounded.slot.subject, 120)}?\n{_INSTRUCTION}"
    user = Message(
        "user",
        (
            Text(f"{clean_line(grounded.passage.title, 80)}: "),
            Text(body, origin="passage", passage=grounded.passage.id),
            Text(question),
        ),
    )
    return Prompt((user, Message("assistant", (Text("Answer:"),))))


def verify(ask: Ask, grounded: Grounded) -> Signals:
    """p_true and its margin over the best other option, by one call of ask.choose."""
    scored = ask.choose(prompt(grounded), [f" {clean_line(option)}" for option in options(grounded)], kind="verify")
    best = max(choice.logprob for choice in scored)
    weights = [math.exp(choice.logprob - best) for choice in scored]
    shares = [weight / sum(weights) for weight in weights]
    return Signals(p_true=shares[0], margin=shares[0] - max(shares[1:]))
