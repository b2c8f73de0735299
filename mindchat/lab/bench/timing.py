"""What every measurement needs: a prompt of a size, one timed generation, the libraries that decide.

Owns: the clock around a generation. Does not own: what is compared with what.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mindchat.values import Message, Prefilled, Prompt, Signal, Text, Token

if TYPE_CHECKING:
    from mindchat.models.local import LocalModel

SIGNALS = frozenset({Signal.LOGPROB, Signal.ENTROPY, Signal.ATTENTION})


def prompt_of(model: LocalModel, text: str, tokens: int) -> Prompt:
    """A prompt of about `tokens` tokens: the text, repeated as needed, and a request to go on."""
    ids = model.vocabulary.continuation(text + "\n")
    while len(ids) < tokens:
        ids += ids
    return Prompt((Message("user", (Text("Continue in detail.\n" + model.vocabulary.text(ids[:tokens]), "passage"),)),))


def timed(model: LocalModel, prompt: Prompt, tokens: int, want: frozenset[Signal] = SIGNALS) -> dict[str, Any]:
    """One generation: seconds to the first and the last token, decoding speed, prompt tokens cached, ids."""
    started = time.perf_counter()
    marks: list[float] = []
    ids: list[int] = []
    cached = total = 0
    for item in model.stream(prompt, want=want, max_tokens=tokens):
        if isinstance(item, Token):
            marks.append(time.perf_counter() - started)
            ids.append(item.id)
        elif isinstance(item, Prefilled):
            cached, total = item.cached, item.total
    seconds = time.perf_counter() - started
    rate = (len(marks) - 1) / (marks[-1] - marks[0]) if len(marks) > 1 else 0.0
    return {
        "seconds": seconds,
        "first": marks[0] if marks else seconds,
        "rate": rate,
        "cached": cached,
        "prompt": total,
        "ids": ids,
    }


def threads() -> int:
    """How many torch computes with."""
    import torch

    return torch.get_num_threads()


def versions() -> dict[str, str]:
    """The libraries that decide."""
    import torch
    import transformers

    return {"torch": str(torch.__version__), "transformers": str(transformers.__version__), "threads": str(threads())}
