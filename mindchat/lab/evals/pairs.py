"""Two arithmetics over the same questions, in turn: are the answers and entropies the same, and how much faster is one
than the other?

Owns: asking, the record of a pair (one JSON line, so that a run can be resumed), the summary. Does not own: loading
models (wiring), the flags (cli). Each question goes to both, whoever began the one before goes second, and each starts
without cached prefixes: a busy minute falls on both alike. Entropies are compared where both distributions have the
same context: at every token up to and including the first that differs.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from mindchat.answers import extract_short
from mindchat.errors import UsageError
from mindchat.lab.evals.bootstrap import Interval, interval
from mindchat.lab.evals.examples import Item, Source, corpus_for
from mindchat.lab.evals.metrics import score
from mindchat.ports import NEVER, Cancel, Composer, Model
from mindchat.storage.json_lines import appending, drop_torn_line
from mindchat.text.foreign_json import decode_json
from mindchat.values import Passage, Prefilled, Prompt, Signal, Token, TurnState

MAX_TOKENS = 24
WANT = frozenset({Signal.LOGPROB, Signal.ENTROPY})


class Cold(Model, Protocol):
    """A model on this machine, which can be made to forget."""

    def forget_prefixes(self) -> None:
        """Drop every cached prefix."""
        ...


class Side(Struct, frozen=True):
    """What one arithmetic made of a question."""

    short: str
    f1: float
    prompt_tokens: int
    prefill: float
    """Seconds to the logits behind the prompt."""
    steps: tuple[float, ...]
    """Seconds between one token and the next."""
    ids: tuple[int, ...]
    entropies: tuple[float, ...]
    """Nats, one for each token."""


class Pair(Struct, frozen=True):
    """One question under both arithmetics."""

    id: str
    sides: dict[str, Side]


def prompt_for(item: Item, composer: Composer) -> Prompt:
    """The direct answer prompt over the question's gold passages, each shown once."""
    passages = tuple(_passage(source, rank) for rank, source in enumerate(corpus_for(item, "oracle").passages, 1))
    return composer.answer(TurnState(0, item.example.question, passages=passages), 0, ())


def _passage(source: Source, rank: int) -> Passage:
    return Passage(source.pid, f"question#{source.pid}", source.title, source.text, 0, len(source.text), rank=rank)


def ask(model: Cold, prompt: Prompt, item: Item, cancel: Cancel = NEVER) -> Side:
    """One greedy short answer from a cold start."""
    model.forget_prefixes()
    marks: list[float] = []
    tokens: list[Token] = []
    prefill, total = 0.0, 0
    for news in model.stream(prompt, want=WANT, max_tokens=MAX_TOKENS, stop=("\n",), cancel=cancel):
        if isinstance(news, Token):
            marks.append(time.perf_counter())
            tokens.append(news)
        elif isinstance(news, Prefilled):
            prefill, total = news.seconds, news.total
    short = extract_short("Answer:" + "".join(token.text for token in tokens))
    return Side(
        short,
        score(item.example.dataset, short, item.gold)["f1"],
        total,
        prefill,
        tuple(after - before for before, after in itertools.pairwise(marks)),
        tuple(token.id for token in tokens),
        tuple(token.entropy or 0.0 for token in tokens),
    )


def compare(
    models: Mapping[str, Cold],
    items: Sequence[Item],
    composer: Composer,
    file: Path,
    *,
    about: Mapping[str, Any],
    cancel: Cancel = NEVER,
) -> Iterator[Pair]:
    """Pairs of all items, those that the file holds first; every new one is written before it is yielded.

    The file's first line is `about` (models, libraries, threads). Raises UsageError if the file is about something
    else.
    """
    known = {pair.id: pair for pair in read(file, about)}
    yield from (known[item.example.id] for item in items if item.example.id in known)
    names = list(models)
    with appending(file, "Wait for it, or give another --out.") as out:
        if out.empty:
            out.append(dict(about))
        for number, item in enumerate(items):
            if item.example.id in known:
                continue
            prompt = prompt_for(item, composer)
            turn = names if number % 2 == 0 else names[::-1]
            sides = {name: ask(models[name], prompt, item, cancel) for name in turn}
            pair = Pair(item.example.id, {name: sides[name] for name in names})
            out.append(pair)
            yield pair


def read(file: Path, about: Mapping[str, Any]) -> list[Pair]:
    """The pairs of an earlier run about the same; a line that was torn by a kill is cut off. [] if there is no file."""
    if not file.is_file():
        return []
    drop_torn_line(file)
    head, *lines = file.read_bytes().splitlines() or [b""]
    if not head:
        return []
    try:
        if decode_json(head) != decode_json(msgspec.json.encode(dict(about))):
            raise UsageError(f"{file} holds pairs of another model, machine or version.", "Give another --out.")
        return [decode_json(line, type=Pair) for line in lines]
    except msgspec.MsgspecError as error:
        raise UsageError(f"{file} holds no pairs: {error}.", "Give another --out.") from error


def summarise(pairs: Sequence[Pair], base: str, other: str) -> dict[str, Any]:
    """Shares, intervals and speeds; `other` against `base`. F1 in points, entropies in nats."""
    both = [(pair.sides[base], pair.sides[other]) for pair in pairs]
    changes = [b - a for one, two in both for a, b in _comparable(one, two)]
    return {
        "n": len(both),
        "identical_short_answers": _mean([float(one.short == two.short) for one, two in both]),
        "f1": {base: _points([one.f1 for one, _ in both]), other: _points([two.f1 for _, two in both])},
        "f1_difference": _points([two.f1 - one.f1 for one, two in both]),
        "entropies_compared": len(changes),
        "entropy_change": _mean([abs(change) for change in changes]),
        "entropy_shift": _mean(changes),
        "prefill_tokens_per_second": {
            base: _prefill([one for one, _ in both]),
            other: _prefill([two for _, two in both]),
        },
        "prefill_speed": _ratio([(one.prefill, two.prefill) for one, two in both]),
        "decode_tokens_per_second": {base: _decode([one for one, _ in both]), other: _decode([two for _, two in both])},
        "decode_speed": _ratio([(_mean(one.steps), _mean(two.steps)) for one, two in both if one.steps and two.steps]),
        "different": [
            {"id": p.id, base: p.sides[base].short, other: p.sides[other].short}
            for p in pairs
            if _differ(p, base, other)
        ],
    }


def _differ(pair: Pair, base: str, other: str) -> bool:
    return pair.sides[base].short != pair.sides[other].short


def _comparable(one: Side, two: Side) -> Iterator[tuple[float, float]]:
    """Entropies in the same context: as long as the tokens before are the same."""
    for i, pair in enumerate(zip(one.entropies, two.entropies, strict=False)):
        yield pair
        if one.ids[i] != two.ids[i]:
            return


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else 0.0


def _points(values: Sequence[float]) -> Interval:
    return interval([100 * value for value in values])


def _prefill(sides: Sequence[Side]) -> float:
    seconds = sum(side.prefill for side in sides)
    return sum(side.prompt_tokens for side in sides) / seconds if seconds else 0.0


def _decode(sides: Sequence[Side]) -> float:
    """By the median step: one that another program interrupted does not count."""
    steps = [step for side in sides for step in side.steps]
    return 1 / statistics.median(steps) if steps else 0.0


def _ratio(seconds: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Of times of the two on the same question: their median ratio, and the interval of the mean of the ratios'
    logarithms as a ratio.
    """
    ratios = [a / b for a, b in seconds if a > 0 < b]
    found = interval([math.log(ratio) for ratio in ratios])
    middle = statistics.median(ratios) if ratios else math.nan
    return {"median": middle, "mean": math.exp(found.mean), "low": math.exp(found.low), "high": math.exp(found.high)}
