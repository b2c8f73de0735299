"""Asking chains: every arm, every chain, turn by turn, in one of three regimes of memory that are never mixed.

Owns: ChainRecord, evaluate_chains, what one turn did with memory. Does not own: chains (chains.py), tables (chain_report.py).
A chain is the unit that is recorded and resumed: memory lives in RAM, so a chain that was cut is asked again from its start.
Every turn is a fresh session: what carries over is memory, not the conversation.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from filelock import FileLock, Timeout
from msgspec import Struct

from mindchat.answers import extract_short
from mindchat.errors import IndexLockedError, UsageError
from mindchat.evals import metrics
from mindchat.evals.arms import Arm, decisive
from mindchat.evals.chains import Chain, Need, Turn, bare, describe, shared_needs
from mindchat.evals.examples import CorpusSpec, Gold
from mindchat.evals.metrics import normalise
from mindchat.evals.planning import machine, versions
from mindchat.evals.records import Failure, drop_torn_line, pretty, write_atomically
from mindchat.evals.runner import Deadline, MakeSession, rotated, run_turn
from mindchat.ports import NEVER, Cancel
from mindchat.trace import HopView, Trace, counts
from mindchat.values import Fact

Regime = Literal["turn", "chain", "set"]
"""What memory outlives: nothing but the turn (what MIND could have measured), the chain, or the whole set in the order of the chains."""

RECORDS, RUN = "chains.jsonl", "chains.json"


class Learned(Struct, frozen=True):
    """A stored fact and its judgement against the chain's gold."""

    subject: str
    predicate: str
    object: str
    confidence: float
    judged: Literal["right", "wrong", "unknown"]


class TurnRecord(Struct, frozen=True):
    """One turn under one arm."""

    kind: str
    question: str
    prediction: str
    gold: tuple[str, ...]
    em: float
    f1: float
    needs: int
    repeated: int
    """Needs that an earlier turn had: what a perfect memory could serve."""
    exposed: int
    """Repeated needs whose passage an earlier turn was shown."""
    stored: int
    """Repeated needs that memory had learned right before this turn."""
    hits: int
    """Stored needs that memory served in this turn."""
    skips: int
    wrong_skips: int
    """Skipped searches for which no served fact is a need of this turn."""
    stale: int
    """Served facts or stand-in passages that say what the document no longer says (must be 0)."""
    counts: dict[str, Any]
    seconds: float
    learned: tuple[Learned, ...] = ()
    failure: Failure | None = None


class ChainRecord(Struct, frozen=True):
    """One chain under one arm."""

    arm: str
    chain: str
    kind: str
    turns: tuple[TurnRecord, ...]


class ChainDone(Struct, frozen=True, tag_field="type", tag="ChainDone"):
    """A chain is on disk."""

    arm: str
    chain: str
    done: int
    total: int


def evaluate_chains(
    make_session: MakeSession,
    chains: Sequence[Chain],
    arms: Sequence[Arm],
    *,
    out: Path,
    regime: Regime = "chain",
    resume: bool = False,
    timeout: float | None = None,
    cancel: Cancel = NEVER,
) -> Iterator[ChainDone]:
    """Fill out/chains.jsonl. Sessions of one regime share memory by CorpusSpec.memory; before an edit's turn the passages themselves change.

    Raises as runner.evaluate does; regime "set" cannot be resumed, because its memory is gone.
    """
    if resume and regime == "set":
        raise UsageError("A run whose memory lasts over the whole set cannot be resumed.", "Start again with a new --out.")
    _prepare(out, chains, arms, regime, resume)
    with _alone(out):
        drop_torn_line(out / RECORDS)
        have = {(record.arm, record.chain) for record in read_chain_records(out)}
        pairs = [(arm, chain) for n, chain in enumerate(chains) for arm in rotated(arms, n)]
        if regime == "set":
            pairs = [(arm, chain) for arm in arms for chain in chains]
        done = sum((arm.name, chain.id) in have for arm, chain in pairs)
        with (out / RECORDS).open("ab") as file:
            for arm, chain in pairs:
                if (arm.name, chain.id) in have:
                    continue
                record = ask_chain(make_session, arm, chain, regime, timeout=timeout, cancel=cancel)
                file.write(msgspec.json.encode(record) + b"\n")
                file.flush()
                os.fsync(file.fileno())
                done += 1
                yield ChainDone(arm.name, chain.id, done, len(pairs))


@contextlib.contextmanager
def _alone(out: Path) -> Iterator[None]:
    lock = FileLock(out / ".chains.lock")
    try:
        held = lock.acquire(timeout=0)
    except Timeout as error:
        raise IndexLockedError(f"Another process is filling {out / RECORDS}.", "Wait for it, or give another --out.") from error
    with held:
        yield


def _prepare(out: Path, chains: Sequence[Chain], arms: Sequence[Arm], regime: Regime, resume: bool) -> None:
    described = {
        "regime": regime,
        "chains": [chain.id for chain in chains],
        "offer": dict(describe(chains)),
        "arms": {arm.name: decisive(arm.config) for arm in arms},
        "versions": versions(),
        "machine": machine(),
    }
    out.mkdir(parents=True, exist_ok=True)
    file = out / RUN
    if file.is_file():
        old = msgspec.json.decode(file.read_bytes())
        if not resume:
            raise UsageError(f"{out} already holds a run over chains.", "Continue it with --resume, or give a new --out.")
        for key in ("regime", "chains", "arms"):
            if old[key] != msgspec.json.decode(msgspec.json.encode(described[key])):
                raise UsageError(f"The folder holds a run over chains with other {key}.", "Resume with the same command, or give a new --out.")
        return
    write_atomically(file, pretty(described))


def read_chain_records(out: Path) -> list[ChainRecord]:
    """All chains that were finished, sorted by chain and arm. A torn last line is dropped."""
    path = out / RECORDS
    body = path.read_bytes() if path.exists() else b""
    lines = body[: body.rfind(b"\n") + 1].splitlines()
    try:
        records = [msgspec.json.decode(line, type=ChainRecord) for line in lines]
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} holds a line that is no record: {error}.", "Remove it; --resume asks its chain again.") from error
    return sorted(records, key=lambda record: (record.chain, record.arm))


# ── one chain ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def memory_key(arm: Arm, chain: Chain, regime: Regime) -> str:
    """The memory that a turn's session shares."""
    return {"turn": "", "chain": f"{arm.name}/{chain.id}", "set": arm.name}[regime]


def ask_chain(
    make_session: MakeSession, arm: Arm, chain: Chain, regime: Regime, *, timeout: float | None = None, cancel: Cancel = NEVER
) -> ChainRecord:
    """All turns of a chain in order."""
    records: list[TurnRecord] = []
    learned: list[Fact] = []
    shown: set[str] = set()
    for n, turn in enumerate(chain.turns):
        cancel.check()
        if chain.edit is not None and n == chain.edit.before:
            shown.discard(chain.edit.pid)
        corpus = CorpusSpec("own", chain.passages_at(n), memory=memory_key(arm, chain, regime))
        trace, failure, seconds = run_turn(make_session, arm.config, corpus, turn.question, Deadline(cancel, timeout))
        records.append(_record(chain, n, trace, failure, seconds, learned, shown))
        learned += [item.fact for item in trace.learned]
        shown |= {passage.id for passage in trace.passages}
    return ChainRecord(arm.name, chain.id, chain.kind, tuple(records))


def _record(chain: Chain, n: int, trace: Trace, failure: Failure | None, seconds: float, learned: Sequence[Fact], shown: set[str]) -> TurnRecord:
    turn = chain.turns[n]
    repeated = shared_needs(chain, n)
    served = [fact for hop in trace.hops for fact in hop.facts]
    stored = [need for need in repeated if any(states(fact, need) for fact in learned)]
    scores = _scores(turn, trace, failure)
    return TurnRecord(
        kind=turn.kind,
        question=turn.question,
        prediction=scores[0],
        gold=turn.answers,
        em=scores[1],
        f1=scores[2],
        needs=len(turn.needs),
        repeated=len(repeated),
        exposed=sum(need.pid in shown for need in repeated),
        stored=len(stored),
        hits=sum(any(states(fact, need) for fact in served) for need in stored),
        skips=sum(hop.skipped for hop in trace.hops),
        wrong_skips=sum(hop.skipped and not _useful(hop, turn.needs) for hop in trace.hops),
        stale=_stale(chain, n, trace),
        counts=counts(trace),
        seconds=round(seconds, 3),
        learned=tuple(_judged(item.fact, chain, n) for item in trace.learned),
        failure=failure,
    )


def _scores(turn: Turn, trace: Trace, failure: Failure | None) -> tuple[str, float, float]:
    if failure is not None or trace.answer is None:
        return "", 0.0, 0.0
    prediction = trace.answer.short or extract_short(trace.answer.text)
    found = metrics.score(turn.dataset, prediction, Gold(turn.answers), abstained=trace.answer.abstained)
    return prediction, found["em"], found["f1"]


# ── judging memory ───────────────────────────────────────────────────────────────────────────────────────────────────────


def same(a: str, b: str) -> bool:
    """Whether two names may mean the same: equal, or one stands in the other as whole words ("Lang", "Fritz Lang")."""
    left, right = bare(a), bare(b)
    return bool(left and right) and (f" {left} " in f" {right} " or f" {right} " in f" {left} ")


def states(fact: Fact, need: Need) -> bool:
    """Whether a stored fact is this gold fact: its subject (for a MuSiQue step: the step's words hold it) and its object."""
    return same(fact.subject, need.subject) and same(fact.object, need.object)


def _useful(hop: HopView, needs: Sequence[Need]) -> bool:
    """Whether what stood in for the search serves the turn: a served fact is a needed one, or a needed passage stands in."""
    return any(states(fact, need) for fact in hop.facts for need in needs) or any(p.id == need.pid for p in hop.passages for need in needs)


def _stale(chain: Chain, n: int, trace: Trace) -> int:
    """Facts and stand-in passages from before the edit that are served after it."""
    edit = chain.edit
    if edit is None or n < edit.before:
        return 0
    changed = [need for turn in chain.turns[: edit.before] for need in turn.needs if need.pid == edit.pid and need.object == edit.old]
    facts = sum(any(states(fact, need) for need in changed) for hop in trace.hops for fact in hop.facts)
    old = normalise(edit.old)
    passages = sum(p.id == edit.pid and f" {old} " in f" {normalise(p.text)} " for hop in trace.hops if hop.skipped for p in hop.passages)
    return facts + passages


def _judged(fact: Fact, chain: Chain, n: int) -> Learned:
    """Right if it is a gold fact of the chain as the documents stand; wrong if gold gives that subject and relation another object."""
    after = chain.edit is not None and n >= chain.edit.before
    needs = {need.key: need for turn in chain.turns for need in turn.needs}
    gold = [need for need in needs.values() if not (after and chain.edit and need.pid == chain.edit.pid and need.object == chain.edit.old)]
    about = [need for need in gold if same(fact.subject, need.subject) and same(fact.predicate.replace("_", " "), need.predicate)]
    judged: Literal["right", "wrong", "unknown"] = "unknown"
    if any(states(fact, need) for need in gold):
        judged = "right"
    elif about:
        judged = "wrong"
    return Learned(fact.subject, fact.predicate, fact.object, fact.confidence, judged)


def as_lines(records: Sequence[ChainRecord]) -> Iterator[Mapping[str, Any]]:
    """Every stored fact with its judgement, for a person to read."""
    for record in records:
        for turn in record.turns:
            for fact in turn.learned:
                yield {"arm": record.arm, "chain": record.chain, "question": turn.question, **msgspec.to_builtins(fact)}
