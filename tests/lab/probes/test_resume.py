"""A probe that was killed goes on where it was: nothing twice, nothing lost, nothing mixed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from mindchat.errors import IndexLockedError, Interrupted, UsageError
from mindchat.lab.probes.cases import Options, Run
from mindchat.lab.probes.lists import Lists
from mindchat.lab.probes.records import open_writer, read_records, read_run
from mindchat.lab.probes.running import Planned, run
from mindchat.ports import Cancel

from .conftest import Reader

pytestmark = pytest.mark.slow

OPTIONS = Options(n=3, repeats=(0, 1), lists=(3, 1))


def about(**options: object) -> Run:
    return Run("lists", "reader", {"n": 3, "seed": 0, "repeats": (0, 1), "role": "user", "lists": (3, 1), **options})


def test_an_interrupted_run_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    list(run(Lists(), OPTIONS, Reader(), about(), out=tmp_path / "whole"))
    model, cancel = Reader(), Cancel()
    events = run(Lists(), OPTIONS, model, about(), out=tmp_path / "parts", cancel=cancel)
    for _ in range(4):
        next(events)
    cancel.set()
    with pytest.raises(Interrupted):
        list(events)
    assert model.asked == 3
    path = tmp_path / "parts" / "measurements.jsonl"
    with path.open("ab") as file:
        file.write(b'{"case":"3x3-00')
    news = list(run(Lists(), OPTIONS, model, about(), out=tmp_path / "parts", resume=True))
    assert news[0] == Planned(12, 3, 6)
    assert model.asked == 12, "nothing is measured twice"

    def stripped(folder: str) -> list[object]:
        return [(r.key, r.values, r.said, r.gold) for r in read_records(tmp_path / folder)]

    assert stripped("parts") == stripped("whole")


def test_more_cases_and_repetitions_may_be_added(tmp_path: Path) -> None:
    model, out = Reader(), tmp_path / "o"
    list(run(Lists(), OPTIONS, model, about(), out=out))
    more = replace(OPTIONS, n=4, repeats=(0, 1, 2))
    news = list(run(Lists(), more, model, about(n=4, repeats=(0, 1, 2)), out=out, resume=True))
    assert news[0] == Planned(24, 12, 8)


def test_asking_for_less_forgets_nothing_of_what_is_there(tmp_path: Path) -> None:
    out = tmp_path / "o"
    list(run(Lists(), OPTIONS, Reader(), about(), out=out))
    less = replace(OPTIONS, n=1, repeats=(0, 2), lists=(6, 1))
    list(run(Lists(), less, Reader(), about(n=1, repeats=(0, 2), lists=(6, 1)), out=out, resume=True))
    described = read_run(out)
    assert described is not None
    assert described.options == {"n": 3, "seed": 0, "repeats": [0, 1, 2], "role": "user", "lists": [6, 3, 1]}
    assert len(read_records(out)) == 12 + 3, "6 lists at both repetitions, 1 list at the new one"


@pytest.mark.parametrize("change", [{"seed": 1}, {"role": "assistant"}])
def test_another_run_is_refused(change: dict[str, object], tmp_path: Path) -> None:
    out = tmp_path / "o"
    list(run(Lists(), OPTIONS, Reader(), about(), out=out))
    with pytest.raises(UsageError, match="already holds a run"):
        list(run(Lists(), OPTIONS, Reader(), about(), out=out))
    with pytest.raises(UsageError, match="another"):
        list(run(Lists(), OPTIONS, Reader(), about(**change), out=out, resume=True))


def test_a_broken_line_inside_is_named(tmp_path: Path) -> None:
    out = tmp_path / "o"
    list(run(Lists(), OPTIONS, Reader(), about(), out=out))
    path = out / "measurements.jsonl"
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], b"{broken", *lines[1:]]))
    with pytest.raises(UsageError, match=r"measurements\.jsonl:2"):
        read_records(out)


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    with open_writer(tmp_path), pytest.raises(IndexLockedError), open_writer(tmp_path):
        pass


KILLED = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.lab.probes.conftest import Reader
from tests.lab.probes.test_resume import OPTIONS, about
from mindchat.lab.probes.lists import Lists
from mindchat.lab.probes.running import run
for event in run(Lists(), OPTIONS, Reader(), about(), out=Path(sys.argv[1])):
    time.sleep(0.2)
"""


@pytest.mark.skipif(os.name == "nt", reason="no kill -9")
def test_kill_9_loses_no_finished_measurement(tmp_path: Path) -> None:
    out = tmp_path / "o"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(out), str(Path(__file__).parents[3])])
    path = out / "measurements.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not path.exists() or path.read_bytes().count(b"\n") < 2):
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    before = read_records(out)
    assert 2 <= len(before) < 12
    model = Reader()
    list(run(Lists(), OPTIONS, model, about(), out=out, resume=True))
    assert model.asked == 12 - len(before)
    assert read_records(out)[: len(before)] == before
