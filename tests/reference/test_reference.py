"""Anchors of the harness: what must score 1, 0, chance, and more than something else."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mindchat import events as ev
from mindchat.config import Config
from mindchat.lab.evals import report
from mindchat.lab.evals.datasets import load
from mindchat.lab.evals.examples import CorpusSpec, Item
from mindchat.lab.evals.planning import plan
from mindchat.lab.evals.runner import evaluate
from mindchat.lab.evals.summary import DatasetSummary
from mindchat.ports import NEVER, Cancel
from mindchat.values import Answer, Passage, Query

pytestmark = pytest.mark.slow

N = 60
NAMES = ["Adams", "Baker", "Clark", "Davis", "Evans", "Frank", "Green", "Hughes", "Irwin", "Jones"]


def rows() -> Iterator[dict[str, Any]]:
    """Two-hop questions: who founded the club of a player; distractors share the question's words."""
    pick = random.Random(0)
    for n in range(N):
        club, founder, polar = f"Club {n}", f"{pick.choice(NAMES)} {n}", n % 6 == 0
        hop_one = {
            "title": f"Player {n}",
            "text": f"Player {n} played for {club} all his life.",
            "is_supporting": True,
            "pid": f"a{n}",
        }
        hop_two = {
            "title": club,
            "text": f"{club} was founded by {founder} in 1900.",
            "is_supporting": True,
            "pid": f"b{n}",
        }
        words = "the lists that say who founded what" if n % 2 else "lists"
        noise = [
            {
                "title": f"Founder list {n}{k}",
                "text": f"Player {n + k + 1} is in {words} .",
                "is_supporting": False,
                "pid": f"c{n}-{k}",
            }
            for k in range(6)
        ]
        yield {
            "id": f"r{n}",
            "question": (
                f"Was the club of Player {n} founded in 1900?"
                if polar
                else f"Who founded the club that Player {n} played for?"
            ),
            "answers": ["yes"] if polar else [founder],
            "type": "comparison" if polar else "bridge",
            "context": [*noise[:3], hop_one, hop_two, *noise[3:]],
            "dataset": "2wikimultihopqa",
            "meta": {},
        }


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reference") / "questions.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows()), encoding="utf-8")
    return path


class Reader:
    """A reader without gold: finds "founded by X" in what it was shown, which for a search are the three best passages
    by word overlap.
    """

    def __init__(self, config: Config, corpus: CorpusSpec) -> None:
        self.config, self.corpus = config, corpus

    def ask(self, question: str, *, cancel: Cancel = NEVER) -> Iterator[ev.Event]:
        yield ev.TurnStarted(question, question, "reader", self.config.engine.policy, "none", 0, "user", as_="same")
        shown = self.corpus.passages
        if self.corpus.kind == "own":
            words = set(question.lower().strip("?").split())
            shown = tuple(sorted(shown, key=lambda s: (-len(words & set(s.text.lower().split())), s.pid)))[:3]
            yield ev.QueryFormed(Query(question), 0)
            yield ev.PassagesFound(
                question, tuple(Passage(s.pid, s.pid, s.title, s.text, 0, len(s.text)) for s in shown), len(shown)
            )
        yield ev.ModelAsked("answer", 10, 0, 3)
        founders = [s.text.partition("founded by ")[2].partition(" in ")[0] for s in shown if "founded by " in s.text]
        short = "" if not founders else "yes" if question.startswith("Was") else founders[0]
        yield ev.AnswerReady(Answer(short, short, not short), "answered")


class Fixed:
    """Answers by a table from question to answer."""

    def __init__(self, table: dict[str, str]) -> None:
        self.table = table

    def ask(self, question: str, *, cancel: Cancel = NEVER) -> Iterator[ev.Event]:
        yield ev.TurnStarted(question, question, "fixed", "none", "none", 0, "user", as_="same")
        short = self.table[question]
        yield ev.AnswerReady(Answer(short, short, not short), "answered")


def scored(questions: Path, out: Path, make: Any, context: Any = "none", policy: str = "none") -> DatasetSummary:
    todo = plan([questions], base=Config(), axes={"engine.policy": [policy]}, context=context)
    list(evaluate(todo, make, out=out))
    (dataset,) = report.build([out]).datasets
    return dataset


def table(items: list[Item], answers: list[str]) -> dict[str, str]:
    return {item.example.question: answer for item, answer in zip(items, answers, strict=True)}


def test_gold_scores_one_and_empty_scores_zero(questions: Path, tmp_path: Path) -> None:
    items = load(questions)
    gold = table(items, [item.gold.answers[0] for item in items])
    (arm,) = scored(questions, tmp_path / "gold", lambda c, s: Fixed(gold)).arms
    assert (arm.total.em.mean, arm.total.f1.mean, arm.total.accuracy.mean) == (1.0, 1.0, 1.0)
    assert (arm.total.em.low, arm.total.failures) == (1.0, 0)
    empty = dict.fromkeys(gold, "")
    (arm,) = scored(questions, tmp_path / "empty", lambda c, s: Fixed(empty)).arms
    assert (arm.total.em.mean, arm.total.f1.mean, arm.total.accuracy.mean) == (0.0, 0.0, 0.0)
    assert arm.total.abstained == N


def test_shuffled_gold_scores_near_chance(questions: Path, tmp_path: Path) -> None:
    """Chance: a random other question's answer; exact for yes/no (10 of 60 are "yes"), nothing for names, and F1 lives
    off shared surnames.
    """
    items = load(questions)
    answers = [item.gold.answers[0] for item in items]
    random.Random(1).shuffle(answers)
    (arm,) = scored(questions, tmp_path / "out", lambda c, s: Fixed(table(items, answers))).arms
    assert arm.total.em.mean <= (10 / 60) ** 2 + 0.06
    assert arm.total.f1.mean < 0.2


def test_oracle_context_beats_retrieval_and_retrieval_beats_nothing(questions: Path, tmp_path: Path) -> None:
    oracle = scored(questions, tmp_path / "oracle", Reader, context="oracle")
    given = scored(questions, tmp_path / "given", Reader, context="given")
    searched = scored(questions, tmp_path / "searched", Reader, context="retrieved", policy="once")
    nothing = scored(questions, tmp_path / "nothing", Reader)
    f1 = [one.arms[0].total.f1.mean for one in (oracle, given, searched, nothing)]
    assert f1[0] == f1[1] == 1.0
    assert f1[0] > f1[2] > f1[3] == 0.0
    recall = searched.arms[0].measures["support_recall"]
    assert 0.0 < recall.mean < 1.0
    merged = report.build([tmp_path / "oracle", tmp_path / "searched"])
    assert any("upper bound" in note for note in merged.notes)
    (dataset,) = merged.datasets
    assert {arm.arm for arm in dataset.arms} == {"none context=oracle", "once context=own"}
    gap = next(d for d in dataset.differences if d.arm.startswith("none"))
    assert gap.f1.low > 0
