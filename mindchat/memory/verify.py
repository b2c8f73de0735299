"""Asking the model whether a passage states a claim: one batched pass over the claim and its distractors.

Owns: the wording of the question and p_true. Does not own: what follows from it (confidence.py).
Each option repeats one claim and ends in yes or no; the words they share cancel, so that the difference of the two log-probabilities is the
odds of yes. The distractors (subject and object exchanged, another span in the object's place) catch reversals such as father and son.
"""

from __future__ import annotations

import math

from mindchat.clean import clean_line
from mindchat.memory.confidence import Signals
from mindchat.memory.grounding import Grounded
from mindchat.memory.slots import Predicate
from mindchat.ports import Ask
from mindchat.values import Message, Prompt, Text

_INSTRUCTION = "Read the passage. For the claim, say whether the passage states it: yes or no."


def claim_text(subject: str, predicate: Predicate, value: str) -> str:
    """The claim in plain words."""
    if predicate.nouns:
        return f"The {predicate.nouns[0]} of {subject} is {value}."
    return f"{subject} {predicate.phrase} {value}."


def claims(grounded: Grounded) -> list[str]:
    """The claim first, then its distractors."""
    subject, predicate, value = grounded.slot.subject, grounded.slot.predicate, grounded.object
    others = [claim_text(subject, predicate, other) for other in grounded.distractors]
    if predicate.range in ("person", "place", "any", "org", "work") and predicate.inverse != predicate.name:
        others.append(claim_text(value, predicate, subject))
    return [claim_text(subject, predicate, value), *others]


def prompt(grounded: Grounded, limit: int = 1200) -> Prompt:
    """The question about a passage, cut to `limit` characters around the quote; the assistant's turn is open at the claim."""
    text = grounded.passage.text
    start = max(0, min(grounded.sentence.start - limit // 3, len(text) - limit))
    body = clean_line(text[start : start + limit])
    user = Message(
        "user",
        (
            Text(f"{_INSTRUCTION}\n\nPassage ({clean_line(grounded.passage.title, 80)}): "),
            Text(body, origin="passage", passage=grounded.passage.id),
        ),
    )
    return Prompt((user, Message("assistant", (Text("Claim:"),))))


def verify(ask: Ask, grounded: Grounded) -> Signals:
    """p_true and margin, by one call of ask.choose."""
    asked = claims(grounded)
    options = [f" {clean_line(claim)}\nStated: {word}" for claim in asked for word in ("yes", "no")]
    scored = ask.choose(prompt(grounded), options, kind="verify")
    odds = [scored[2 * i].logprob - scored[2 * i + 1].logprob for i in range(len(asked))]
    yes = [1 / (1 + math.exp(-max(-50.0, min(50.0, value)))) for value in odds]
    return Signals(p_true=yes[0], margin=yes[0] - max(yes[1:], default=0.0))
