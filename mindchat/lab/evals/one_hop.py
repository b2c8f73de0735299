"""One sentence for one gold fact: the material for asking whether the policies' signals know a wrong sentence.

Owns: single hops with a checkable answer, the loop's own first claiming sentence for each (without documents, with the
passage that states the fact, or with what a search finds), its signals and whether it states the gold. Does not own:
the area under the curve (detect.py), files (records.py). A hop is asked as a turn of the shipped engine and stopped at
the sentence's verdict, so prompt, words, θ and factors are those of `mind`.
Source: the gold triples of 2WikiMultihopQA, the steps of MuSiQue; the signals are MIND Eq 1-3, DRAGIN's S, AdaRAGUE's
sequence entropy.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from mindchat.answers import says_unknown
from mindchat.config import Config, change
from mindchat.errors import UsageError
from mindchat.events import Event, SentenceJudged, TokenDrafted
from mindchat.lab.evals.arms import decisive
from mindchat.lab.evals.chains import hops
from mindchat.lab.evals.datasets import sample
from mindchat.lab.evals.examples import CorpusSpec, Item, Source
from mindchat.lab.evals.metrics import contains, normalise
from mindchat.lab.evals.planning import Plan
from mindchat.lab.evals.records import ArmEntry, Record, Run, open_writer, prepare, read_records
from mindchat.lab.evals.runner import Asking, Deadline, EvalEvent, Finished, MakeSession, Planned, Scored, run_turn
from mindchat.ports import NEVER, Cancel
from mindchat.values import Token, Verdict, WordScore

Given = Literal["none", "oracle", "retrieved"]
"""What the model may read before it writes: nothing, the passage that states the fact, or what one search with the
question finds.
"""
GIVEN: tuple[Given, ...] = ("none", "oracle", "retrieved")
VAGUE = ("country of citizenship", "country of origin", "country")
"""Relations whose gold comes in two forms (American, United States), so that its absence proves nothing."""
_REFUSAL = re.compile(
    r"\b(?:unknown|no information|not (?:been"
    r" )?(?:known|specified|mentioned|stated|given|provided|available|recorded|clear)|"
    r"(?:do|does)(?: not|n[’']t) (?:know|say|mention|state|specify|provide)|can(?:not|[’']t) be"
    r" (?:determined|found|answered))\b",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\b\d{4}\b")


class OneHop(Struct, frozen=True):
    """A question with one gold fact as its answer."""

    id: str
    dataset: str
    question: str
    answer: str
    relation: str
    passage: Source
    """States the answer word for word."""
    item: Item


def one_hops(items: Sequence[Item], seed: int) -> list[OneHop]:
    """At most one hop of each question, each fact once, in seeded order; only facts that a passage states and the
    question does not give away.

    Raises UsageError if the items annotate no single hops.
    """
    found: list[OneHop] = []
    known: set[tuple[str, str, str]] = set()
    for item in sample(items, None, seed):
        passages = {source.pid: source for source in item.example.context}
        for number, (question, need) in enumerate(hops(item), 1):
            given = contains(question, need.object)
            if (
                need.pid not in passages
                or need.predicate in VAGUE
                or given
                or not normalise(need.object)
                or need.key in known
            ):
                continue
            known.add(need.key)
            passage = passages[need.pid]
            found.append(
                OneHop(
                    f"{item.example.id}#{number}",
                    item.example.dataset,
                    question,
                    need.object,
                    need.predicate,
                    passage,
                    item,
                )
            )
            break
    if not found:
        raise UsageError(
            "No question of these files names a single fact and the passage that states it.",
            "Use 2WikiMultihopQA or MuSiQue.",
        )
    return found


def states(sentence: str, answer: str) -> bool:
    """Whether a sentence says the gold answer: its words in a row; of a date, all of them in any order ("March 5,
    1900"); of a name with a title or a region after a comma, what stands before it ("Robert Petre, 8th Baron Petre").
    """
    if contains(sentence, answer):
        return True
    if _YEAR.search(answer):
        return set(normalise(answer).split()) <= set(normalise(sentence).split())
    name, comma, _ = answer.partition(",")
    return bool(comma) and contains(sentence, name) == 1.0


def refuses(sentence: str) -> bool:
    """Whether a sentence says that it does not say ("The father of X is not specified.")."""
    return bool(sentence) and (says_unknown(sentence) or _REFUSAL.search(sentence) is not None)


# ── one sentence
# ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def claims(words: Sequence[WordScore]) -> list[WordScore]:
    """The words of a sentence that say something the question does not."""
    return [word for word in words if word.content and not word.anchor]


def signals(verdict: Verdict, tokens: Sequence[Token]) -> dict[str, float]:
    """Every candidate for "this sentence is wrong", higher meaning less sure; all in nats, but for triggered (0 or 1).

    max_s: RIND's score. margin: max_s - θ. max_s_raw: with attention as measured. max_entropy, mean_entropy: over
    content words (the maximum without the question's own). sequence_entropy, surprise: mean entropy and mean negative
    log-probability over all tokens.
    """
    said, content = claims(verdict.words), [word for word in verdict.words if word.content]
    entropies = [token.entropy for token in tokens if token.entropy is not None and token.text.strip()]
    surprises = [-token.logprob for token in tokens if token.logprob is not None and token.text.strip()]
    top = max((word.score for word in said), default=0.0)
    threshold = verdict.threshold if verdict.threshold is not None else math.inf
    return {
        "max_s": top,
        "margin": top - threshold,
        "triggered": float(top > threshold),
        "max_s_raw": max(((word.entropy or 0.0) * (word.attention_raw or 0.0) for word in said), default=0.0),
        "max_entropy": max((word.entropy or 0.0 for word in said), default=0.0),
        "mean_entropy": _mean([word.entropy or 0.0 for word in content]),
        "sequence_entropy": _mean(entropies),
        "surprise": _mean(surprises),
        "words": float(len(verdict.words)),
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


class FirstClaim:
    """Listens to a turn until a sentence that claims something has been judged."""

    def __init__(self) -> None:
        self.sentence = ""
        self.verdict: Verdict | None = None
        self.tokens: list[Token] = []
        """Of the sentence at hand."""

    def __call__(self, event: Event) -> bool:
        """Take in one event; whether that was it."""
        if isinstance(event, TokenDrafted) and event.channel == "reasoning":
            self.tokens.append(event.token)
        elif isinstance(event, SentenceJudged):
            if claims(event.verdict.words):
                self.sentence, self.verdict = event.sentence.strip(), event.verdict
                return True
            self.tokens = []
        return False


def ask_one(
    make_session: MakeSession, config: Config, hop: OneHop, given: Given, open_corpus: str, cancel: Cancel
) -> Record:
    """One sentence, scored: `right` if it states the gold, `refused` if it says that it does not know, `silent` if no
    sentence claims anything.

    The session is given the question and the corpus, nothing else of the hop.
    """
    said = FirstClaim()
    _, failure, seconds = run_turn(make_session, config, _corpus(hop, given, open_corpus), hop.question, cancel, said)
    measured: Mapping[str, float] = {} if said.verdict is None else signals(said.verdict, said.tokens)
    trigger = said.verdict.trigger if said.verdict is not None else None
    scores = {
        "right": float(states(said.sentence, hop.answer)),
        "refused": float(refuses(said.sentence)),
        "silent": float(not said.sentence),
        "copied": float(trigger is not None and not trigger.stands),
    }
    return Record(
        arm=arm_name(given),
        dataset=f"{hop.dataset} one-hop",
        id=hop.id,
        type=hop.relation,
        question=hop.question,
        prediction=said.sentence,
        gold=(hop.answer,),
        scores={} if failure else scores,
        measures={key: round(value, 6) for key, value in measured.items() if math.isfinite(value)},
        timing={"wall": round(seconds, 4)},
        failure=failure,
    )


def _corpus(hop: OneHop, given: Given, open_corpus: str) -> CorpusSpec:
    if given == "none":
        return CorpusSpec("none")
    if given == "oracle":
        return CorpusSpec("given", (hop.passage,))
    return CorpusSpec("open", path=open_corpus) if open_corpus else CorpusSpec("own", hop.item.example.context)


# ── a run
# ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def arm_name(given: Given) -> str:
    """How records and tables name a condition."""
    return f"mind context={given}"


def settings_for(base: Config, given: Given, seed: int) -> Config:
    """The shipped engine's first sentences: no hop is made, memory is off, only `retrieved` searches, and before the
    first word.
    """
    wanted = {
        "engine.policy": "mind",
        "engine.seed": str(seed),
        "engine.max_hops": "0",
        "engine.max_sentences": "3",
        "memory.mode": "off",
    }
    for key, value in {**wanted, "rind.first": "true" if given == "retrieved" else "false"}.items():
        base = change(base, key, value)
    return base


def described(plan: Plan, base: Config, given: Sequence[Given], n: int) -> Run:
    """run.json of these conditions, from the description of an ordinary run over the same files."""
    arms = tuple(ArmEntry(arm_name(one), decisive(settings_for(base, one, plan.seed))) for one in given)
    return replace(
        plan.run,
        n=n,
        arms=arms,
        context=",".join(given),
        notes=("Single hops: one sentence each, stopped at its verdict.",),
    )


def evaluate(
    plan: Plan,
    base: Config,
    make_session: MakeSession,
    *,
    given: Sequence[Given],
    n: int,
    out: Path,
    resume: bool = False,
    shard: tuple[int, int] = (1, 1),
    timeout: float | None = None,
    cancel: Cancel = NEVER,
) -> Iterator[EvalEvent]:
    """Fill the folder, hop by hop under every condition; resumed and sharded as runner.evaluate is. `plan.items` must
    be all of the files' items.

    Raises what would fail every question, and Interrupted when cancelled.
    """
    number, of = shard
    if not 1 <= number <= of:
        raise UsageError(f"--shard {number}/{of} does not exist.", "Count shards from 1: --shard 1/4 … 4/4.")
    tasks = one_hops(plan.items, plan.seed)[:n]
    prepare(out, described(plan, base, given, n), resume=resume, shared=of > 1)
    configs: dict[Given, Any] = {one: settings_for(base, one, plan.seed) for one in given}
    with open_writer(out, shard) as writer:
        have = {record.key for record in read_records(out)}
        pairs = [(hop, one) for hop in tasks[number - 1 :: of] for one in given]
        left = [(hop, one) for hop, one in pairs if (arm_name(one), f"{hop.dataset} one-hop", hop.id) not in have]
        failures, spent = 0, 0.0
        yield Planned(len(pairs), len(pairs) - len(left), tuple(map(arm_name, given)))
        for asked, (hop, one) in enumerate(left, 1):
            cancel.check()
            yield Asking(arm_name(one), hop.id, hop.question)
            started = time.monotonic()
            record = ask_one(make_session, configs[one], hop, one, plan.open_corpus, Deadline(cancel, timeout))
            writer.append(record)
            spent += (seconds := time.monotonic() - started)
            failures += record.failure is not None
            failure = record.failure.message if record.failure else ""
            done = len(pairs) - len(left) + asked
            yield Scored(
                record.arm,
                hop.id,
                done,
                len(pairs),
                record.scores,
                failure,
                seconds,
                spent / asked * (len(left) - asked),
            )
        yield Finished(len(pairs), failures)
