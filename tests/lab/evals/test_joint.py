"""Supporting facts and joint scores, by the rules of HotpotQA's evaluation script."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindchat.lab.evals import joint
from mindchat.lab.evals.datasets import load
from mindchat.lab.evals.examples import Example, Gold, Source
from mindchat.trace import Trace
from mindchat.values import Answer, Citation

from .test_datasets import HOTPOT, WIKI2

TEXT = "Ada was born in Ghent. She moved to Lyon. She died there."
EXAMPLE = Example(
    "1", "hotpotqa", "Where did Ada die?", (Source("Ada", TEXT, "a"), Source("Lyon", "Lyon is a city.", "b"))
)
GOLD = Gold(("Lyon",), sentences=(("a", "She moved to Lyon."), ("a", "She died there.")))


def cite(*quotes: tuple[str, str]) -> Trace:
    citations = tuple(
        Citation(n, f"doc#{pid}", pid, 0, len(quote), quote, "span") for n, (pid, quote) in enumerate(quotes, 1)
    )
    return Trace(answer=Answer("Lyon.", "Lyon", False, "sourced", citations))


@pytest.mark.parametrize(
    ("predicted", "gold", "expected"),
    [
        ({1, 2}, {1, 2}, (1.0, 1.0, 1.0)),
        ({1}, {1, 2}, (0.0, 1.0, 0.5)),
        ({1, 2, 3, 4}, {1, 2}, (0.0, 0.5, 1.0)),
        (set(), {1, 2}, (0.0, 0.0, 0.0)),
        ({3}, {1}, (0.0, 0.0, 0.0)),
    ],
)
def test_sets_of_sentences(predicted: set[int], gold: set[int], expected: tuple[float, float, float]) -> None:
    assert joint.supporting_facts(predicted, gold) == expected


def test_joint_multiplies_precisions_and_recalls_before_f1() -> None:
    found = joint.joint("Lyon France", Gold(("Lyon",)), (0.0, 0.5, 1.0))
    assert found["sp_f1"] == pytest.approx(2 / 3)
    assert found["joint_f1"] == pytest.approx(2 * 0.25 * 1.0 / 1.25)
    assert found["joint_em"] == 0.0


def test_joint_needs_both_sides() -> None:
    assert joint.joint("Lyon", Gold(("Lyon",)), (1.0, 1.0, 1.0)) == {
        "sp_em": 1.0,
        "sp_f1": 1.0,
        "joint_em": 1.0,
        "joint_f1": 1.0,
    }
    assert joint.joint("Lyon", Gold(("Lyon",)), (0.0, 0.0, 0.0))["joint_f1"] == 0.0
    assert joint.joint("Ghent", Gold(("Lyon",)), (1.0, 1.0, 1.0))["joint_em"] == 0.0
    assert joint.joint("yes it is", Gold(("yes",)), (1.0, 1.0, 1.0))["joint_f1"] == 0.0, (
        "the yes/no rule holds in the joint score too"
    )
    assert joint.joint("US", Gold(("America",), demonyms=("US",)), (1.0, 1.0, 1.0))["joint_em"] == 1.0


def test_a_cited_place_is_the_sentence_around_it() -> None:
    assert joint.cited_sentences(cite(("a", "Lyon"), ("a", "died")), EXAMPLE, GOLD) == {0, 1}
    assert joint.cited_sentences(cite(("a", "Ghent"), ("a", "born")), EXAMPLE, GOLD) == {("a", 0)}, (
        "two places of one sentence are one sentence"
    )
    assert joint.cited_sentences(cite(("b", "Lyon")), EXAMPLE, GOLD) == {("b", 0)}, (
        "the same word in another passage is no support"
    )
    assert joint.cited_sentences(cite(("x", "Lyon"), ("a", "")), EXAMPLE, GOLD) == {("x", -1), ("a", -1)}
    assert joint.cited_sentences(Trace(), EXAMPLE, GOLD) == set()


def test_a_turn_is_judged_where_gold_names_sentences() -> None:
    assert joint.judge(cite(("a", "Lyon")), "Lyon", EXAMPLE, GOLD) == pytest.approx(
        {"sp_em": 0.0, "sp_f1": 2 / 3, "joint_em": 0.0, "joint_f1": 2 / 3}
    )
    assert joint.judge(cite(("a", "Lyon")), "Lyon", EXAMPLE, Gold(("Lyon",))) == {}


def test_the_official_files_name_sentences_by_number(tmp_path: Path) -> None:
    (tmp_path / "h.json").write_text(
        json.dumps(
            [{**HOTPOT[0], "supporting_facts": [["Eiffel", 1], ["Eiffel", 7], ["Missing page", 0], ["Eiffel", 1]]}]
        )
    )
    (item,) = load(tmp_path / "h.json")
    pid = item.example.context[0].pid
    assert item.gold.sentences == ((pid, "He built it."), (pid, ""), ("Missing page", ""))
    assert item.gold.sentences[0][1] in item.example.context[0].text
    (tmp_path / "w.json").write_text(json.dumps(WIKI2))
    (item,) = load(tmp_path / "w.json")
    assert [text for _, text in item.gold.sentences] == ["X is a film by Y.", "Y is American."]


def test_the_normalised_files_name_them_by_text(tmp_path: Path) -> None:
    row = {
        "id": "n1",
        "question": "Where did Ada die?",
        "answers": ["Lyon"],
        "dataset": "hotpotqa",
        "context": [{"title": "Ada", "text": TEXT, "is_supporting": True, "pid": "a"}],
        "meta": {
            "supporting_sentences": [
                {"title": "Ada", "sent_id": 1, "sentence": "She moved to Lyon."},
                {"title": "Gone", "sent_id": 0},
            ]
        },
    }
    (tmp_path / "n.jsonl").write_text(json.dumps(row))
    (item,) = load(tmp_path / "n.jsonl")
    assert item.gold.sentences == (("a", "She moved to Lyon."), ("Gone", ""))
