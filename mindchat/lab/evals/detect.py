"""Does a signal know that a sentence is wrong? The area under the ROC curve of every candidate, over the sentences of
one_hop.py.

Owns: which sentences count, AUROC with intervals per condition, what the shipped threshold does there, their tables.
Does not own: asking (one_hop.py), the statistics (bootstrap.py). A sentence is wrong if it claims something and does
not state the gold. Refusals and silence claim nothing; they are counted, not judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from mindchat.errors import UsageError
from mindchat.lab.evals.bootstrap import Interval, auroc_difference, auroc_interval
from mindchat.lab.evals.merge import merge
from mindchat.lab.evals.records import Record
from mindchat.lab.evals.report import number, plain, table

SIGNALS: Mapping[str, str] = {
    "max_s": "max S (RIND, H · a / mean(a) · s)",
    "margin": "max S - θ (RIND, dynamic threshold)",
    "max_s_raw": "max H · a · s, attention as measured",
    "max_entropy": "max H over content words (entropy alone)",
    "mean_entropy": "mean H over content words",
    "sequence_entropy": "mean H over all tokens (sequence-entropy gate)",
    "surprise": "mean -log p over all tokens (perplexity gate)",
    "words": "number of words (control: length alone)",
}
"""Measure of a record → how tables name it; the last one is a control."""
AGAINST = "sequence_entropy"
"""The cheap rival that the others are compared with."""
MINIMUM = 60
"""Fewest judged sentences for which the area is reported without a warning."""


class Curve(Struct, frozen=True):
    """One signal."""

    signal: str
    auroc: Interval
    gain: Interval
    """Paired difference to the sequence entropy."""


class Detection(Struct, frozen=True):
    """One set of sentences."""

    name: str
    sentences: int
    wrong: int
    refused: int
    silent: int
    failed: int
    copied: int
    """Sentences with a name copied from the examples (judged, too)."""
    curves: tuple[Curve, ...]
    caught: float
    """Share of the wrong sentences over the shipped threshold; NaN without one."""
    alarms: float
    """Share of the right ones over it."""


def detect(name: str, records: Sequence[Record]) -> Detection:
    """AUROC of every signal over these records."""
    judged = [
        record for record in records if record.failure is None and record.measures and not record.scores["refused"]
    ]
    wrong = [not record.scores["right"] for record in judged]
    clusters = [record.id.partition("#")[0] for record in judged]
    values = {signal: [record.measures.get(signal, 0.0) for record in judged] for signal in SIGNALS}
    curves = tuple(
        Curve(signal, auroc_interval(own, wrong, clusters), auroc_difference(own, values[AGAINST], wrong, clusters))
        for signal, own in values.items()
    )
    fired = [bool(record.measures.get("triggered")) for record in judged]
    return Detection(
        name=name,
        sentences=len(judged),
        wrong=sum(wrong),
        refused=sum(bool(record.scores.get("refused")) for record in records),
        silent=sum(bool(record.scores.get("silent")) for record in records),
        failed=sum(record.failure is not None for record in records),
        copied=sum(bool(record.scores.get("copied")) for record in judged),
        curves=curves,
        caught=_share(fired, wrong),
        alarms=_share(fired, [not one for one in wrong]),
    )


def _share(fired: Sequence[bool], among: Sequence[bool]) -> float:
    chosen = [hit for hit, counts in zip(fired, among, strict=True) if counts]
    return sum(chosen) / len(chosen) if chosen else float("nan")


def build(folders: Sequence[Path]) -> tuple[Detection, ...]:
    """For each data set: all sentences, those without copied names, each condition by itself. Raises UsageError if the
    folders hold other records.
    """
    found = []
    for dataset, records in merge(folders).records.items():
        own = [record for record in records if dataset.endswith("one-hop")]
        if not own:
            raise UsageError("The folder holds no sentences about single hops.", "Fill it with mindchat eval rind.")
        arms = sorted({record.arm for record in own})
        name = dataset.removesuffix(" one-hop")
        found += [detect(f"{name}, all", own)] if len(arms) > 1 else []
        # a copied name is caught by its spelling, whatever the signals say, so the signals are also judged without such
        # sentences
        clean = [record for record in own if not record.scores.get("copied")]
        found += [detect(f"{name}, no copied names", clean)] if len(clean) < len(own) else []
        found += [
            detect(f"{name}, {arm.removeprefix('mind ')}", [record for record in own if record.arm == arm])
            for arm in arms
        ]
    return tuple(found)


def markdown(found: Sequence[Detection]) -> str:
    """Two tables: what was judged, and the areas."""
    return "\n".join(lines(found)).rstrip() + "\n"


def lines(found: Sequence[Detection]) -> Iterator[str]:
    """The tables, line by line."""
    head = [
        "sentences",
        "judged",
        "wrong",
        "refused",
        "claims nothing",
        "failed",
        "copied names",
        "over θ if wrong, %",
        "over θ if right, %",
    ]
    yield from table(head, [_counts(one) for one in found])
    yield (
        "AUROC of each signal against “this sentence is wrong” (0.5: knows nothing) with 95 % intervals, questions"
        " drawn; after the semicolon the"
    )
    yield "paired difference to the sequence entropy."
    yield ""
    yield from table(
        ["signal", *(f"{one.name} (n = {one.sentences})" for one in found)],
        [_areas(signal, found) for signal in SIGNALS],
    )
    few = [one.name for one in found if min(one.wrong, one.sentences - one.wrong) < 10]
    if few:
        yield f"Fewer than ten sentences of one class: {', '.join(few)}; read those columns as anecdotes."
        yield ""


def _counts(one: Detection) -> list[str]:
    shares = [number(100 * one.caught, 0), number(100 * one.alarms, 0)]
    return [one.name, *map(str, (one.sentences, one.wrong, one.refused, one.silent, one.failed, one.copied)), *shares]


def _areas(signal: str, found: Sequence[Detection]) -> list[str]:
    cells = []
    for one in found:
        curve = next(curve for curve in one.curves if curve.signal == signal)
        gain = "" if signal == AGAINST else f"; {plain(curve.gain)}"
        cells.append(plain(curve.auroc) + gain)
    return [SIGNALS[signal], *cells]
