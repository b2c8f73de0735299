"""The synthetic task of CoRe §4.1: lists told as pairs of neighbours, and a question that has to be read from right to
left.

Owns: its prompt in both roles (Table 5; the user role in the manner of Table 11). Does not own: drawing the numbers,
scoring (probes). Deviations: the paper numbers k lists 0 … k, one too many; here they are 0 … k - 1, as in its example
in §4.1. Every copy is led in by the same words.
"""

from __future__ import annotations

from collections.abc import Sequence

from mindchat.prompts.core import wording as w
from mindchat.prompts.core.blocks import ended
from mindchat.values import Message, Prompt, Segment, Text


def facts(lists: Sequence[Sequence[int]]) -> list[str]:
    """First the first neighbours of all lists, then the second ones, and so on."""
    length = len(lists[0])
    return [w.LISTS_FACT.format(i=i, a=row[j], b=row[j + 1]) for j in range(length - 1) for i, row in enumerate(lists)]


def lists_prompt(lists: Sequence[Sequence[int]], asked: int, copies: int, role: str) -> Prompt:
    """Which is the first element of the list `asked`, given its last one? The lists are of equal length; `copies`
    counts repetitions.
    """

    def information(copy: int) -> Segment:
        head = w.LISTS_HEAD.format(k=len(lists), n=len(lists[0]))
        lines = "\n\n".join([head, *facts(lists)])
        return Text(f"Information:\n\n{lines}\n\n", "passage", "lists", copy)

    question = f"Question: {w.LISTS_QUESTION.format(last=lists[asked][-1])}"
    plain: tuple[Segment, ...] = (information(0), Text(f"{question} {w.LISTS_INSTRUCTION}", "question"))
    prefill = Message("assistant", (Text(w.PREFILL),))
    body: list[Segment] = []
    if role == "user":
        for copy in range(1, copies + 1):
            body += [
                Text(f"\n\n{w.AGAIN_USER}\n\n", copy=copy),
                information(copy),
                Text(f"{question} {w.LISTS_INSTRUCTION}", "question", copy=copy),
            ]
        return Prompt((Message("user", (*plain, *body)), prefill))
    for copy in range(1, copies + 1):
        body += [
            Text(f"{w.AGAIN_ASSISTANT}\n\n", copy=copy),
            information(copy),
            Text(f"{question}\n\n", "question", copy=copy),
        ]
    repeated = (Message("assistant", ended(body)), Message("user", (Text(w.LISTS_NOW),))) if copies else ()
    return Prompt((Message("user", plain), *repeated, prefill))
