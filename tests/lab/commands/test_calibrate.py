"""`mindchat calibrate`: a file is written that the engine then uses, and what cannot be fitted is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mindchat import wiring
from mindchat.config import load_config
from mindchat.events import SentenceJudged
from mindchat.library import GivenPassages
from mindchat.memory.verbs.results import Result
from mindchat.models.scripted import ScriptedModel
from mindchat.paths import find_paths
from mindchat.policies.rind_calibration import file_for
from mindchat.values import Signal

from ...cli.board import Run

SENTENCES = (
    "Lang{{{h},0.2}} visited Vienna{{0.4}} in the year 1890{{0.3}} once."
    " Then{{0.1}} Berlin{{{g},0.3}} became his home for years. So the answer is Linz."
)


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    context = [{"title": "Fritz Lang", "text": "Fritz Lang was born in Vienna."}]
    rows = [
        {"id": f"q{n}", "question": f"Where was director number {n} born?", "answers": ["Vienna"], "context": context}
        for n in range(12)
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def tape(tmp_path: Path) -> str:
    replies = []
    for n in range(12):
        replies.append(
            {"text": SENTENCES.format(h=0.1 + n / 20, g=0.2 + n / 30)}
        )  # no reply to an answer prompt: none may be asked for
    path = tmp_path / "tape.toml"
    path.write_text("\n".join(f"[[reply]]\ntext = {json.dumps(reply['text'])}" for reply in replies), encoding="utf-8")
    return f"scripted:{path}"


def test_the_fit_is_written_where_the_engine_looks_and_used_by_it(run: Run, questions: Path, tape: str) -> None:
    done = run(
        "calibrate",
        "rind",
        str(questions),
        "-m",
        tape,
        "--target",
        "0.2",
        "--n",
        "12",
        "--set",
        "engine.max_hops=0",
        "--json",
    )
    assert done.code == 0, done.err
    found = done.json
    assert found["sentences"] == 36
    assert found["rate_fixed"] <= 0.2
    folder = wiring.calibrations(find_paths())
    assert Path(found["path"]) == file_for(folder, "scripted:tape.toml", "sentence")
    assert Path(found["path"]).name == "rind-scripted_tape.toml-sentence.json"
    assert thresholds("auto") == {found["alpha"]}
    assert thresholds("off") == {1.0}


def test_a_fit_without_attention_leaves_the_other_one_alone(run: Run, questions: Path, tape: str) -> None:
    common = ["calibrate", "rind", str(questions), "-m", tape, "--n", "12", "--set", "engine.max_hops=0", "--json"]
    first = run(*common)
    second = run(*common, "--policy", "rind-entropy", "--target", "0.1")
    assert (first.code, second.code) == (0, 0), second.err
    assert Path(second.json["path"]) == file_for(wiring.calibrations(find_paths()), "scripted:tape.toml", "none")
    assert second.json["alpha"] != first.json["alpha"]
    assert thresholds("auto") == {first.json["alpha"]}


def thresholds(calibration: str) -> set[float]:
    """Every α that a turn of the calibrated model was judged with."""
    config = load_config(
        environ={},
        assignments=("engine.policy=mind", f"rind.calibration={calibration}", "engine.filter=none", "layout.repeat=0"),
    ).config
    model = ScriptedModel(
        ["Lang{0.1} visited Vienna in the year 1890 once. So the answer is Linz.", "Linz"], id="scripted:tape.toml"
    )
    parts = wiring.build_engine(config, GivenPassages(), None, model, calibrations=wiring.calibrations(find_paths()))
    judged = [event for event in parts.run("Where was he born?") if isinstance(event, SentenceJudged)]
    return {dict(event.verdict.terms)["alpha"] for event in judged if "alpha" in dict(event.verdict.terms)}


def test_people_read_the_rates_and_the_place(run: Run, questions: Path, tape: str) -> None:
    done = run("calibrate", "rind", str(questions), "-m", tape, "--set", "engine.max_hops=0")
    assert done.code == 0, done.err
    assert "36 sentences" in done.out
    assert "30% should trigger" in done.out
    assert "written: " in done.out


def test_too_few_sentences_and_a_policy_without_scores_are_refused(run: Run, questions: Path, tape: str) -> None:
    few = run("calibrate", "rind", str(questions), "-m", tape, "--n", "2", "--set", "engine.max_hops=0")
    assert few.code == 2
    assert "Only 6 sentences" in few.err
    none = run("calibrate", "rind", str(questions), "-m", tape, "--n", "2", "--policy", "once")
    assert none.code == 2
    assert "scores no words" in none.err
    assert not wiring.calibrations(find_paths()).exists()


def test_memory_needs_gold_triples(run: Run, questions: Path, tape: str) -> None:
    done = run("calibrate", "memory", str(questions), "-m", tape)
    assert done.code == 2
    assert "meta.evidences" in done.err


def test_memory_is_fitted_beside_its_store_under_the_models_name(
    run: Run, questions: Path, tape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mindchat.lab.calibration import memory_confidence as room

    given: dict[str, Any] = {}

    class Found(Result, frozen=True):
        path: str

        def render(self) -> str:
            return f"written: {self.path}"

    def fake(path: Path, ask: Any, folder: Path, model: str, **rest: Any) -> Found:
        rest["progress"](1, 2)
        given.update(rest, path=path, folder=folder, model=model, signals=ask.provides)
        return Found("here")

    monkeypatch.setattr(room, "calibrate", fake)
    done = run("calibrate", "memory", str(questions), "-m", tape, "--n", "7", "--target", "0.1", "--seed", "3")
    assert (done.code, done.out) == (0, "written: here\n")
    assert given["folder"] == find_paths().memory_db.parent
    assert (given["path"], given["model"], given["limit"], given["target"], given["seed"]) == (
        questions,
        tape,
        7,
        0.1,
        3,
    )
    assert Signal.LOGPROB in given["signals"]
    assert run("calibrate", "memory", str(questions), "-m", tape, "--json").json == {"path": "here"}
