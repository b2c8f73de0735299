"""Asking chains: every arm, every chain, turn by turn, in one of three regimes of memory that are never mixed.

Owns: evaluate_chains, what one turn did with memory and how that is judged. Does not own: chains (chains.py), the
folder (chain_records.py), tables (chain_report.py). Every turn is a fresh session: what carries over is memory, not the
conversation. Between turns the run does what a user may do: a document changes (the passages that the next session is
given), facts are forgotten (Keeper).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct

from mindchat.answers import extract_short
from mindchat.errors import UsageError
from mindchat.lab.evals import metrics
from mindchat.lab.evals.arms import Arm
from mindchat.lab.evals.chain_records import (
    ChainRecord,
    Learned,
    Regime,
    TurnRecord,
    open_writer,
    prepare,
    read_chain_records,
)
from mindchat.lab.evals.chains import Chain, Need, Turn, bare, shared_needs
from mindchat.lab.evals.examples import CorpusSpec, Gold
from mindchat.lab.evals.metrics import normalise
from mindchat.lab.evals.records import Failure
from mindchat.lab.evals.runner import Deadline, MakeSession, rotated, run_turn
from mindchat.ports import NEVER, Cancel
from mindchat.trace import HopView, Trace, counts
from mindchat.values import Fact

_YEAR = re.compile(r"\b\d{4}\b")
VAGUE = ("country of citizenship", "country of origin", "country")
"""Relations whose gold comes in two forms (American, United States), so that a mismatch proves nothing."""


class Keeper(Protocol):
    """What is done to the memories of a run from outside; wiring has it."""

    def forget(self, memory: str, facts: Sequence[str]) -> int:
        """Forget facts of this memory (CorpusSpec.memory) by id, as `mindchat memory forget` does; how many were there."""
        ...

    def holds(self, memory: str, text: str) -> bool:
        """Whether a text stands anywhere in what this memory wrote; the documents' own texts do not count."""
        ...


class ChainAsked(Struct, frozen=True, tag_field="type", tag="ChainAsked"):
    """A chain is being asked."""

    arm: str
    chain: str
    done: int
    total: int


class ChainDone(Struct, frozen=True, tag_field="type", tag="ChainDone"):
    """A chain is on disk."""

    arm: str
    chain: str
    done: int
    total: int
    seconds: float = 0.0


def evaluate_chains(
    make_session: MakeSession,
    chains: Sequence[Chain],
    arms: Sequence[Arm],
    *,
    out: Path,
    keeper: Keeper | None = None,
    regime: Regime = "chain",
    notes: Mapping[str, Any] | None = None,
    resume: bool = False,
    shard: tuple[int, int] = (1, 1),
    timeout: float | None = None,
    cancel: Cancel = NEVER,
) -> Iterator[ChainAsked | ChainDone]:
    """Fill the folder, every chain under every arm. Sessions of one regime share memory by CorpusSpec.memory; before an
    edit's turn the passages themselves change. shard (i, n): only every n-th chain, from the i-th. `keeper` is needed
    by chains that forget or hold secrets.

    Raises as runner.evaluate does; regime "set" can be neither resumed nor sharded, because its memory lives in one
    process.
    """
    number, of = shard
    if not 1 <= number <= of:
        raise UsageError(f"--shard {number}/{of} does not exist.", "Count shards from 1: --shard 1/4 … 4/4.")
    if regime == "set" and (resume or of > 1):
        raise UsageError(
            "A run whose memory lasts over the whole set cannot be resumed or sharded.", "Start again with a new --out."
        )
    prepare(out, chains, arms, regime, notes=notes or {}, resume=resume, shared=of > 1)
    with open_writer(out, shard) as lines:
        have = {(record.arm, record.chain) for record in read_chain_records(out)}
        mine = chains[number - 1 :: of]
        pairs = [(arm, chain) for n, chain in enumerate(mine) for arm in rotated(arms, n)]
        if regime == "set":
            pairs = [(arm, chain) for arm in arms for chain in mine]
        done = sum((arm.name, chain.id) in have for arm, chain in pairs)
        for arm, chain in pairs:
            if (arm.name, chain.id) in have:
                continue
            yield ChainAsked(arm.name, chain.id, done, len(pairs))
            record = ask_chain(make_session, arm, chain, regime, keeper=keeper, timeout=timeout, cancel=cancel)
            lines.append(record)
            done += 1
            yield ChainDone(arm.name, chain.id, done, len(pairs), sum(turn.seconds for turn in record.turns))


# ── one chain
# ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def memory_key(arm: Arm, chain: Chain, regime: Regime) -> str:
    """The memory that a turn's session shares."""
    return {"turn": "", "chain": f"{arm.name}/{chain.id}", "set": arm.name}[regime]


class _State:
    """What is known of a chain's memory between its turns."""

    def __init__(self) -> None:
        self.taught: list[tuple[Fact, ...]] = []
        """Facts that each turn stored."""
        self.shown: set[str] = set()
        """Ids of passages that a turn was shown."""
        self.buried: list[Fact] = []
        """Facts that the user forgot."""

    @property
    def servable(self) -> list[Fact]:
        """What may have been served so far, forgotten facts aside."""
        gone = {fact.id for fact in self.buried}
        return [fact for facts in self.taught for fact in facts if fact.status == "active" and fact.id not in gone]


def ask_chain(
    make_session: MakeSession,
    arm: Arm,
    chain: Chain,
    regime: Regime,
    *,
    keeper: Keeper | None = None,
    timeout: float | None = None,
    cancel: Cancel = NEVER,
) -> ChainRecord:
    """All turns of a chain in order."""
    records: list[TurnRecord] = []
    state, key = _State(), memory_key(arm, chain, regime)
    for n, turn in enumerate(chain.turns):
        cancel.check()
        if chain.edit is not None and n == chain.edit.before:
            state.shown.discard(chain.edit.pid)
        forgotten = _forget(chain, n, state, key, keeper)
        corpus = CorpusSpec("own", chain.passages_at(n), memory=key)
        trace, failure, seconds = run_turn(make_session, arm.config, corpus, turn.question, Deadline(cancel, timeout))
        secrets = sum(keeper.holds(key, text) for text in chain.secrets) if keeper is not None else 0
        records.append(_record(chain, n, trace, failure, seconds, state, forgotten, secrets))
        state.taught.append(tuple(item.fact for item in trace.learned))
        state.shown |= {passage.id for passage in trace.passages}
    return ChainRecord(arm.name, chain.id, chain.kind, tuple(records))


def _forget(chain: Chain, n: int, state: _State, key: str, keeper: Keeper | None) -> int:
    """Do what the chain says the user does before turn n; how many facts went."""
    forget = chain.forget
    if forget is None or n != forget.before or keeper is None:
        return 0
    facts = state.taught[forget.turn]
    gone = keeper.forget(key, [fact.id for fact in facts])
    state.buried += facts
    return gone


def _record(
    chain: Chain,
    n: int,
    trace: Trace,
    failure: Failure | None,
    seconds: float,
    state: _State,
    forgotten: int,
    secrets: int,
) -> TurnRecord:
    turn = chain.turns[n]
    repeated = shared_needs(chain, n)
    served = [fact for hop in trace.hops for fact in hop.facts]
    stored = [need for need in repeated if any(states(fact, need) for fact in state.servable)]
    prediction, em, f1 = _scores(turn, trace, failure)
    refused: dict[str, int] = {}
    for reason, count in trace.refused:
        refused[reason] = refused.get(reason, 0) + count
    return TurnRecord(
        kind=turn.kind,
        question=turn.question,
        prediction=prediction,
        gold=turn.answers,
        em=em,
        f1=f1,
        needs=len(turn.needs),
        repeated=len(repeated),
        exposed=sum(need.pid in state.shown for need in repeated),
        stored=len(stored),
        hits=sum(any(states(fact, need) for fact in served) for need in stored),
        skips=sum(hop.skipped for hop in trace.hops),
        wrong_skips=sum(hop.skipped and not _useful(hop, turn.needs) for hop in trace.hops),
        stale=_stale(chain, n, trace),
        counts=counts(trace),
        seconds=round(seconds, 3),
        learned=tuple(_judged(item.fact, chain, n) for item in trace.learned if item.new),
        served=tuple(_judged(fact, chain, n) for fact in {fact.id: fact for fact in served}.values()),
        refused=refused,
        forgotten=forgotten,
        forgotten_served=sum(_says_again(fact, state.buried) for fact in served),
        secrets=secrets,
        failure=failure,
    )


def _says_again(fact: Fact, buried: Sequence[Fact]) -> bool:
    """Whether a served fact is one that was forgotten, under whatever id."""
    return any(
        fact.id == old.id
        or (
            fact.predicate == old.predicate
            and same(fact.subject, old.subject)
            and bare(fact.object) == bare(old.object)
        )
        for old in buried
    )


def _scores(turn: Turn, trace: Trace, failure: Failure | None) -> tuple[str, float, float]:
    if failure is not None or trace.answer is None:
        return "", 0.0, 0.0
    prediction = trace.answer.short or extract_short(trace.answer.text)
    found = metrics.score(turn.dataset, prediction, Gold(turn.answers), abstained=trace.answer.abstained)
    return prediction, found["em"], found["f1"]


# ── judging memory
# ───────────────────────────────────────────────────────────────────────────────────────────────────────


def same(a: str, b: str) -> bool:
    """Whether two names may mean the same: equal, or one stands in the other as whole words ("Lang", "Fritz Lang")."""
    left, right = bare(a), bare(b)
    return bool(left and right) and (f" {left} " in f" {right} " or f" {right} " in f" {left} ")


def same_value(a: str, b: str) -> bool:
    """Whether two objects may mean the same: as names, or as dates whose words stand in another order."""
    left, right = set(normalise(a).split()), set(normalise(b).split())
    dates = _YEAR.search(a) is not None and _YEAR.search(b) is not None
    return same(a, b) or (dates and (left <= right or right <= left))


def states(fact: Fact, need: Need) -> bool:
    """Whether a stored fact is this gold fact: its subject (for a MuSiQue step: the step's words hold it) and its
    object.
    """
    return same(fact.subject, need.subject) and same_value(fact.object, need.object)


def _useful(hop: HopView, needs: Sequence[Need]) -> bool:
    """Whether what stood in for the search serves the turn: a served fact is a needed one, or a needed passage stands
    in.
    """
    return any(states(fact, need) for fact in hop.facts for need in needs) or any(
        p.id == need.pid for p in hop.passages for need in needs
    )


def _stale(chain: Chain, n: int, trace: Trace) -> int:
    """Facts and stand-in passages from before the edit that are served after it."""
    edit = chain.edit
    if edit is None or n < edit.before:
        return 0
    changed = [
        need
        for turn in chain.turns[: edit.before]
        for need in turn.needs
        if need.pid == edit.pid and need.object == edit.old
    ]
    facts = sum(any(states(fact, need) for need in changed) for hop in trace.hops for fact in hop.facts)
    old = normalise(edit.old)
    passages = sum(
        p.id == edit.pid and f" {old} " in f" {normalise(p.text)} "
        for hop in trace.hops
        if hop.skipped
        for p in hop.passages
    )
    return facts + passages


def _judged(fact: Fact, chain: Chain, n: int) -> Learned:
    """Right if gold says so as the documents stand; wrong if gold gives that subject and relation another object; else
    unknown.

    Countries come in two forms (American, United States): of those a mismatch proves nothing; nor does it where only
    the bracket tells two things of one name apart ("Forbidden Ground", "Forbidden Ground (2013 film)").
    """
    after = chain.edit is not None and n >= chain.edit.before
    needs = {need.key: need for turn in chain.turns for need in turn.needs}
    gold = [
        need
        for need in needs.values()
        if not (after and chain.edit and need.pid == chain.edit.pid and need.object == chain.edit.old)
    ]
    if chain.edit is not None and not after:
        gold = [need for need in gold if not (need.pid == chain.edit.pid and need.object == chain.edit.new)]
    about = [
        need
        for need in gold
        if same(fact.subject, need.subject) and same(fact.predicate.replace("_", " "), need.predicate)
    ]
    judged: Literal["right", "wrong", "unknown"] = "unknown"
    if any(states(fact, need) for need in about or gold):
        judged = "right"
    elif any(need.predicate not in VAGUE and normalise(need.subject) == normalise(fact.subject) for need in about):
        judged = "wrong"
    return Learned(fact.subject, fact.predicate, fact.object, fact.confidence, judged, fact.status)
