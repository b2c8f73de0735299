"""The runner: every arm on the same questions, one record each, continued after a kill.

Owns: evaluate and its events, per-question deadlines, which errors end a run. Does not own: how a session is built
(MakeSession is injected), what is asked (planning.py), scoring (metrics.py, behaviour.py), files (records.py), tables
(report.py). A question's own failure is recorded and counts as wrong, visibly; what would fail every question (a
missing model, a bad setting) ends the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from mindchat.answers import extract_short
from mindchat.config import Config
from mindchat.errors import (
    CapabilityError,
    ConfigError,
    DeadlineError,
    Interrupted,
    MindChatError,
    ResourceError,
    UsageError,
)
from mindchat.events import Event, ModelLoading
from mindchat.lab.evals import behaviour, joint, metrics
from mindchat.lab.evals.arms import Arm
from mindchat.lab.evals.examples import CorpusSpec, Item, corpus_for
from mindchat.lab.evals.planning import Plan
from mindchat.lab.evals.records import Failure, Record, open_writer, prepare, read_records
from mindchat.ports import NEVER, Cancel
from mindchat.trace import Trace, fold, report


class Askable(Protocol):
    """The part of a session that the runner uses."""

    def ask(self, text: str, *, cancel: Cancel = NEVER) -> Iterator[Event]:
        """One turn, ending in AnswerReady, TurnFailed or TurnCancelled."""
        ...


MakeSession = Callable[[Config, CorpusSpec], Askable]
"""A fresh session (no history, nothing written to chats.db, memory volatile) over that corpus. May be called thousands
of times: models and indexes of open corpora are kept between calls, but the model's prefix cache starts cold, or an arm
would live off the prompts of the arm before it. Passages keep `Source.pid` as their id."""


class Planned(Struct, frozen=True, tag_field="type", tag="Planned"):
    """The run begins; `done` of `total` records of this shard are there already."""

    total: int
    done: int
    arms: tuple[str, ...]
    notes: tuple[str, ...] = ()


class Asking(Struct, frozen=True, tag_field="type", tag="Asking"):
    """A question is being answered."""

    arm: str
    id: str
    question: str


class Scored(Struct, frozen=True, tag_field="type", tag="Scored"):
    """A record is on disk."""

    arm: str
    id: str
    done: int
    total: int
    scores: dict[str, float]
    failure: str
    seconds: float
    eta_seconds: float
    """Estimate for the rest of this shard from the mean of what this process has done."""


class Finished(Struct, frozen=True, tag_field="type", tag="Finished"):
    """All records of this shard are there."""

    total: int
    failures: int


EvalEvent = Planned | Asking | Scored | Finished


# ── running
# ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Deadline(Cancel):
    """A question's own time limit under the user's cancel."""

    def __init__(self, outer: Cancel, timeout: float | None) -> None:
        super().__init__(timeout)
        self.outer = outer

    @property
    def cancelled(self) -> bool:
        """Whether the user or the clock says so."""
        return self.outer.cancelled or super().cancelled

    def check(self) -> None:
        """Raise Interrupted for the user, DeadlineError for the clock."""
        self.outer.check()
        super().check()


def evaluate(
    todo: Plan,
    make_session: MakeSession,
    *,
    out: Path,
    resume: bool = False,
    shard: tuple[int, int] = (1, 1),
    timeout: float | None = None,
    cancel: Cancel = NEVER,
) -> Iterator[EvalEvent]:
    """Fill the folder: questions outermost, so that an unfinished run is paired as far as it goes (models outermost of
    all, to load each once).

    shard (i, n): only every n-th question, from the i-th; several processes may fill one folder. timeout: seconds a
    question. Raises what would fail every question, and Interrupted when cancelled; what is recorded stays, and
    `resume` goes on from it.
    """
    number, of = shard
    if not 1 <= number <= of:
        raise UsageError(f"--shard {number}/{of} does not exist.", "Count shards from 1: --shard 1/4 … 4/4.")
    prepare(out, todo.run, resume=resume, shared=of > 1)
    with open_writer(out, shard) as writer:
        have = {record.key for record in read_records(out)}
        pairs = _pairs(todo, todo.items[number - 1 :: of])
        left = [(arm, item) for arm, item in pairs if (arm.name, item.example.dataset, item.example.id) not in have]
        total, failures, spent = len(pairs), 0, 0.0
        yield Planned(total, total - len(left), tuple(arm.name for arm in todo.arms), todo.run.notes)
        for asked, (arm, item) in enumerate(left, 1):
            cancel.check()
            yield Asking(arm.name, item.example.id, item.example.question)
            started = time.monotonic()
            record = ask_one(
                make_session, arm, item, corpus_for(item, todo.context, todo.open_corpus), Deadline(cancel, timeout)
            )
            writer.append(record)
            seconds = time.monotonic() - started
            spent += seconds
            failures += record.failure is not None
            done = total - len(left) + asked
            failure = record.failure.message if record.failure else ""
            yield Scored(
                arm.name,
                item.example.id,
                done,
                total,
                record.scores,
                failure,
                seconds,
                spent / asked * (len(left) - asked),
            )
        yield Finished(total, failures)


def _pairs(todo: Plan, items: Sequence[Item]) -> list[tuple[Arm, Item]]:
    """Models outermost, then questions; each question begins with the next arm, so that a machine that slows down slows
    all arms alike.
    """
    models = dict.fromkeys((arm.config.model, arm.config.server) for arm in todo.arms)
    pairs = []
    for model in models:
        arms = [arm for arm in todo.arms if (arm.config.model, arm.config.server) == model]
        for n, item in enumerate(items):
            pairs += [(arm, item) for arm in rotated(arms, n)]
    return pairs


def rotated(arms: Sequence[Arm], n: int) -> list[Arm]:
    """The arms in turn, starting with the n-th."""
    first = n % len(arms)
    return [*arms[first:], *arms[:first]]


FATAL = (ConfigError, UsageError, ResourceError, CapabilityError)
"""Errors that no other question would escape."""


def run_turn(
    make_session: MakeSession,
    config: Config,
    corpus: CorpusSpec,
    question: str,
    cancel: Cancel,
    enough: Callable[[Event], bool] = lambda event: False,
) -> tuple[Trace, Failure | None, float]:
    """One question in a fresh session: its trace, why it failed if it did, and seconds since the model was there.

    `enough` sees every event and ends the turn there by returning true, which is no failure. Raises FATAL errors and
    Interrupted.
    """
    trace, failure, started = Trace(), None, time.monotonic()
    try:
        for event in make_session(config, corpus).ask(question, cancel=cancel):
            trace = fold(trace, event)
            if isinstance(event, ModelLoading):  # the first question must not pay for what serves them all
                started = time.monotonic()
            if enough(event):
                return trace, None, time.monotonic() - started
    except (*FATAL, Interrupted):
        raise
    except MindChatError as error:
        failure = Failure(error.code, error.message)
    if trace.answer is None and isinstance(cancel, Deadline):
        cancel.outer.check()
    if trace.failed is not None:
        failed = trace.failed
        if failed.exit_code in (2, 3) or failed.code == CapabilityError.code:
            raise _again(failed.code, failed.message, failed.hint, failed.exit_code)
        failure = Failure(failed.code, failed.message)
    elif trace.state == "cancelled":
        failure = Failure(DeadlineError.code, f"The question took longer than {cancel.timeout or 0:g} s.")
    elif failure is None and trace.answer is None:
        failure = Failure("no_end", "The turn ended without an answer.")
    return trace, failure, time.monotonic() - started


def _again(code: str, message: str, hint: str, exit_code: int) -> MindChatError:
    """The error that a session turned into TurnFailed, raised once more because it would fail every question."""
    kinds: list[type[MindChatError]] = [CapabilityError, ConfigError, UsageError, *ResourceError.__subclasses__()]
    kind = next(
        (kind for kind in kinds if kind.code == code),
        ResourceError if exit_code == ResourceError.exit_code else ConfigError,
    )
    return kind(message, hint)


def ask_one(make_session: MakeSession, arm: Arm, item: Item, corpus: CorpusSpec, cancel: Cancel) -> Record:
    """Ask, fold, score. The session is given the question and the corpus, nothing else of the item."""
    example, gold = item.example, item.gold
    trace, failure, seconds = run_turn(make_session, arm.config, corpus, example.question, cancel)
    shown = report(trace)
    shown = shown.get("partial", shown)
    prediction = str(shown["short"]) or extract_short(str(shown["answer"])) if failure is None else ""
    reply = f"{shown['reasoning']} {shown['answer']}"
    scores = (
        metrics.score(example.dataset, prediction, gold, abstained=bool(shown["abstained"]), reply=reply)
        if failure is None
        else {}
    )
    timing = {key: round(float(value), 4) for key, value in {**shown["timing"], "wall": seconds}.items()}
    return Record(
        arm=arm.name,
        dataset=example.dataset,
        id=example.id,
        type=gold.type,
        question=example.question,
        prediction=prediction,
        answer=str(shown["answer"])[:2000],
        gold=gold.answers,
        scores=scores,
        measures={
            **behaviour.judge(trace, example, gold),
            **(joint.judge(trace, prediction, example, gold) if failure is None else {}),
        },
        counts=shown["counts"],
        timing=timing,
        confidence=shown["confidence"],
        abstained=bool(shown["abstained"]),
        stop=str(shown["stop"]),
        warm=trace.calls[0].prompt_tokens_cached if trace.calls else 0,
        hops=tuple(_hop(hop) for hop in shown["hops"]),
        failure=failure,
    )


def _hop(hop: Mapping[str, Any]) -> dict[str, Any]:
    """A hop without what the counts already say."""
    return {
        key: hop[key]
        for key in ("n", "subquery", "by", "trigger", "passages", "memory", "skipped", "repeated")
        if key in hop
    }


def encode(event: EvalEvent) -> bytes:
    """One line of JSON with "type"."""
    return msgspec.json.encode(event)
