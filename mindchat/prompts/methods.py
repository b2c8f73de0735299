"""Prompts of single methods: their own reasoning formats, and the short calls that only they make.

Owns: restyled, planned and the calls of decompose, FLARE (explicit) and the gate. Does not own: the loop's prompts
(core, side), parsing replies.
Source: CoRe Table 8 (decomposition, verbatim); Press et al. 2023 (the format of self-ask); FLARE §3.2.2 (explicit
questions). Shots are ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mindchat.prompts.core import escaped
from mindchat.prompts.core.wording import NO_DOCUMENTS, PREFILL
from mindchat.prompts.side import exemplars
from mindchat.values import Message, Prompt, Segment, Text

DECOMPOSE = "Decompose the following question into several sub-questions.\n\nQuestion: {question}"
"""CoRe Table 8; the assistant's turn begins with "1."."""


def restyled(prompt: Prompt, name: str) -> Prompt:
    """The reasoning prompt with the instructions, shots and opening words of the exemplar file `name` instead of the
    loop's own.
    """
    data = exemplars(name)
    messages = [Message("system", (Text(data["system"]),))]
    for shot in data["shots"]:
        messages += [
            Message("user", (Text(f"Question: {shot['question']}", "exemplar"),)),
            Message("assistant", (Text(shot["answer"], "exemplar"),)),
        ]
    rest = [m for m in prompt.messages if m.role != "system" and not _exemplar(m)]
    last = rest[-1]
    opened = replace(last, segments=(Text(data["prefill"]), *last.segments)) if data.get("prefill") else last
    return Prompt((*messages, *rest[:-1], opened))


def _exemplar(message: Message) -> bool:
    return bool(message.segments) and all(isinstance(s, Text) and s.origin == "exemplar" for s in message.segments)


def planned(prompt: Prompt, plan: Sequence[str]) -> Prompt:
    """The reasoning prompt with numbered sub-questions after the question, to be followed one by one."""
    listed = "\n".join(f"{number}. {escaped(question)}" for number, question in enumerate(plan, 1))
    at = max(i for i, message in enumerate(prompt.messages) if message.role == "user")
    user = prompt.messages[at]
    segments: tuple[Segment, ...] = (
        *user.segments,
        Text(f"\n\nFollow these sub-questions one by one:\n{listed}", "question"),
    )
    return Prompt((*prompt.messages[:at], replace(user, segments=segments), *prompt.messages[at + 1 :]))


def decompose_prompt(question: str) -> Prompt:
    """CoRe Table 8."""
    return Prompt(
        (
            Message("user", (Text(DECOMPOSE.format(question=escaped(question)), "question"),)),
            Message("assistant", (Text("1."),)),
        )
    )


def span_prompt(question: str, sentence: str, span: str) -> Prompt:
    """FLARE, explicit: a question whose answer is the span that the model was unsure of."""
    data = exemplars("flare")
    messages = [Message("system", (Text(data["system"]),))]
    for shot in data["shots"]:
        messages += [
            Message("user", (Text(shot["user"], "exemplar"),)),
            Message("assistant", (Text(shot["assistant"], "exemplar"),)),
        ]
    user = f"Question: {escaped(question)}\nSentence: {sentence}\nTerm: {span}"
    return Prompt(
        (*messages, Message("user", (Text(user, "question"),)), Message("assistant", (Text(data["prefill"]),)))
    )


def closed_book(question: str) -> Prompt:
    """A short answer without documents."""
    body = (Text(f"Question: {escaped(question)}\n\n", "question"), Text(NO_DOCUMENTS))
    return Prompt((Message("user", body), Message("assistant", (Text(PREFILL),))))


def text_alone(question: str, accepted: str) -> Prompt:
    """Question and accepted reasoning and nothing else: over what DRAGIN's query formulation looks (no documents, no
    shots).
    """
    written: tuple[Segment, ...] = (Text(accepted, "reasoning"),) if accepted else ()
    return Prompt((Message("user", (Text(question, "question"),)), Message("assistant", written)))
