from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from mindchat import events as ev
from mindchat.config import Config
from mindchat.errors import ConfigError, DocumentError, IndexLockedError, Interrupted, ModelMissingError, UsageError
from mindchat.lab.evals.examples import CorpusSpec
from mindchat.lab.evals.planning import Plan, plan
from mindchat.lab.evals.records import open_writer, read_records, read_run
from mindchat.lab.evals.runner import Asking, Finished, Planned, Scored, evaluate
from mindchat.ports import Cancel

from .scripted import Reply, ScriptedSession


def answers(config: Config, question: str, corpus: CorpusSpec) -> str:
    n = int(question.split()[-1].rstrip("?"))
    if config.engine.policy == "none" and n % 3:
        return ""
    return f"Builder {chr(65 + n % 26)}{n}"


def maker(reply: Reply = answers) -> Any:
    return lambda config, corpus: ScriptedSession(config, corpus, reply)


def two_arms(questions: Path, **changes: Any) -> Plan:
    return plan([questions], base=Config(), axes={"engine.policy": ["none", "mind"]}, **changes)


def test_a_run_from_start_to_end(questions: Path, tmp_path: Path) -> None:
    events = list(evaluate(two_arms(questions, n=6, seed=1), maker(), out=tmp_path / "out"))
    assert isinstance(events[0], Planned)
    assert events[-1] == Finished(12, 0)
    scored = [event for event in events if isinstance(event, Scored)]
    assert [event.done for event in scored] == list(range(1, 13))
    assert scored[-1].eta_seconds == 0.0
    assert all(event.eta_seconds >= 0 for event in scored)
    records = read_records(tmp_path / "out")
    assert {record.arm for record in records} == {"none", "mind"}
    by_arm = {arm: {record.id for record in records if record.arm == arm} for arm in ("none", "mind")}
    assert by_arm["none"] == by_arm["mind"]
    mind = next(record for record in records if record.arm == "mind")
    assert mind.scores["em"] == 1.0
    assert mind.measures["support_recall"] == 1.0
    assert mind.measures["citation_exact"] == 1.0
    assert mind.counts["model_calls"] == {"answer": 1, "draft": 1}
    assert mind.counts["prompt_tokens_new"] == 150
    assert mind.stop == "answered"
    assert mind.hops[0]["trigger"]["score"] == 2.0


def test_questions_are_outermost_so_that_a_stopped_run_is_paired(questions: Path, tmp_path: Path) -> None:
    asked = [
        event
        for event in evaluate(two_arms(questions, n=3), maker(), out=tmp_path / "out")
        if isinstance(event, Asking)
    ]
    assert [event.arm for event in asked] == ["none", "mind", "mind", "none", "none", "mind"]
    assert [event.id for event in asked[::2]] == [event.id for event in asked[1::2]]


def test_run_json_is_enough_to_run_again(questions: Path, tmp_path: Path) -> None:
    todo = two_arms(questions, n=2, seed=7, models={"scripted": {"sha256": "abc"}})
    list(evaluate(todo, maker(), out=tmp_path / "out"))
    run = read_run(tmp_path / "out")
    assert run is not None
    assert (run.seed, run.n, run.context) == (7, 2, "retrieved")
    assert run.models == {"scripted": {"sha256": "abc"}}
    assert run.arms[1].settings["rind.alpha"] == Config().rind.alpha
    assert run.machine["cores"] == os.cpu_count()
    assert len(run.datasets[0].sha256) == 64
    assert run.datasets[0].questions == 12
    assert str(tmp_path) not in (tmp_path / "out" / "run.json").read_text()


def test_equal_seeds_give_equal_predictions(questions: Path, tmp_path: Path) -> None:
    def kept(folder: Path) -> list[dict[str, Any]]:
        list(evaluate(two_arms(questions, n=5, seed=3), maker(), out=folder))
        rows = [json.loads(line) for line in (folder / "questions.jsonl").read_text().splitlines()]
        return [{key: value for key, value in row.items() if key != "timing"} for row in rows]

    assert kept(tmp_path / "a") == kept(tmp_path / "b")


def test_resume_asks_only_what_is_missing(questions: Path, tmp_path: Path) -> None:
    todo, out = two_arms(questions, n=4), tmp_path / "out"
    stream = evaluate(todo, maker(), out=out)
    while not (isinstance(event := next(stream), Scored) and event.done == 3):
        pass
    stream.close()
    with pytest.raises(UsageError, match="already holds a run"):
        list(evaluate(todo, maker(), out=out))
    events = list(evaluate(todo, maker(), out=out, resume=True))
    assert events[0] == Planned(8, 3, ("none", "mind"))
    assert sum(isinstance(event, Asking) for event in events) == 5
    assert len(read_records(out)) == 8


def test_a_torn_last_line_is_asked_again(questions: Path, tmp_path: Path) -> None:
    todo, out = two_arms(questions, n=2), tmp_path / "out"
    list(evaluate(todo, maker(), out=out))
    path = out / "questions.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-25])
    assert len(read_records(out)) == 3
    list(evaluate(todo, maker(), out=out, resume=True))
    assert len(read_records(out)) == 4
    assert path.read_bytes().count(b"\n") == 4


def test_a_broken_line_in_the_middle_is_not_passed_over(questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    list(evaluate(two_arms(questions, n=2), maker(), out=out))
    path = out / "questions.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], "{", *lines[1:]]) + "\n")
    with pytest.raises(UsageError, match=r"questions\.jsonl:2 is not a record"):
        read_records(out)


def test_a_resumed_run_may_grow_but_not_change(questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    list(evaluate(two_arms(questions, n=2, seed=1), maker(), out=out))
    more = plan([questions], base=Config(), axes={"engine.policy": ["none", "once"]}, n=5, seed=1)
    list(evaluate(more, maker(), out=out, resume=True))
    run = read_run(out)
    assert run is not None
    assert (run.n, [arm.name for arm in run.arms]) == (5, ["none", "mind", "once"])
    assert len(read_records(out)) == 5 + 2 + 5
    with pytest.raises(UsageError, match="another seed"):
        list(evaluate(two_arms(questions, n=2, seed=2), maker(), out=out, resume=True))
    given = plan([questions], base=Config(), axes={"engine.policy": ["none"]}, context="given", seed=1)
    with pytest.raises(UsageError, match="another context"):
        list(evaluate(given, maker(), out=out, resume=True))


def test_another_model_file_is_noticed(questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    list(evaluate(two_arms(questions, n=1, models={"m": {"sha256": "1"}}), maker(), out=out))
    with pytest.raises(UsageError, match="model m is not the one"):
        list(evaluate(two_arms(questions, n=1, models={"m": {"sha256": "2"}}), maker(), out=out, resume=True))


def test_failures_are_recorded_and_the_run_goes_on(questions: Path, tmp_path: Path) -> None:
    def reply(config: Config, question: str, corpus: CorpusSpec) -> str | Exception | ev.TurnFailed:
        if config.engine.policy == "mind" and "number 3?" in question:
            return DocumentError("Cannot read it.")
        if config.engine.policy == "mind" and "number 4?" in question:
            return ev.TurnFailed("window", "Too long.", "Shorten.")
        return answers(config, question, corpus)

    events = list(evaluate(two_arms(questions), maker(reply), out=tmp_path / "out"))
    assert events[-1] == Finished(24, 2)
    failed = {record.id: record for record in read_records(tmp_path / "out") if record.failure}
    assert {id_: record.failure.code for id_, record in failed.items() if record.failure} == {
        "q3": "document",
        "q4": "window",
    }
    assert all(record.scores == {} and record.prediction == "" for record in failed.values())
    assert failed["q4"].gold == ("Builder E4",)


@pytest.mark.parametrize(
    "reply",
    [ModelMissingError("No model."), ev.TurnFailed("model_missing", "No model.", "Pull it.", 3)],
    ids=["raised", "ended the turn"],
)
def test_what_would_fail_every_question_ends_the_run(questions: Path, tmp_path: Path, reply: Any) -> None:
    with pytest.raises(ModelMissingError, match="No model"):
        list(evaluate(two_arms(questions), maker(lambda *_: reply), out=tmp_path / "out"))
    assert read_records(tmp_path / "out") == []


def test_a_bug_is_not_swallowed(questions: Path, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        list(evaluate(two_arms(questions), maker(lambda *_: ZeroDivisionError("bug")), out=tmp_path / "out"))


def test_a_question_over_its_time_fails_alone(questions: Path, tmp_path: Path) -> None:
    def slow(config: Config, question: str, corpus: CorpusSpec) -> str:
        return answers(config, question, corpus)

    class Slow(ScriptedSession):
        def ask(self, question: str, *, cancel: Cancel = Cancel()) -> Any:  # noqa: B008 - never used
            if "number 3?" in question:
                time.sleep(0.06)
            yield from super().ask(question, cancel=cancel)

    list(evaluate(two_arms(questions), lambda c, s: Slow(c, s, slow), out=tmp_path / "out", timeout=0.05))
    failed = [record for record in read_records(tmp_path / "out") if record.failure]
    assert {record.id for record in failed} == {"q3"}
    assert all(record.failure and record.failure.code == "timeout" for record in failed)


def test_cancelling_keeps_what_is_there(questions: Path, tmp_path: Path) -> None:
    cancel = Cancel()
    stream = evaluate(two_arms(questions), maker(), out=tmp_path / "out", cancel=cancel)
    while not (isinstance(event := next(stream), Asking) and event.arm == "mind"):
        pass
    cancel.set()
    with pytest.raises(Interrupted):
        next(stream)
    records = read_records(tmp_path / "out")
    assert [record.arm for record in records] == ["none"]


def test_shards_fill_one_folder(questions: Path, tmp_path: Path) -> None:
    todo, out = two_arms(questions, n=7), tmp_path / "out"
    for number in (1, 2, 3):
        list(evaluate(todo, maker(), out=out, shard=(number, 3)))
    records = read_records(out)
    assert len(records) == 14
    assert sorted(path.name for path in out.glob("questions*")) == [
        "questions-1.jsonl",
        "questions-2.jsonl",
        "questions-3.jsonl",
    ]
    events = list(evaluate(todo, maker(), out=out, resume=True))
    assert events == [Planned(14, 14, ("none", "mind")), Finished(14, 0)]
    with pytest.raises(UsageError, match="does not exist"):
        list(evaluate(todo, maker(), out=out, shard=(4, 3)))


def test_two_processes_may_not_fill_one_shard(questions: Path, tmp_path: Path) -> None:
    todo, out = two_arms(questions, n=2), tmp_path / "out"
    list(evaluate(todo, maker(), out=out))
    with open_writer(out, (1, 1)), pytest.raises(IndexLockedError, match="Another process"):
        list(evaluate(todo, maker(), out=out, resume=True))


def test_plans_that_make_no_sense_are_refused(questions: Path, tmp_path: Path) -> None:
    base = Config()
    with pytest.raises(UsageError, match="nothing to search"):
        plan([questions], base=base, axes={"engine.policy": ["mind"]}, context="given")
    with pytest.raises(UsageError, match="exclude each other"):
        plan([questions], base=base, axes={"engine.policy": ["none"]}, context="none", open_corpus=questions)
    with pytest.raises(UsageError, match="its answers would be searched"):
        plan([questions], base=base, axes={}, open_corpus=questions.parent)
    with pytest.raises(UsageError, match="does not exist"):
        plan([questions], base=base, axes={}, open_corpus=tmp_path / "missing.jsonl")
    with pytest.raises(UsageError, match="at least 1"):
        plan([questions], base=base, axes={}, n=0)
    with pytest.raises(UsageError, match="two of the files"):
        plan([questions, questions], base=base, axes={})
    with pytest.raises(ConfigError, match=r"engine\.polixy"):
        plan([questions], base=base, axes={"engine.polixy": ["mind"]})
    with pytest.raises(UsageError, match="No question file"):
        plan([], base=base, axes={})
    bare = tmp_path / "bare.jsonl"
    bare.write_text('{"question": "q", "answer": "a"}')
    with pytest.raises(UsageError, match="no context of its own"):
        plan([bare], base=base, axes={})
    assert plan([bare], base=base, axes={"engine.policy": ["none"]}, context="none").items


def test_own_contexts_without_distractors_are_named_as_an_oracle(questions: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in questions.read_text().splitlines()]
    for row in rows:
        row["context"] = [piece for piece in row["context"] if piece["is_supporting"]]
    path = tmp_path / "gold_only.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert "oracle setting" in two_arms(path).run.notes[0]
    assert two_arms(questions).run.notes == ()


CHILD = """
import sys, time
sys.path.insert(0, {root!r})
from pathlib import Path
from mindchat.config import Config
from mindchat.lab.evals.planning import plan
from mindchat.lab.evals.runner import evaluate
from tests.lab.evals.scripted import ScriptedSession

def reply(config, question, corpus):
    time.sleep(0.004)
    n = int(question.split()[-1].rstrip("?"))
    return f"Builder {{chr(65 + n % 26)}}{{n}}"

todo = plan([Path({questions!r})], base=Config(), axes={{"engine.policy": ["none", "mind"]}})
for event in evaluate(todo, lambda c, s: ScriptedSession(c, s, reply), out=Path({out!r}), resume=True):
    print("x", flush=True)
"""


def _child(questions: Path, out: Path) -> subprocess.Popen[bytes]:
    root = str(Path(__file__).parents[3])
    code = textwrap.dedent(CHILD).format(root=root, questions=str(questions), out=str(out))
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)


@pytest.mark.parametrize("lines", [5, 17, 30])
def test_kill_9_costs_no_finished_record(questions: Path, tmp_path: Path, lines: int) -> None:
    out = tmp_path / "out"
    child = _child(questions, out)
    assert child.stdout is not None
    for _ in range(lines):
        child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    before = {record.key for record in read_records(out)}
    assert len(before) >= (lines - 1) // 2
    again = _child(questions, out)
    again.communicate(timeout=60)
    assert again.returncode == 0
    records = read_records(out)
    assert len(records) == 24
    assert before <= {record.key for record in records}
    assert all(record.scores["em"] == 1.0 for record in records)
