"""The two questions that every probe asks of a model: what does it answer, and how probable is the right answer?

Owns: these calls and the pieces of curves. Does not own: prompts, scoring rules (evals.metrics).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from mindchat.answers import extract_short
from mindchat.engine.metered_model import collect
from mindchat.lab.evals.bootstrap import interval
from mindchat.lab.evals.examples import Gold
from mindchat.lab.evals.metrics import score
from mindchat.lab.probes.cases import Case, Cell, Point, Record, Series
from mindchat.ports import Cancel, Model
from mindchat.text.clean import clean_line
from mindchat.values import Prompt

ANSWER_TOKENS = 16


def answer(model: Model, prompt: Prompt, cancel: Cancel) -> str:
    """The short answer behind the prompt's "Answer:", greedy."""
    draft = collect(
        model.stream(prompt, want=frozenset(), max_tokens=ANSWER_TOKENS, stop=("\n",), cancel=cancel), frozenset()
    )
    return extract_short(f"Answer: {clean_line(draft.text)}")


def gold_logprob(model: Model, prompt: Prompt, gold: str, cancel: Cancel) -> float:
    """log p(a | question, context, instruction) of the gold answer, nats: what CoRe §3.1 ranks orders by."""
    return model.choose(prompt, [f" {gold}"], cancel=cancel)[0].logprob


def judge(dataset: str, said: str, gold: Sequence[str]) -> dict[str, float]:
    """F1 and exact match under the data set's own rule."""
    found = score(dataset, said, Gold(tuple(gold)))
    return {"f1": found["f1"], "em": found["em"]}


def read(case: Case, cell: Cell, prompt: Prompt, model: Model, cancel: Cancel) -> tuple[str, dict[str, float]]:
    """How a question's documents are read: probability of the gold answer, then the answer itself over the same
    prefill, with its scores.
    """
    logprob = gold_logprob(model, prompt, cell.gold[0], cancel)
    said = answer(model, prompt, cancel)
    return said, {"logprob": logprob, "probability": math.exp(logprob), **judge(case.dataset, said, cell.gold)}


def curves(
    records: Iterable[Record], value: str, name: Callable[[Record], str], x: Callable[[Record], float]
) -> tuple[Series, ...]:
    """Mean of a value over cases for each (curve, x), curves in order of appearance."""
    cells: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if value in record.values:
            cells[name(record)][x(record)].append(record.values[value])
    return tuple(
        Series(title, tuple(point(at, inside[at]) for at in sorted(inside))) for title, inside in cells.items()
    )


def point(x: float, values: Sequence[float]) -> Point:
    """The mean of a cell with its interval."""
    found = interval(values)
    return Point(x, found.mean, found.low, found.high, found.n)


def copies(repeat: int) -> str:
    """A curve's name for so many repetitions."""
    return "no repetition" if repeat == 0 else f"{repeat} repetition{'s' * (repeat > 1)}"
