"""The short calls beside the reasoning: extraction, CoT filter, sub-query, rewriting. Each gets its instructions and
shots from a data file.

Owns: their prompts. Does not own: parsing what comes back (entities, policies, engine).
Source: MIND §3.1 and §3.3 say what is asked; the wording and the one-line forms are ours (the paper prints no output
format).
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from mindchat.values import Message, Prompt, Text

_FOLDER = Path(__file__).parent / "exemplars"


@cache
def exemplars(name: str) -> dict[str, Any]:
    """The parsed exemplar file `name`.toml."""
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def side(kind: str, user: str, prefill: str | None = None) -> Prompt:
    """A call of one kind (extract, cot, query, rewrite): instructions and shots first, so that their prefix is shared
    by all such calls.
    """
    data = exemplars("side")[kind]
    messages = [Message("system", (Text(data["system"]),))]
    for shot in data["shots"]:
        messages += [
            Message("user", (Text(shot["user"], "exemplar"),)),
            Message("assistant", (Text(shot["assistant"], "exemplar"),)),
        ]
    messages += [
        Message("user", (Text(user, "question"),)),
        Message("assistant", (Text(data["prefill"] if prefill is None else prefill),)),
    ]
    return Prompt(tuple(messages))


def extract_prompt(question: str, reasoning: str) -> Prompt:
    """Names and the missing relation (MIND §3.1)."""
    return side("extract", f"Question: {question}\nReasoning: {reasoning or 'nothing yet'}")


def cot_prompt(question: str, reasoning: str, candidates: Sequence[str]) -> Prompt:
    """Keep or drop each candidate, with a reason (MIND §3.3)."""
    listed = "\n".join(f"{number} {name}" for number, name in enumerate(candidates, 1))
    return side("cot", f"Question: {question}\nReasoning: {reasoning or 'nothing yet'}\nCandidates:\n{listed}")


def query_prompt(question: str, known: str, unsure: str, names: Sequence[str]) -> Prompt:
    """The next sub-question (MIND §3.4)."""
    return side(
        "query",
        f"Question: {question}\nKnown: {known or 'nothing yet'}\nUnsure: {unsure}\nNames: {'; '.join(names) or 'none'}",
    )


def rewrite_prompt(history: Sequence[tuple[str, str]], question: str) -> Prompt:
    """A standalone form of a follow-up question."""
    turns = "\n".join(f"User: {asked}\nAnswer: {answer}" for asked, answer in history)
    return side("rewrite", f"{turns}\nLast question: {question}")
