"""Fitting on known answers: the arithmetic, and the whole way with a model that is right most of the time."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from mindchat.errors import UsageError
from mindchat.lab.calibration.memory_claims import Labelled, read_triples
from mindchat.lab.calibration.memory_confidence import calibrate, fit, reliability, threshold
from mindchat.memory.learning.confidence import FEATURES, calibration_file, load_calibration
from mindchat.values import Draft, Prompt

from ...memory.conftest import YesAsk, draft


def claims(count: int) -> list[Labelled]:
    """Claims whose truth depends on conf_min alone: P = conf_min."""
    generator, made = random.Random(0), []
    for i in range(count):
        sure = generator.random()
        values = {name: 0.0 for name in FEATURES} | {"conf_min": sure, "margin": generator.random()}
        made.append(Labelled(f"q{i // 2}", values, generator.random() < sure))
    return made


def test_the_fit_finds_what_matters_and_is_calibrated() -> None:
    calibration, served, wrong = fit(claims(1500), "m", target=0.1)
    assert calibration.weights["conf_min"] > 10 * abs(calibration.weights["margin"])
    assert calibration.weights["exact"] == pytest.approx(0, abs=1e-6), "a constant feature says nothing"
    assert calibration.ece < 0.05
    assert wrong <= 0.1 + 1e-9
    assert 0 < served < 0.5
    assert sum(count for _, _, count in calibration.curve) == 1500


def test_the_threshold_keeps_its_promise_over_ties() -> None:
    sure, truths = [0.99] * 12 + [0.9] * 4 + [0.6] * 10, [1.0] * 12 + [1.0, 0.0, 0.0, 0.0] + [1.0] * 10
    assert threshold(sure, truths, 0.0) == 0.99
    assert threshold(sure, truths, 0.1) == 0.99, "with all of .9 three in sixteen are wrong"
    assert threshold(sure, truths, 0.12) == 0.6
    assert threshold([0.99] * 9, [1.0] * 9, 0.1) == 0.95, "ten claims at least"


def test_reliability_by_hand() -> None:
    curve, ece = reliability([0.95, 0.95, 0.15, 0.15], [1, 1, 0, 1])
    assert curve == [(0.15, 0.5, 2), (0.95, 1.0, 2)]
    assert ece == pytest.approx((0.35 * 2 + 0.05 * 2) / 4)


def test_too_few_claims_are_refused() -> None:
    with pytest.raises(UsageError, match="needs 30"):
        fit(claims(10), "m")


class Student(YesAsk):
    """Answers from the passage: every fifth time with the wrong person, and then unsure."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def complete(
        self,
        prompt: Prompt,
        *,
        max_tokens: int,
        kind: str,
        stop: Sequence[str] = (),
        allow: Sequence[str] | None = None,
    ) -> Draft:
        self.asked += 1
        name = prompt.messages[0].text.split("Film ")[1].split(":")[0]
        wrong = self.asked % 5 == 0
        return draft(f"It was directed by {'Carl' if wrong else 'Ann'} {name}.", 2.0 if wrong else 0.1)


def dataset(path: Path, count: int) -> Path:
    rows = []
    for i in range(count):
        name = "Zo" + "".join(chr(97 + int(digit)) for digit in str(i))
        text = f"Film {name} is a film directed by Ann {name} and produced by Carl {name}."
        context = [{"pid": f"p{i}", "title": f"Film {name}", "text": text, "is_supporting": True}]
        evidences = [[f"Film {name}", "director", f"Ann {name}"], ["x", "unheard of", "y"]]
        rows.append({"id": f"q{i}", "context": context, "meta": {"evidences": evidences}})
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_the_whole_way(tmp_path: Path) -> None:
    file = dataset(tmp_path / "wiki.jsonl", 60)
    assert len(read_triples(file)) == 60
    seen: list[tuple[int, int]] = []
    done = calibrate(file, Student(), tmp_path, "my/model", limit=50, progress=lambda n, of: seen.append((n, of)))  # type: ignore[arg-type]
    assert seen[-1] == (50, 50)
    assert done.calibration.examples == 50
    assert done.right == pytest.approx(0.8)
    assert done.wrong == 0
    assert load_calibration(tmp_path, "my/model") == done.calibration
    assert "expected calibration error" in done.render()


def test_a_question_without_other_passages_borrows_those_of_the_last_one(tmp_path: Path) -> None:
    first, second, third = read_triples(dataset(tmp_path / "wiki.jsonl", 3))
    assert [p.id for p in first.passages] == ["p0"]
    assert [p.id for p in second.passages] == ["p1", "p0"]
    assert [p.id for p in third.passages] == ["p2", "p1"]


def test_a_run_that_was_cut_goes_on(tmp_path: Path) -> None:
    file = dataset(tmp_path / "wiki.jsonl", 60)

    def cut(number: int, of: int) -> None:
        if number == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calibrate(file, Student(), tmp_path, "m", limit=50, progress=cut)  # type: ignore[arg-type]
    assert load_calibration(tmp_path, "m") is None
    asked = calibration_file(tmp_path, "m").with_suffix(".claims.jsonl")
    with asked.open("ab") as out:
        out.write(b'{"key": "torn')
    second = Student()
    done = calibrate(file, second, tmp_path, "m", limit=50, resume=True)  # type: ignore[arg-type]
    assert (second.asked, done.calibration.examples) == (30, 50)
    third = Student()
    calibrate(file, third, tmp_path, "m", limit=60, resume=True)  # type: ignore[arg-type]
    assert third.asked == 10, "a larger sample extends the smaller one"
    fourth = Student()
    calibrate(file, fourth, tmp_path, "m", limit=50)  # type: ignore[arg-type]
    assert fourth.asked == 50, "without resume everything is asked anew"


def test_fits_stand_side_by_side(tmp_path: Path) -> None:
    file = dataset(tmp_path / "wiki.jsonl", 60)
    names = ("org/model", "org_model", "org model", "other")
    for name in names:
        calibrate(file, Student(), tmp_path, name, limit=50)  # type: ignore[arg-type]
    found = [load_calibration(tmp_path, name) for name in names]
    assert [one.model for one in found if one is not None] == list(names)
    assert not {path.name for path in (tmp_path / "calibration").iterdir() if path.name.startswith("rind-")}


@pytest.mark.parametrize("text", ["", "{", '{"id": 1, "context": [], "meta": {}}', "[]"])
def test_a_file_without_triples_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(UsageError):
        read_triples(tmp_path / "x.jsonl")
    with pytest.raises(UsageError):
        read_triples(tmp_path / "missing.jsonl")
