"""What memory did over chains: hits, wrong skips, savings with intervals, and their share of what a perfect memory could save.

Owns: the numbers and words of chains.md and chain-report.json. Does not own: asking (chain_run.py). Intervals draw whole chains.
Savings are shown together with answers and seconds: fewer searches alone save little where a search costs milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from mindchat.errors import UsageError
from mindchat.evals.bootstrap import Interval, McNemar, clustered, mcnemar, ratio
from mindchat.evals.chain_run import ChainRecord, TurnRecord, read_chain_records
from mindchat.evals.records import pretty, write_atomically
from mindchat.evals.report import number, percent, table
from mindchat.evals.summary import shorten

COSTS: dict[str, Callable[[TurnRecord], float]] = {
    "retrievals": lambda turn: float(turn.counts.get("retrievals", 0)),
    "model_calls": lambda turn: float(sum((turn.counts.get("model_calls") or {}).values())),
    "prompt_tokens_new": lambda turn: float(turn.counts.get("prompt_tokens_new", 0)),
    "seconds": lambda turn: turn.seconds,
}


class ChainArm(Struct, frozen=True):
    """One arm over one kind of chains ("all" for every kind)."""

    arm: str
    kind: str
    chains: int
    turns: int
    failures: int
    em: Interval
    f1: Interval
    cost: dict[str, float]
    """Means per turn."""
    repeated: int
    exposed: int
    stored: int
    hits: int
    hit_rate: Interval
    """Hits over stored needs."""
    store_recall: Interval
    """Stored over exposed needs."""
    skips: int
    wrong_skips: int
    stale: int
    learned: dict[str, int]
    """Stored facts by judgement: right, wrong, unknown."""


class Saving(Struct, frozen=True):
    """An arm with memory against the arm without, on the same turns."""

    arm: str
    without: str
    kind: str
    saved: dict[str, Interval]
    """Share of each cost that is saved; negative: more is spent."""
    oracle: float
    """Share of needs that repeat: what a perfect memory could save of the searches."""
    share_of_oracle: float
    """Saved retrievals over that; NaN if nothing repeats."""
    em: Interval
    f1: Interval
    mcnemar: McNemar


class ChainReport(Struct, frozen=True):
    """The content of chain-report.json."""

    arms: tuple[ChainArm, ...]
    savings: tuple[Saving, ...]


def build(records: Sequence[ChainRecord]) -> ChainReport:
    """Sum up. The arm to compare with is the one of equal name but memory=off, else the only one with memory=off."""
    if not records:
        raise UsageError("No chain has been finished.", "Run the chains first.")
    kinds = ["all", *sorted({record.kind for record in records})]
    names = sorted({record.arm for record in records})
    off = [name for name in names if "memory=off" in name.split()]
    arms, savings = [], []
    for kind in kinds:
        own = {name: [r for r in records if r.arm == name and kind in ("all", r.kind)] for name in names}
        arms += [_arm(name, kind, mine) for name, mine in own.items() if mine]
        for name in names:
            if name not in off and (without := _partner(name, off)):
                savings.append(_saving(name, without, kind, own[name], own[without]))
    return ChainReport(tuple(arms), tuple(savings))


def _partner(name: str, off: Sequence[str]) -> str:
    words = {word for word in name.split() if not word.startswith("memory")}
    return next((other for other in off if {w for w in other.split() if not w.startswith("memory")} == words), off[0] if len(off) == 1 else "")


def _arm(name: str, kind: str, records: Sequence[ChainRecord]) -> ChainArm:
    turns = [turn for record in records for turn in record.turns]

    def total(of: Callable[[TurnRecord], int]) -> int:
        return sum(of(turn) for turn in turns)

    def share(top: Callable[[TurnRecord], int], bottom: Callable[[TurnRecord], int]) -> Interval:
        tops = {record.chain: float(sum(top(turn) for turn in record.turns)) for record in records}
        return ratio(tops, {record.chain: float(sum(bottom(turn) for turn in record.turns)) for record in records})

    judged = [fact.judged for turn in turns for fact in turn.learned]
    return ChainArm(
        arm=name,
        kind=kind,
        chains=len(records),
        turns=len(turns),
        failures=sum(turn.failure is not None for turn in turns),
        em=clustered({record.chain: [turn.em for turn in record.turns] for record in records}),
        f1=clustered({record.chain: [turn.f1 for turn in record.turns] for record in records}),
        cost={cost: round(sum(of(turn) for turn in turns) / len(turns), 4) for cost, of in COSTS.items()},
        repeated=total(lambda turn: turn.repeated),
        exposed=total(lambda turn: turn.exposed),
        stored=total(lambda turn: turn.stored),
        hits=total(lambda turn: turn.hits),
        hit_rate=share(lambda turn: turn.hits, lambda turn: turn.stored),
        store_recall=share(lambda turn: turn.stored, lambda turn: turn.exposed),
        skips=total(lambda turn: turn.skips),
        wrong_skips=total(lambda turn: turn.wrong_skips),
        stale=total(lambda turn: turn.stale),
        learned={word: judged.count(word) for word in ("right", "wrong", "unknown")},
    )


def _saving(name: str, without: str, kind: str, on: Sequence[ChainRecord], off: Sequence[ChainRecord]) -> Saving:
    have = {record.chain: record for record in off}
    pairs = [(record, have[record.chain]) for record in on if record.chain in have]

    def saved(of: Callable[[TurnRecord], float]) -> Interval:
        spent = {b.chain: sum(of(turn) for turn in b.turns) for _, b in pairs}
        return ratio({a.chain: spent[a.chain] - sum(of(turn) for turn in a.turns) for a, _ in pairs}, spent)

    def gain(of: Callable[[TurnRecord], float]) -> Interval:
        return clustered({a.chain: [of(x) - of(y) for x, y in zip(a.turns, b.turns, strict=True)] for a, b in pairs})

    needs = sum(turn.needs for a, _ in pairs for turn in a.turns)
    oracle = sum(turn.repeated for a, _ in pairs for turn in a.turns) / needs if needs else 0.0
    shares = {cost: saved(of) for cost, of in COSTS.items()}
    right = [{f"{r.chain}/{n}": turn.em >= 1.0 for r in side for n, turn in enumerate(r.turns)} for side in zip(*pairs, strict=True)]
    return Saving(
        arm=name,
        without=without,
        kind=kind,
        saved=shares,
        oracle=round(oracle, 4),
        share_of_oracle=round(shares["retrievals"].mean / oracle, 4) if oracle else math.nan,
        em=gain(lambda turn: turn.em),
        f1=gain(lambda turn: turn.f1),
        mcnemar=mcnemar(*right) if right else McNemar(0, 0, 1.0),
    )


def write(folder: Path) -> ChainReport:
    """Build from a folder's chains.jsonl and write chain-report.json and chains.md beside it."""
    found = build(read_chain_records(folder))
    write_atomically(folder / "chain-report.json", pretty(found))
    write_atomically(folder / "chains.md", markdown(found).encode())
    return found


def markdown(found: ChainReport) -> str:
    """The tables."""
    return "\n".join(_lines(found)).rstrip() + "\n"


def _lines(found: ChainReport) -> Iterator[str]:
    common, short = shorten(sorted({arm.arm for arm in found.arms}))
    yield "# Memory over chains"
    yield ""
    yield "Intervals are 95 % bootstrap over chains; cost is the mean per turn. Repeated: needs that an earlier turn had. Exposed: whose passage was"
    yield "shown then. Stored: which memory had learned right. Hits: which it served. A wrong skip stood in for a search and served nothing needed."
    yield ""
    if common:
        yield f"All arms: {common}."
        yield ""
    head = ["arm", "chains", "n", "turns", "failed", "EM", "F1", "retrievals", "calls", "seconds"]
    rows = []
    for arm in found.arms:
        costs = [number(arm.cost[name], 2) for name in ("retrievals", "model_calls", "seconds")]
        rows.append([short[arm.arm], arm.kind, str(arm.chains), str(arm.turns), str(arm.failures), percent(arm.em), percent(arm.f1), *costs])
    yield from table(head, rows)
    head = [
        "arm",
        "chains",
        "repeated",
        "exposed",
        "stored",
        "hits",
        "hit rate",
        "store recall",
        "skips",
        "wrong",
        "stale",
        "facts right / wrong / unknown",
    ]
    rows = []
    for arm in found.arms:
        amounts = [str(one) for one in (arm.repeated, arm.exposed, arm.stored, arm.hits)]
        facts = " / ".join(str(arm.learned[word]) for word in ("right", "wrong", "unknown"))
        outcome = [percent(arm.hit_rate), percent(arm.store_recall), str(arm.skips), str(arm.wrong_skips), str(arm.stale), facts]
        rows.append([short[arm.arm], arm.kind, *amounts, *outcome])
    yield from table(head, rows)
    if not found.savings:
        return
    yield "## Saved by memory"
    yield ""
    head = ["arm", "against", "chains", "retrievals", "calls", "new tokens", "seconds", "oracle", "share of oracle", "EM", "F1", "p"]
    rows = []
    for one in found.savings:
        shares = [percent(one.saved[cost]) for cost in COSTS]
        oracle = [number(100 * one.oracle), number(100 * one.share_of_oracle)]
        rows.append([short[one.arm], short[one.without], one.kind, *shares, *oracle, percent(one.em), percent(one.f1), number(one.mcnemar.p, 3)])
    yield from table(head, rows)
