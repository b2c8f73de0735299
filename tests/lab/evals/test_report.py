from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from mindchat import events as ev
from mindchat.config import Config
from mindchat.errors import DocumentError, UsageError
from mindchat.lab.evals import chart, paper, report
from mindchat.lab.evals.examples import CorpusSpec
from mindchat.lab.evals.merge import merge
from mindchat.lab.evals.planning import plan
from mindchat.lab.evals.records import Failure, Record, read_records, read_run, write_compact
from mindchat.lab.evals.runner import evaluate
from mindchat.lab.evals.summary import mixture_at, references, shorten, summarise

from .scripted import ScriptedSession


def reply(config: Config, question: str, corpus: CorpusSpec) -> str | Exception | ev.TurnFailed:
    n = int(question.split()[-1].rstrip("?"))
    if config.engine.policy == "none" and n % 3:
        return ""
    if config.engine.policy == "once" and n == 5:
        return DocumentError("No.")
    return f"Builder {chr(65 + n % 26)}{n}"


def run(questions: Path, out: Path, policies: list[str], **changes: Any) -> Path:
    todo = plan([questions], base=Config(), axes={"engine.policy": policies}, **changes)
    list(evaluate(todo, lambda c, s: ScriptedSession(c, s, reply), out=out))
    return out


def test_numbers_of_the_report(questions: Path, tmp_path: Path) -> None:
    found = report.write([run(questions, tmp_path / "a", ["none", "once", "mind"])], tmp_path / "a")
    (dataset,) = found.datasets
    assert (dataset.questions, dataset.shared) == (12, 12)
    arms = {arm.arm: arm for arm in dataset.arms}
    assert arms["none"].total.em.mean == pytest.approx(4 / 12)
    assert arms["none"].total.abstained == 8
    assert arms["mind"].total.em.mean == 1.0
    once = arms["once"]
    assert (once.total.failures, once.total.em.mean) == (1, pytest.approx(11 / 12))
    assert once.failure_codes == {"document": 1}
    assert arms["mind"].total.cost["model_calls"] == 2.0
    assert arms["none"].calls.mean == 1.0
    assert arms["mind"].calls_by_kind == {"answer": 1.0, "draft": 1.0}
    assert arms["mind"].measures["support_recall"].mean == 1.0
    assert arms["none"].confidence_auroc == 1.0
    assert set(arms["mind"].by_type) == {"bridge", "comparison"}
    assert sum(group.n for group in arms["mind"].by_type.values()) == 12


def test_paired_differences_against_the_references(questions: Path, tmp_path: Path) -> None:
    folder = run(questions, tmp_path / "a", ["none", "once", "mind"])
    (dataset,) = report.build([folder]).datasets
    pairs = {(d.arm, d.reference): d for d in dataset.differences}
    assert set(pairs) == {("mind", "once"), ("none", "once"), ("mind", "none"), ("once", "none")}
    gain = pairs["mind", "none"]
    assert gain.em.mean == pytest.approx(8 / 12)
    assert gain.em.low > 0
    assert (gain.mcnemar.only_a, gain.mcnemar.only_b) == (8, 0)
    assert gain.calls.mean == 1.0
    (only,) = report.build([folder], against=["mind"]).datasets
    assert {d.reference for d in only.differences} == {"mind"}


def test_paired_differences_within_each_question_type_with_their_cost() -> None:
    def record(arm: str, n: int, kind: str, f1: float, new: int) -> Record:
        counts = {"prompt_tokens_new": new, "prompt_tokens_cached": 5}
        return Record(
            arm,
            "d",
            str(n),
            kind,
            scores={"em": f1, "f1": f1, "accuracy": f1},
            counts=counts,
            timing={"wall": float(new)},
        )

    kinds = {0: "bridge", 1: "bridge", 2: "comparison", 3: "lonely"}
    once = [record("none repeat=0", n, kind, 0.0, 10) for n, kind in kinds.items()]
    twice = [
        record("none repeat=1", n, kind, 1.0 if kind == "bridge" else 0.0, 20 + n) for n, kind in kinds.items() if n < 3
    ]
    found = summarise("d", [*once, *twice], against=["none repeat=0"])
    (one,) = found.differences
    assert (one.arm, one.f1.n, one.prompt_tokens_new.mean) == ("none repeat=1", 3, 11.0)
    assert one.f1.mean == pytest.approx(2 / 3)
    assert one.prompt_tokens_cached.mean == 0.0
    assert {kind: (part.f1.n, part.f1.mean, part.prompt_tokens_new.mean) for kind, part in one.by_type.items()} == {
        "bridge": (2, 1.0, 10.5),
        "comparison": (1, 0.0, 12.0),
    }
    assert one.by_type["bridge"].mcnemar.only_a == 2
    text = "\n".join(report._dataset(found, report.Report({}, (found,), {}, ())))
    assert "| bridge | none repeat=1 | none repeat=0 | 2 | 100.0 [100.0, 100.0] | 100.0 [100.0, 100.0] |" in text
    assert "| 10 [10, 11] / 0 [0, 0] | 10.5 [10.0, 11.0] |" in text
    assert "| lonely | none repeat=0 | 1 | 0 | 0.0 [0.0, 0.0]" in text, (
        "what only one arm answered has no difference, but a row"
    )
    assert "| 10 / 5 | 10.0 |" in text


def test_files_are_written_and_deterministic(questions: Path, tmp_path: Path) -> None:
    folder = run(questions, tmp_path / "a", ["none", "once", "mind"])
    report.write([folder], tmp_path / "one")
    report.write([folder], tmp_path / "two")
    for name in ("report.json", "report.md", "report.svg"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    text = (tmp_path / "one" / "report.md").read_text()
    assert "| none | 12 | 0 | 8 | 33.3 [" in text
    assert "1 failed turns count as wrong answers" in text
    assert "MIND, Table 1, Llama-3.1-8B" in text
    assert "for orientation, not for comparison" in text
    assert "| mind | none | 12 | 66.7 [" in text
    body = json.loads((tmp_path / "one" / "report.json").read_text())
    assert body["datasets"][0]["dataset"] == "hotpotqa"
    assert str(tmp_path) not in text + json.dumps(body)


def test_table_rows_have_as_many_cells_as_their_head(questions: Path, tmp_path: Path) -> None:
    text = report.markdown(report.build([run(questions, tmp_path / "a", ["none", "mind"])]))
    width = None
    for line in text.splitlines():
        if not line.startswith("|"):
            width = None
            continue
        cells = line.count("|")
        assert width in (None, cells), line
        width = cells


def test_runs_merge_into_one_table(questions: Path, tmp_path: Path) -> None:
    a = run(questions, tmp_path / "a", ["none"], n=6)
    b = run(questions, tmp_path / "b", ["mind"])
    found = report.build([a, b])
    (dataset,) = found.datasets
    assert [(arm.arm, arm.total.n) for arm in dataset.arms] == [("none", 6), ("mind", 12)]
    assert (dataset.questions, dataset.shared) == (12, 6)
    assert dataset.differences[0].em.n == 6
    assert any("unfinished" in note for note in found.notes)
    assert any("questions are few" in note for note in found.notes)


def test_a_warm_cache_is_named(questions: Path, tmp_path: Path) -> None:
    folder = run(questions, tmp_path / "a", ["none", "mind"], n=3)
    records = read_records(folder)
    assert {record.warm for record in records} == {10, 20}  # what the scripted session says of its first call
    assert any("6 turns began on a warm prefix cache" in note for note in report.build([folder]).notes)


def test_equal_names_with_another_meaning_stay_apart(questions: Path, tmp_path: Path) -> None:
    a = run(questions, tmp_path / "a", ["none"])
    b = run(questions, tmp_path / "b", ["none"], context="given")
    names = {record.arm for records in merge([a, b]).records.values() for record in records}
    assert names == {"none context=own", "none context=given"}
    c = run(questions, tmp_path / "c", ["none"])
    path = c / "run.json"
    body = json.loads(path.read_text())
    body["arms"][0]["settings"]["engine.max_hops"] = 99
    path.write_text(json.dumps(body))
    names = {record.arm for records in merge([a, c]).records.values() for record in records}
    assert names == {"none from=a", "none from=c"}


def test_folders_without_a_run_are_refused(questions: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no run"):
        report.build([tmp_path])
    folder = run(questions, tmp_path / "a", ["none"])
    (folder / "questions.jsonl").write_text("")
    with pytest.raises(UsageError, match="No question has been answered"):
        report.build([folder])


def test_compact_results_give_the_same_tables(questions: Path, tmp_path: Path) -> None:
    folder = run(questions, tmp_path / "a", ["none", "once", "mind"])
    write_compact(folder, tmp_path / "kept")
    full, kept = (report.markdown(report.build([path])).partition("## ")[2] for path in (folder, tmp_path / "kept"))
    assert full == kept
    assert (tmp_path / "kept" / "questions.jsonl").stat().st_size < 0.8 * (folder / "questions.jsonl").stat().st_size
    assert all(record.question == "" for record in read_records(tmp_path / "kept"))
    assert read_run(tmp_path / "kept") == read_run(folder)


def test_mixture_is_the_line_between_two_cheaper_and_dearer_arms() -> None:
    points = [(1.0, 0.2), (5.0, 0.6), (3.0, 0.1)]
    assert mixture_at(3.0, points) == pytest.approx(0.4)
    assert mixture_at(0.5, points) is None
    assert mixture_at(9.0, points) == pytest.approx(0.6)
    assert mixture_at(1.0, [(1.0, 0.2)]) == 0.2


def test_each_arm_is_compared_with_its_nearest_relative() -> None:
    arms = ["once", "once model=b", "mind", "mind model=b", "mind filter=conf model=b", "sentences"]
    assert references("mind model=b", arms) == ["once model=b"]
    assert references("mind", arms) == ["once"]
    assert references("mind filter=conf model=b", arms, ["mind", "once"]) == ["mind model=b", "once model=b"]
    assert references("once", arms, ["once"]) == ["once model=b"]
    assert references("mind", arms, ["mind filter=conf model=b"]) == ["mind filter=conf model=b"]
    assert references("mind", ["mind", "flare"]) == []
    assert references("mind", ["flare", "mind"]) == ["flare"]


def test_what_all_arms_share_is_said_once() -> None:
    common, short = shorten(["mind filter=conf model=b", "once model=b"])
    assert common == "model=b"
    assert short == {"mind filter=conf model=b": "mind filter=conf", "once model=b": "once"}
    assert shorten(["mind model=b"]) == ("", {"mind model=b": "mind model=b"})


def test_summary_of_nothing_but_failures() -> None:
    records = [Record("mind", "d", str(n), failure=Failure("x", "y")) for n in range(3)]
    found = summarise("d", records)
    assert found.arms[0].total.failures == 3
    assert found.arms[0].total.em.mean == 0.0
    assert found.differences == ()


def test_chart_is_valid_and_shows_every_arm(questions: Path, tmp_path: Path) -> None:
    found = report.build([run(questions, tmp_path / "a", ["none", "once", "mind"])])
    svg = chart.draw(found.datasets)
    root = ElementTree.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    circles = root.findall(f".//{space}circle")
    assert len(circles) == 3 * 3  # two panels and the legend
    words = [text.text for text in root.findall(f".//{space}text")]
    assert {"none", "once", "mind", "model calls per question", "seconds per question"} <= set(words)
    assert "prefers-color-scheme: dark" in svg
    for circle in circles:
        assert 0 <= float(circle.attrib["cx"]) <= chart.WIDTH
        assert math.isfinite(float(circle.attrib["cy"]))


def test_chart_escapes_names(tmp_path: Path) -> None:
    found = summarise('<script>"&', [Record('a<b & "c"', "d", "1", scores={"em": 1.0, "f1": 1.0, "accuracy": 1.0})])
    ElementTree.fromstring(chart.draw([found]))


@pytest.mark.parametrize("top", [0.0, 0.013, 1.0, 7.3, 100.0, 12345.0])
def test_ticks_are_round_and_reach_the_top(top: float) -> None:
    marks = chart.ticks(top)
    assert marks[0] == 0.0
    assert marks[-1] >= top
    assert 2 <= len(marks) <= 8


@pytest.mark.parametrize("top", range(1, 40))
def test_ticks_of_counts_lie_on_whole_numbers(top: int) -> None:
    marks = chart.ticks(top, whole=True)
    assert all(mark.is_integer() for mark in marks)
    assert marks[-1] >= top
    assert 2 <= len(marks) <= 6


def test_published_numbers_are_complete_and_read_right() -> None:
    for table in paper.tables():
        for row in table.rows:
            assert len(row.values) == len(table.columns), (table.id, row.system)
            assert all(0.0 <= value <= 100.0 for cell in row.values for value in cell)
    assert len({table.id for table in paper.tables()}) == len(paper.tables())
    mind = next(table for table in paper.tables() if table.id == "mind-1-llama")
    assert next(row for row in mind.rows if row.system == "MIND, CoT").values[1] == (34.5, 46.5)
    assert next(row for row in mind.rows if row.system == "MIND, Conf+CoT").values[3] == (12.0, 13.9)
    open_wiki = paper.published("2wikimultihopqa_open")
    roles = [one for one in open_wiki if one.paper == "CoRe, role ablation" and one.model.startswith("Llama")]
    assert next(row for row in roles[0].rows if row.system == "user role").values == (
        (53.45,),
        (69.36,),
        (47.59,),
        (68.76,),
    )
    assert roles[0].columns == ("compositional", "comparison", "inference", "bridge_comparison")
    assert paper.published("scifact") == ()
    assert not any(one.paper.startswith("MIND") for one in paper.published("hotpotqa", ["given"]))
