"""Records summed up: per dataset, arm and question type, with intervals, paired differences, and comparisons at equal
calls.

Owns: the numbers of report.json. Does not own: reading and merging folders (merge.py), their words and pictures
(report.py, chart.py). Failures count as wrong answers, and their number stands beside every average. Cost is averaged
over all records, failures included.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mindchat.lab.evals.bootstrap import Interval, McNemar, auroc, interval, mcnemar, paired
from mindchat.lab.evals.records import Record

PRIMARY = ("em", "f1", "accuracy")
REFERENCES = ("once", "gate", "dragin", "none")
"""Default reference arms of the paired differences: by policy name, those that the run has."""


class Group(Struct, frozen=True):
    """Records of one arm (all, or one question type)."""

    n: int
    failures: int
    abstained: int
    em: Interval
    f1: Interval
    accuracy: Interval
    cost: dict[str, float]
    """Means per question: retrievals, memory hits, skips, model calls, tokens, seconds, triggers, sentences."""


class ArmSummary(Struct, frozen=True):
    """One arm on one dataset."""

    arm: str
    policy: str
    total: Group
    calls: Interval
    """Model calls per question."""
    seconds: Interval
    """Wall seconds per question."""
    retrievals: Interval
    measures: dict[str, Interval]
    """Dataset variants of EM and F1, retrieval, triggers, entities, citations; each over the questions where it is
    defined.
    """
    calls_by_kind: dict[str, float]
    stops: dict[str, int]
    failure_codes: dict[str, int]
    warm: int
    """Turns that began on a cache which an earlier turn had filled: their seconds and new tokens are too low."""
    confidence_auroc: float | None
    """How well the answer's confidence separates right (EM) from wrong; None if it cannot be said."""
    by_type: dict[str, Group]
    mixture: float | None = None
    """Best F1 that a coin between two other arms reaches at this arm's mean number of model calls; None if none is that
    cheap.
    """


class Difference(Struct, frozen=True):
    """arm - reference on the questions that both answered or failed."""

    arm: str
    reference: str
    em: Interval
    f1: Interval
    retrievals: Interval
    calls: Interval
    prompt_tokens_new: Interval
    prompt_tokens_cached: Interval
    seconds: Interval
    mcnemar: McNemar
    """On EM: only_a counts questions that only the arm got right."""
    by_type: dict[str, Difference] = {}
    """The same within each question type, where the shared questions have several."""


class DatasetSummary(Struct, frozen=True):
    """Everything about one dataset."""

    dataset: str
    questions: int
    shared: int
    """Questions for which every arm has a record."""
    arms: tuple[ArmSummary, ...]
    differences: tuple[Difference, ...]


def value(record: Record, name: str) -> float:
    """A score of one record; a failure scores 0."""
    return record.scores.get(name, 0.0)


def model_calls(record: Record) -> float:
    """All model calls of the turn, of every kind."""
    calls = record.counts.get("model_calls") or {}
    return float(sum(calls.values()))


def seconds(record: Record) -> float:
    """Wall seconds of the turn."""
    return float(record.timing.get("wall", record.timing.get("total", 0.0)))


def _count(name: str) -> Callable[[Record], float]:
    return lambda record: float(record.counts.get(name, 0))


COSTS: Mapping[str, Callable[[Record], float]] = {
    "retrievals": _count("retrievals"),
    "memory_hits": _count("memory_hits"),
    "retrievals_skipped": _count("retrievals_skipped"),
    "model_calls": model_calls,
    "prompt_tokens_new": _count("prompt_tokens_new"),
    "prompt_tokens_cached": _count("prompt_tokens_cached"),
    "generated_kept": _count("generated_kept"),
    "generated_discarded": _count("generated_discarded"),
    "generated_side": _count("generated_side"),
    "sentences": _count("sentences"),
    "triggers": _count("triggers"),
    "seconds": seconds,
    "first_token": lambda record: float(record.timing.get("first_token", 0.0)),
}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _group(records: Sequence[Record]) -> Group:
    return Group(
        n=len(records),
        failures=sum(record.failure is not None for record in records),
        abstained=sum(record.abstained for record in records),
        em=interval([value(record, "em") for record in records]),
        f1=interval([value(record, "f1") for record in records]),
        accuracy=interval([value(record, "accuracy") for record in records]),
        cost={name: round(_mean([of(record) for record in records]), 4) for name, of in COSTS.items()},
    )


def _kinds(records: Sequence[Record]) -> list[str]:
    """The question types; none if there is only one, because it is the whole."""
    kinds = sorted({record.type for record in records if record.type})
    return kinds if len(kinds) > 1 else []


def _of(kind: str, records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.type == kind]


def _measures(records: Sequence[Record]) -> dict[str, Interval]:
    names = sorted({name for record in records for name in (*record.scores, *record.measures)} - set(PRIMARY))
    found = {}
    for name in names:
        values = [record.measures.get(name, record.scores.get(name)) for record in records]
        found[name] = interval([float(one) for one in values if one is not None])
    return found


def _arm(arm: str, records: Sequence[Record]) -> ArmSummary:
    kinds = sorted({kind for record in records for kind in record.counts.get("model_calls") or {}})
    sure = [record for record in records if record.confidence is not None and record.failure is None]
    return ArmSummary(
        arm=arm,
        policy=arm.split(" ", 1)[0],
        total=_group(records),
        calls=interval([model_calls(record) for record in records]),
        seconds=interval([seconds(record) for record in records]),
        retrievals=interval([COSTS["retrievals"](record) for record in records]),
        measures=_measures(records),
        calls_by_kind={
            kind: round(_mean([float((r.counts.get("model_calls") or {}).get(kind, 0)) for r in records]), 4)
            for kind in kinds
        },
        stops=dict(sorted(Counter(record.stop for record in records if record.stop).items())),
        failure_codes=dict(sorted(Counter(record.failure.code for record in records if record.failure).items())),
        warm=sum(record.warm > 0 for record in records),
        confidence_auroc=auroc([float(r.confidence or 0.0) for r in sure], [value(r, "em") >= 1.0 for r in sure]),
        by_type={kind: _group(_of(kind, records)) for kind in _kinds(records)},
    )


def _by_id(records: Sequence[Record], of: Callable[[Record], float]) -> dict[str, float]:
    return {record.id: of(record) for record in records}


def difference(arm: str, records: Sequence[Record], reference: str, others: Sequence[Record]) -> Difference:
    """Paired over the ids that both arms have, over all of them and within each question type."""
    whole = _difference(arm, records, reference, others)
    both = {record.id for record in records} & {record.id for record in others}
    kinds = _kinds([record for record in records if record.id in both])
    return replace(
        whole, by_type={kind: _difference(arm, _of(kind, records), reference, _of(kind, others)) for kind in kinds}
    )


def _difference(arm: str, records: Sequence[Record], reference: str, others: Sequence[Record]) -> Difference:
    def over(of: Callable[[Record], float]) -> Interval:
        return paired(_by_id(records, of), _by_id(others, of))

    right = [{record.id: value(record, "em") >= 1.0 for record in side} for side in (records, others)]
    return Difference(
        arm=arm,
        reference=reference,
        em=over(lambda record: value(record, "em")),
        f1=over(lambda record: value(record, "f1")),
        retrievals=over(COSTS["retrievals"]),
        calls=over(model_calls),
        prompt_tokens_new=over(COSTS["prompt_tokens_new"]),
        prompt_tokens_cached=over(COSTS["prompt_tokens_cached"]),
        seconds=over(seconds),
        mcnemar=mcnemar(*right),
    )


def mixture_at(calls: float, points: Sequence[tuple[float, float]]) -> float | None:
    """Best F1 at exactly `calls` mean model calls (or fewer) by answering with one of `points` (calls, F1) or tossing a
    coin between two.

    The fair rival of an adaptive policy: whoever spends as much may also mix. None if every point costs more.
    """
    cheap = [f1 for cost, f1 in points if cost <= calls]
    if not cheap:
        return None
    mixed = [
        low_f1 + (high_f1 - low_f1) * (calls - low) / (high - low)
        for low, low_f1 in points
        for high, high_f1 in points
        if low <= calls < high
    ]
    return max([*cheap, *mixed])


def references(arm: str, arms: Sequence[str], wanted: Sequence[str] = ()) -> list[str]:
    """The arms that `arm` is compared with: one for each wanted name or policy, the one that differs from it in the
    fewest settings.

    Nothing wanted: REFERENCES as far as the run has them, else the first arm.
    """
    known = {name.split(" ", 1)[0] for name in arms}
    names = list(wanted) or [policy for policy in REFERENCES if policy in known] or list(arms[:1])
    found = []
    for name in names:
        alike = [name] if name in arms and " " in name else [other for other in arms if other.split(" ", 1)[0] == name]
        others = [other for other in alike if other != arm]
        if others:
            found.append(min(others, key=lambda other: (len(_words(arm) ^ _words(other)), other)))
    return list(dict.fromkeys(found))


def _words(arm: str) -> set[str]:
    return set(arm.split(" ")[1:])


def summarise(dataset: str, records: Sequence[Record], *, against: Sequence[str] = ()) -> DatasetSummary:
    """The tables of one dataset, cheapest arm first. `against`: reference arms or policies of the paired differences."""
    by_arm: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: record.id):
        by_arm.setdefault(record.arm, []).append(record)
    arms = sorted((_arm(arm, own) for arm, own in by_arm.items()), key=lambda arm: (arm.calls.mean, arm.arm))
    points = {arm.arm: (arm.calls.mean, arm.total.f1.mean) for arm in arms}
    ids = [{record.id for record in own} for own in by_arm.values()]
    names = [arm.arm for arm in arms]
    return DatasetSummary(
        dataset=dataset,
        questions=len(set().union(*ids)),
        shared=len(set.intersection(*ids)) if ids else 0,
        arms=tuple(_with_mixture(arm, points) for arm in arms),
        differences=tuple(
            difference(arm, by_arm[arm], reference, by_arm[reference])
            for arm in names
            for reference in references(arm, names, against)
        ),
    )


def _with_mixture(arm: ArmSummary, points: Mapping[str, tuple[float, float]]) -> ArmSummary:
    others = [point for name, point in points.items() if name != arm.arm]
    best = mixture_at(points[arm.arm][0], others)
    return replace(arm, mixture=None if best is None else round(best, 4))


def shorten(names: Sequence[str]) -> tuple[str, dict[str, str]]:
    """(settings that every arm names, each arm's name without them): tables need not repeat what all arms share."""
    common = set.intersection(*(_words(name) for name in names)) if len(names) > 1 else set()
    short = {
        name: " ".join(word for n, word in enumerate(name.split(" ")) if not n or word not in common) for name in names
    }
    ordered = [word for word in names[0].split(" ")[1:] if word in common] if names else []
    return " ".join(ordered), short
