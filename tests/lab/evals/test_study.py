"""Result tables: rendered from kept folders, put between markers, equal to what the documents say."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mindchat.config import Config
from mindchat.errors import UsageError
from mindchat.lab.evals import chain_records, chain_report, report, study
from mindchat.lab.evals.chain_records import ChainRecord, Learned, TurnRecord
from mindchat.lab.evals.kept_results import keep
from mindchat.lab.evals.merge import merge
from mindchat.lab.evals.planning import plan
from mindchat.lab.evals.records import DIGITS, Record, compact, read_records
from mindchat.lab.evals.runner import evaluate
from mindchat.lab.evals.study import Beside, Table
from mindchat.lab.evals.study_tables import COLUMNS

from .scripted import ScriptedSession
from .test_report import reply

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "mindchat" / "lab" / "results"
"""Kept records, which the wheel does not bring."""
DOCUMENTS = [ROOT / "README.md", ROOT / "mindchat" / "MEASUREMENTS.md"]
SPEC = """
[[table]]
id = "policies"
title = "Policies"
runs = ["first"]
columns = ["n", "em", "f1", "calls", "difference", "p"]
default = "mind"
labels = { "mind" = "mind (default)" }
figure = "policies.svg"
note = "One note."
papers = [{ table = "dragin-13b", systems = { none = "no retrieval", once = "single retrieval" } }]

[[table]]
id = "by-type"
title = "By type"
kind = "types"
runs = ["first"]
arms = ["once", "mind"]
default = "mind"
papers = [{ table = "core-main-llama", systems = {} }]

[[table]]
id = "sets"
title = "Across"
kind = "across"
runs = ["first"]
"""


@pytest.fixture
def kept(questions: Path, tmp_path: Path) -> Path:
    todo = plan([questions], base=Config(), axes={"engine.policy": ["none", "once", "mind"]})
    list(evaluate(todo, lambda c, s: ScriptedSession(c, s, reply), out=tmp_path / "out"))
    keep(tmp_path / "out", tmp_path / "results" / "first")
    (tmp_path / "results" / "study.toml").write_text(SPEC, encoding="utf-8")
    return tmp_path / "results"


def test_tables_hold_the_numbers_of_the_report(kept: Path, tmp_path: Path) -> None:
    blocks = study.blocks(kept)
    assert list(blocks) == ["policies", "by-type", "sets"]
    (dataset,) = report.build([tmp_path / "out"]).datasets
    rows = {
        row.split("|")[1].strip(): [cell.strip() for cell in row.split("|")[2:-1]]
        for row in blocks["policies"].splitlines()
        if row[:1] == "|"
    }
    arms = {arm.arm: arm for arm in dataset.arms}
    assert rows["none"][1:4] == [report.percent(arms["none"].total.em), report.percent(arms["none"].total.f1), "1.00"]
    assert rows["mind (default)"][4:6] == ["–", "–"]
    (ahead,) = [found for found in dataset.differences if (found.arm, found.reference) == ("mind", "none")]
    assert rows["none"][4:6] == [report.percent(ahead.f1), report.number(ahead.mcnemar.p, 3)]
    assert rows["arm"][-1] == "DRAGIN, ACL 2024, Llama-2-13B-chat, EM/F1; StrategyQA accuracy †"
    assert (rows["once"][-1], rows["mind (default)"][-1]) == ("26.3/37.06", "")
    assert "One note." in blocks["policies"]
    assert "for orientation, not for comparison" in blocks["policies"]
    assert list(rows)[2:] == ["none", "once", "mind (default)"]


def test_types_show_each_types_difference_and_papers_as_rows(kept: Path) -> None:
    rows = study.blocks(kept)["by-type"].splitlines()
    heads = [row.split("|")[1].strip() for row in rows if row[:1] == "|"]
    assert heads[:1] + heads[2:5] == ["F1", "once", "mind", "mind − once"]
    assert [head for head in heads if head.startswith("†")]
    assert "bridge (6)" in rows[2]


def test_arms_stand_in_the_order_that_is_asked_for(kept: Path) -> None:
    table = Table("x", "X", ("first",), arms=("mind", "none"), columns=("n",))
    body = study.render(table, kept).splitlines()
    assert [row.split("|")[1].strip() for row in body[4:6]] == ["mind", "none"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"arms": ("nine",)}, "nine"),
        ({"columns": ("speed",)}, "speed"),
        ({"default": "nine"}, "nine"),
        ({"dataset": "other"}, "other"),
        ({"runs": ("absent",)}, "holds no run"),
        ({"papers": (Beside("absent", {}),)}, "absent"),
        ({"papers": (Beside("dragin-13b", {"once": "two retrievals"}),)}, "two retrievals"),
        ({"kind": "rind"}, "no sentences"),
        ({"kind": "chains"}, "No chain"),
        ({"kind": "probe", "runs": ("absent",)}, "No probe"),
        ({"kind": "probe"}, "No probe is kept in first"),
    ],
)
def test_what_is_not_there_is_named(kept: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        study.render(msgspec.structs.replace(Table("x", "X", ("first",)), **changes), kept)


@pytest.mark.parametrize("column", sorted(COLUMNS))
def test_every_column_has_a_cell(kept: Path, column: str) -> None:
    body = study.render(Table("x", "X", ("first",), columns=(column,), default="mind"), kept)
    rows = [row for row in body.splitlines() if row[:1] == "|"]
    assert len(rows) == 5
    assert all(row.count("|") == 3 for row in rows)


def test_markers_are_filled_and_filled_again(kept: Path) -> None:
    blocks = study.blocks(kept)
    text = "# A\n\n<!-- table: sets -->\nyesterday\n<!-- /table -->\nb\n<!-- table: policies -->\n<!-- /table -->\n"
    once = study.fill(text, blocks)
    assert blocks["sets"] in once
    assert blocks["policies"] in once
    assert "yesterday" not in once
    assert once.startswith("# A\n")
    assert study.fill(once, blocks) == once


@pytest.mark.parametrize(
    "text",
    [
        "<!-- table: none-such -->\n<!-- /table -->",
        "<!-- table: sets -->\nno end",
        "<!-- table: SETS -->\n<!-- /table -->",
        "<!-- table: sets -->\n<!-- table: sets -->\n<!-- /table -->",
        "<!-- /table -->",
    ],
)
def test_broken_markers_are_refused(kept: Path, text: str) -> None:
    with pytest.raises(UsageError):
        study.fill(text, study.blocks(kept))


def test_figures_are_drawn_from_the_same_records(kept: Path) -> None:
    figures = study.figures(kept)
    assert list(figures) == ["policies.svg"]
    assert ElementTree.fromstring(figures["policies.svg"]).tag.endswith("svg")
    assert study.figures(kept) == figures


@pytest.mark.parametrize(
    ("body", "words"),
    [("[[table]]\nid = 3", "wrong"), ("[[table", "wrong"), (SPEC + SPEC, "twice"), (None, "cannot be read")],
)
def test_a_wrong_list_of_tables_is_named(tmp_path: Path, body: str | None, words: str) -> None:
    if body is not None:
        (tmp_path / "study.toml").write_text(body, encoding="utf-8")
    with pytest.raises(UsageError, match=words):
        study.read(tmp_path)


def test_the_documents_say_what_the_results_say() -> None:
    """README and MEASUREMENTS hold no result table that `mindchat eval study README.md mindchat/MEASUREMENTS.md` would
    change.
    """
    blocks = study.blocks(RESULTS)
    assert blocks
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        assert study.fill(text, blocks) == text, f"{path.name} is out of date"
    for name, body in study.figures(RESULTS).items():
        assert (RESULTS / name).read_text(encoding="utf-8") == body, f"{name} is out of date"


def test_kept_folders_are_small_and_all_of_them_are_shown() -> None:
    folders = {path for path in RESULTS.iterdir() if path.is_dir()}
    assert {RESULTS / run for table in study.read(RESULTS) for run in table.runs} == folders
    for folder in folders:
        assert sum(path.stat().st_size for path in folder.iterdir()) < 200_000, (
            f"{folder.name} is too large to be committed"
        )


# ── keeping
# ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_compact_records_lose_texts_zeros_and_long_fractions() -> None:
    record = Record(
        "a",
        "d",
        "1",
        question="q",
        prediction="x" * 500,
        answer="long",
        gold=("g",),
        scores={"f1": 1 / 3},
        measures={"support_recall": 2 / 3},
        counts={"retrievals": 0, "triggers": 2, "model_calls": {"answer": 1}},
        timing={"first_token": 1.23456, "total": 3.0, "model": 2.0, "wall": 3.14159},
        confidence=0.123456789,
        hops=({"n": 1},),
    )
    small = compact(record)
    assert (small.question, small.answer, small.gold, small.hops, len(small.prediction)) == ("", "", (), (), 120)
    assert small.scores == {"f1": round(1 / 3, DIGITS)}
    assert small.counts == {"triggers": 2, "model_calls": {"answer": 1}}
    assert small.timing == {"first_token": 1.23, "wall": 3.14}
    assert compact(small) == small


def test_chains_are_kept_without_their_texts_and_give_the_same_tables(tmp_path: Path) -> None:
    learned = (Learned("Tide", "director", "Mira", 0.9, "right"),)
    turn = TurnRecord(
        "hop",
        "Who?",
        "Mira",
        ("Mira",),
        1.0,
        1.0,
        1,
        1,
        1,
        1,
        1,
        0,
        0,
        0,
        {"retrievals": 0, "model_calls": {"answer": 1}},
        1.0,
        learned,
    )
    other = msgspec.structs.replace(turn, counts={"retrievals": 1, "model_calls": {"answer": 1}}, hits=0, learned=())
    records = [
        ChainRecord("mind", "c:1", "shared", (turn, turn)),
        ChainRecord("mind memory=off", "c:1", "shared", (other, other)),
    ]
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / f"{chain_records.RECORDS}.jsonl").write_bytes(
        b"".join(msgspec.json.encode(record) + b"\n" for record in records)
    )
    (folder / chain_records.RUN).write_text("{}")
    keep(folder, tmp_path / "small")
    again = chain_records.read_chain_records(tmp_path / "small")
    assert msgspec.json.encode(chain_report.build(again)) == msgspec.json.encode(chain_report.build(records))
    assert "Mira" not in (tmp_path / "small" / f"{chain_records.RECORDS}.jsonl").read_text()
    body = study.render(Table("x", "X", ("small",), kind="chains"), tmp_path)
    assert "\n#" not in body


def test_an_older_description_that_lacks_a_new_setting_is_the_same_arm(kept: Path, tmp_path: Path) -> None:
    keep(tmp_path / "out", kept / "second")
    path = kept / "second" / "run.json"
    path.write_text(path.read_text().replace('"query.form"', '"query.shape"'))
    merged = merge([kept / "first", kept / "second"])
    assert {record.arm for record in merged.records["hotpotqa"]} == {"none", "once", "mind"}
    path.write_text(path.read_text().replace('"query.top_n": 25', '"query.top_n": 26'))
    assert len({record.arm for record in merge([kept / "first", kept / "second"]).records["hotpotqa"]}) == 6
    assert len(read_records(kept / "second")) == 36
