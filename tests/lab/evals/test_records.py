from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from mindchat.errors import UsageError
from mindchat.lab.evals.records import DatasetEntry, Record, Run, open_writer, prepare, read_records, read_run

RUN = Run(seed=1, n=2, context="retrieved", datasets=(DatasetEntry("d", "d.jsonl", "0" * 64, 9),), arms=())


def record(n: int, **changes: object) -> Record:
    return msgspec.structs.replace(Record("mind", "d", f"q{n}", answer="Zürich … \u2028 line"), **changes)


def test_a_cut_at_any_byte_costs_only_the_last_record(tmp_path: Path) -> None:
    with open_writer(tmp_path, (1, 1)) as writer:
        for n in range(3):
            writer.append(record(n))
    path = tmp_path / "questions.jsonl"
    whole = path.read_bytes()
    start = whole[:-1].rfind(b"\n") + 1
    for cut in range(start, len(whole)):
        path.write_bytes(whole[:cut])
        # a complete line without its newline is still a whole record
        assert [r.id for r in read_records(tmp_path)] == (["q0", "q1", "q2"] if cut == len(whole) - 1 else ["q0", "q1"])
        with open_writer(tmp_path, (1, 1)) as writer:
            writer.append(record(3))
        assert [r.id for r in read_records(tmp_path)] == ["q0", "q1", "q3"]


def test_the_last_record_of_a_key_counts(tmp_path: Path) -> None:
    with open_writer(tmp_path, (1, 1)) as writer:
        writer.append(record(1, prediction="old"))
        writer.append(record(1, prediction="new"))
    assert [r.prediction for r in read_records(tmp_path)] == ["new"]


def test_records_survive_a_round_trip(tmp_path: Path) -> None:
    one = record(
        1, scores={"em": 1.0}, counts={"model_calls": {"draft": 2}}, hops=({"n": 1, "trigger": None},), confidence=0.5
    )
    with open_writer(tmp_path, (2, 3)) as writer:
        writer.append(one)
    assert read_records(tmp_path) == [one]
    assert (tmp_path / "questions-2.jsonl").exists()


def test_a_folder_with_records_but_no_description_is_not_overwritten(tmp_path: Path) -> None:
    with open_writer(tmp_path, (1, 1)) as writer:
        writer.append(record(1))
    with pytest.raises(UsageError, match=r"no run\.json"):
        prepare(tmp_path, RUN, resume=True, shared=False)


def test_a_broken_description_is_named(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(UsageError, match="not a run description"):
        read_run(tmp_path)


def test_the_first_start_is_kept(tmp_path: Path) -> None:
    prepare(tmp_path, msgspec.structs.replace(RUN, started="first"), resume=False, shared=False)
    joined = prepare(tmp_path, msgspec.structs.replace(RUN, started="second", n=None), resume=True, shared=False)
    assert (joined.started, joined.n) == ("first", None)


def test_the_room_loads_nothing_heavy() -> None:
    code = (
        "import sys; from mindchat.lab.evals import runner, report, chains, chain_run, chain_report, cluster,"
        " datasets\nprint([m for m in ('torch', 'transformers', 'textual', 'whoosh', 'bm25s', 'ray', 'sqlite3') if m in"
        " sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3]
    )
    assert done.stdout.strip() == "[]"
