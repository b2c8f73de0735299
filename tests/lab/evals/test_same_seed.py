"""On a real model: a run that was stopped and resumed gives the predictions of one that was not; so does `eval rind`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindchat.config import Config, load_config
from mindchat.lab import workbench
from mindchat.lab.evals import one_hop
from mindchat.lab.evals.planning import Plan, plan
from mindchat.lab.evals.records import Record, read_records
from mindchat.lab.evals.runner import Scored, evaluate
from mindchat.paths import find_paths

pytestmark = [pytest.mark.model, pytest.mark.slow]
ROWS = [
    {
        "id": f"q{n}",
        "question": question,
        "answers": [answer],
        "type": "compositional",
        "dataset": "2wikimultihopqa",
        "context": [
            {
                "title": film,
                "text": f"{film} is a silent film of 1922 directed by {director}.",
                "is_supporting": True,
                "pid": f"f{n}",
            },
            {
                "title": director,
                "text": f"{director} was born in {answer} and died in Paris.",
                "is_supporting": True,
                "pid": f"d{n}",
            },
        ],
        "meta": {"evidences": [[film, "director", director], [director, "place of birth", answer]]},
    }
    for n, (film, director, answer, question) in enumerate(
        [
            ("The Pale Tower", "Oskar Lindt", "Graz", "Where was the director of The Pale Tower born?"),
            ("Seven Harbours", "Mira Kostova", "Varna", "In which city was the director of Seven Harbours born?"),
        ]
    )
]


@pytest.fixture
def base(smollm_folder: Path) -> Config:
    assignments = [
        "engine.max_hops=2",
        "engine.max_sentences=3",
        "engine.sentence_tokens=24",
        "memory.mode=off",
        "answer.max_tokens=12",
    ]
    return load_config(environ={}, assignments=[f"model.name={smollm_folder}", *assignments]).config


@pytest.fixture
def todo(base: Config, tmp_path: Path) -> Plan:
    path = tmp_path / "dev.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    return plan([path], base=base, axes={"engine.policy": ["none", "once", "mind"]}, seed=4)


def told(folder: Path) -> list[tuple[object, ...]]:
    """Records without what time does to them."""

    def bare(record: Record) -> tuple[object, ...]:
        return (
            record.key,
            record.prediction,
            record.answer,
            record.scores,
            record.measures,
            record.counts,
            record.confidence,
            record.hops,
        )

    return [bare(record) for record in read_records(folder)]


def test_stopped_and_resumed_gives_the_same_predictions(base: Config, todo: Plan, tmp_path: Path) -> None:
    list(evaluate(todo, workbench.open_evaluation(base, find_paths()), out=tmp_path / "whole"))
    stream = evaluate(todo, workbench.open_evaluation(base, find_paths()), out=tmp_path / "cut")
    while not (isinstance(event := next(stream), Scored) and event.done == 2):
        pass
    stream.close()
    assert len(read_records(tmp_path / "cut")) == 2
    list(evaluate(todo, workbench.open_evaluation(base, find_paths()), out=tmp_path / "cut", resume=True))
    assert told(tmp_path / "cut") == told(tmp_path / "whole")
    assert len(told(tmp_path / "whole")) == 6
    assert all(record.prediction and record.warm == 0 for record in read_records(tmp_path / "whole"))


def test_sentences_and_their_signals_repeat(base: Config, todo: Plan, tmp_path: Path) -> None:
    for name in ("a", "b"):
        make = workbench.open_evaluation(base, find_paths())
        list(one_hop.evaluate(todo, base, make, given=("oracle",), n=2, out=tmp_path / name))
    assert told(tmp_path / "a") == told(tmp_path / "b")
    records = read_records(tmp_path / "a")
    assert len(records) == 2
    assert all(
        record.measures["max_s"] > 0 and record.measures["sequence_entropy"] > 0
        for record in records
        if not record.scores["silent"]
    )
    assert any(not record.scores["silent"] for record in records)
