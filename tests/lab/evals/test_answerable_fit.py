"""The fit of answerability over a small world: folds by group, hand-written cases never fitted, cuts from even rows."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from mindchat.evidence.answerable import Fit
from mindchat.evidence.features import FEATURES
from mindchat.lab.evals.answerable_cases import HAND, Case, cases
from mindchat.lab.evals.answerable_fit import Outcome, fit, write

pytestmark = pytest.mark.slow


def case(number: int, kind: str, *, fitted: bool = True, name: str = "2wiki") -> Case:
    good = kind == "answerable"
    noise = (number * 37 % 11) / 40
    values = dict.fromkeys(FEATURES, 0.0) | {
        "covered": (0.8 if good else 0.4) - noise + 0.2,
        "missing": 0.1 if good else 0.6,
        "titles": 0.3,
    }
    return Case(name, kind, number, f"Question {number}?", f"question {number}", values, fitted)


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    found = [case(n, kind) for n in range(60) for kind in ("answerable", "gold_out")]
    plain = [
        msgspec.structs.replace(one, set="untitled 2wiki", features={**one.features, "titles": 0.0}) for one in found
    ]
    return fit([*found, *plain, *(case(n, "relation", fitted=False) for n in range(10))], "2026-01-01")


def test_what_is_told_apart_is_told_apart(outcome: Outcome) -> None:
    assert outcome.fit.auroc > 0.95
    assert outcome.fit.weights["covered"] > 0 > outcome.fit.weights["missing"]
    refused = {(row.set, row.kind): row.refused for row in outcome.rows}
    assert refused["2wiki", "answerable"] <= 0.2
    assert refused["2wiki", "gold_out"] > 0.9
    assert refused["untitled 2wiki", "gold_out"] > 0.9


def test_hand_written_cases_are_reported_and_never_fitted(outcome: Outcome) -> None:
    assert outcome.fit.n == 240
    assert ("2wiki", "relation", 10) in {(row.set, row.kind, row.n) for row in outcome.rows}


def test_the_fit_is_deterministic_and_survives_its_file(outcome: Outcome, tmp_path: Path) -> None:
    found = [case(n, kind) for n in range(40) for kind in ("answerable", "gold_out")]
    found += [msgspec.structs.replace(one, features={**one.features, "titles": 0.0}) for one in found]
    assert fit(found, "d") == fit(found, "d")
    write(outcome, tmp_path / "fit.json")
    assert msgspec.json.decode((tmp_path / "fit.json").read_bytes(), type=Fit) == outcome.fit
    assert "refused" in outcome.render()


def test_twenty_questions_of_each_hand_written_kind() -> None:
    for kind in ("relation", "nothing"):
        questions = [question for corpus in HAND[kind].values() for question in corpus]
        assert len(set(questions)) == 20


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder of 130 small articles, every dataset reading the same ones."""
    rows = [
        {
            "id": f"i{n}",
            "title": f"Ann{n} Droid",
            "text": f"Ann{n} Droid was born in Town{n}. " + "She sang there for long. " * 6,
        }
        for n in range(130)
    ]
    questions = [
        {
            "question": f"Where was Ann{n} Droid born?",
            "answers": [f"Town{n}"],
            "context": [{"pid": f"i{n}", "title": f"Ann{n} Droid", "text": "", "is_supporting": True}],
            "meta": {"evidences": [[f"Ann{n} Droid", "place of birth", f"Town{n}"]]},
        }
        for n in range(60)
    ]
    for name in ("2wikimultihopqa", "hotpotqa", "scifact"):
        (tmp_path / f"{name}.corpus.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
        )
    for name in ("2wikimultihopqa_open", "2wikimultihopqa", "hotpotqa", "scifact"):
        (tmp_path / f"{name}.dev.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in questions), encoding="utf-8"
        )
    return tmp_path


def test_cases_of_every_kind_are_made(data: Path) -> None:
    found = list(cases(data))
    assert {one.kind for one in found} == {"answerable", "gold_out", "foreign", "relation", "nothing"}
    assert {one.set for one in found} >= {
        "2wiki",
        "lower 2wiki",
        "untitled 2wiki",
        "claims",
        "single",
        "define",
        "demo",
        "scifact",
    }
    mean = {
        kind: sum(one.features["covered"] for one in found if (one.set, one.kind) == ("2wiki", kind) and one.fitted)
        for kind in ("answerable", "gold_out")
    }
    assert mean["answerable"] > mean["gold_out"]
    assert {one.fitted for one in found if one.kind == "nothing"} == {False}
