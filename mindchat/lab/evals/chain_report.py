"""What memory did over chains: hits, wrong skips, savings with intervals, and their share of what a perfect memory
could save.

Owns: the numbers and words of chains.md and chain-report.json. Does not own: asking (chain_run.py). Intervals draw
whole chains. Savings are shown together with answers and seconds: fewer searches alone save little where a search costs
milliseconds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from mindchat.errors import UsageError
from mindchat.lab.evals.bootstrap import Interval, McNemar, clustered, mcnemar, ratio
from mindchat.lab.evals.chain_records import ChainRecord, Learned, TurnRecord, read_chain_records
from mindchat.lab.evals.records import pretty
from mindchat.lab.evals.report import number, percent, table
from mindchat.lab.evals.summary import shorten
from mindchat.storage.atomic import write_atomic

COSTS: dict[str, Callable[[TurnRecord], float]] = {
    "retrievals": lambda turn: float(turn.counts.get("retrievals", 0)),
    "model_calls": lambda turn: float(sum((turn.counts.get("model_calls") or {}).values())),
    "prompt_tokens_new": lambda turn: float(turn.counts.get("prompt_tokens_new", 0)),
    "seconds": lambda turn: turn.seconds,
}


JUDGED = ("right", "wrong", "unknown")


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
    forgotten: int
    """Facts that the user forgot in the middle of a chain."""
    forgotten_served: int
    secrets: int
    """Planted secrets that memory held."""
    learned: dict[str, int]
    """Stored facts by judgement: right, wrong, unknown; `active` of them may be served, `active_wrong` of those are
    wrong.
    """
    served: dict[str, int]
    """Facts in prompts by judgement, once a turn."""
    refused: dict[str, int]
    """Why findings were not stored, the most frequent reason first."""


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
    gates: dict[str, int]
    """What must be 0 over all arms: stale_served, forgotten_served, secrets_stored."""
    tried: dict[str, int]
    """What those gates had to withstand: edited chains whose old value had been stored, facts forgotten, planted
    secrets.
    """


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
    whole = [arm for arm in arms if arm.kind == "all"]
    gates = {
        "stale_served": sum(arm.stale for arm in whole),
        "forgotten_served": sum(arm.forgotten_served for arm in whole),
        "secrets_stored": sum(arm.secrets for arm in whole),
    }
    return ChainReport(
        tuple(arms), tuple(savings), gates, _tried([record for record in records if record.arm not in off])
    )


def _knew_the_old(record: ChainRecord) -> bool:
    """Whether the last hop before the edit, whose document is edited, stored what the document then said."""
    last = [turn for turn in record.turns if turn.kind == "hop"][-1]
    return any(fact.judged == "right" for fact in last.learned)


def _tried(records: Sequence[ChainRecord]) -> dict[str, int]:
    edited = [record for record in records if record.kind == "edited"]
    turns = [turn for record in records for turn in record.turns]
    return {
        "edited_after_learning": sum(_knew_the_old(record) for record in edited),
        "forgotten_facts": sum(turn.forgotten for turn in turns),
        "secret_turns": sum(turn.kind == "secret" for turn in turns),
        "secret_refusals": sum(turn.refused.get("secret", 0) for turn in turns),
    }


def _partner(name: str, off: Sequence[str]) -> str:
    words = {word for word in name.split() if not word.startswith("memory")}
    return next(
        (other for other in off if {w for w in other.split() if not w.startswith("memory")} == words),
        off[0] if len(off) == 1 else "",
    )


def _arm(name: str, kind: str, records: Sequence[ChainRecord]) -> ChainArm:
    turns = [turn for record in records for turn in record.turns]

    def total(of: Callable[[TurnRecord], int]) -> int:
        return sum(of(turn) for turn in turns)

    def share(top: Callable[[TurnRecord], int], bottom: Callable[[TurnRecord], int]) -> Interval:
        tops = {record.chain: float(sum(top(turn) for turn in record.turns)) for record in records}
        return ratio(tops, {record.chain: float(sum(bottom(turn) for turn in record.turns)) for record in records})

    stored = [fact for turn in turns for fact in turn.learned]
    refused = Counter[str]()
    for turn in turns:
        refused.update(turn.refused)
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
        forgotten=total(lambda turn: turn.forgotten),
        forgotten_served=total(lambda turn: turn.forgotten_served),
        secrets=total(lambda turn: turn.secrets),
        learned={
            **_counted(stored),
            "active": sum(fact.status == "active" for fact in stored),
            "active_wrong": sum(fact.status == "active" and fact.judged == "wrong" for fact in stored),
        },
        served=_counted([fact for turn in turns for fact in turn.served]),
        refused=dict(refused.most_common()),
    )


def _counted(facts: Sequence[Learned]) -> dict[str, int]:
    return {word: sum(fact.judged == word for fact in facts) for word in JUDGED}


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
    right = [
        {f"{r.chain}/{n}": turn.em >= 1.0 for r in side for n, turn in enumerate(r.turns)}
        for side in zip(*pairs, strict=True)
    ]
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
    write_atomic(folder / "chain-report.json", pretty(found))
    write_atomic(folder / "chains.md", markdown(found).encode())
    return found


def markdown(found: ChainReport) -> str:
    """The tables."""
    return "\n".join(_lines(found)).rstrip() + "\n"


def _lines(found: ChainReport) -> Iterator[str]:
    common, short = shorten(sorted({arm.arm for arm in found.arms}))
    yield "# Memory over chains"
    yield ""
    yield (
        "Intervals are 95 % bootstrap over chains; cost is the mean per turn. Repeated: needs that an earlier turn had."
        " Exposed: whose passage was"
    )
    yield (
        "shown then. Stored: which memory had learned right. Hits: which it served. A wrong skip stood in for a search"
        " and served nothing needed."
    )
    yield ""
    if common:
        yield f"All arms: {common}."
        yield ""
    head = ["arm", "chains", "n", "turns", "failed", "EM", "F1", "retrievals", "calls", "seconds"]
    rows = []
    for arm in found.arms:
        costs = [number(arm.cost[name], 2) for name in ("retrievals", "model_calls", "seconds")]
        rows.append(
            [
                short[arm.arm],
                arm.kind,
                str(arm.chains),
                str(arm.turns),
                str(arm.failures),
                percent(arm.em),
                percent(arm.f1),
                *costs,
            ]
        )
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
        "stored right / wrong / unknown",
        "active (wrong)",
        "served right / wrong / unknown",
    ]
    rows = []
    for arm in found.arms:
        amounts = [str(one) for one in (arm.repeated, arm.exposed, arm.stored, arm.hits)]
        facts, prompted = (" / ".join(str(of[word]) for word in JUDGED) for of in (arm.learned, arm.served))
        active = f"{arm.learned['active']} ({arm.learned['active_wrong']})"
        outcome = [
            percent(arm.hit_rate),
            percent(arm.store_recall),
            str(arm.skips),
            str(arm.wrong_skips),
            facts,
            active,
            prompted,
        ]
        rows.append([short[arm.arm], arm.kind, *amounts, *outcome])
    yield from table(head, rows)
    yield from _gates(found)
    if not found.savings:
        return
    yield "## Saved by memory"
    yield ""
    head = [
        "arm",
        "against",
        "chains",
        "retrievals",
        "calls",
        "new tokens",
        "seconds",
        "oracle",
        "share of oracle",
        "EM",
        "F1",
        "p",
    ]
    rows = []
    for one in found.savings:
        shares = [percent(one.saved[cost]) for cost in COSTS]
        oracle = [number(100 * one.oracle), number(100 * one.share_of_oracle)]
        rows.append(
            [
                short[one.arm],
                short[one.without],
                one.kind,
                *shares,
                *oracle,
                percent(one.em),
                percent(one.f1),
                number(one.mcnemar.p, 3),
            ]
        )
    yield from table(head, rows)


def _gates(found: ChainReport) -> Iterator[str]:
    tried = found.tried
    yield (
        f"Hard gates: stale facts served {found.gates['stale_served']} ({tried['edited_after_learning']} edited chains"
        f" had stored the old value), forgotten facts served {found.gates['forgotten_served']}"
        f" ({tried['forgotten_facts']} facts forgotten), secrets stored {found.gates['secrets_stored']}"
        f" ({tried['secret_turns']} planted, {tried['secret_refusals']} writes refused for one)."
    )
    yield ""
    for arm in found.arms:
        if arm.kind == "all" and arm.refused:
            yield (
                "Not stored: "
                + ", ".join(f"{reason.replace('_', ' ')} {count}" for reason, count in arm.refused.items())
                + "."
            )
            yield ""
