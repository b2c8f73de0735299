"""llama.cpp as a reference of `bench decode`: a child process that speaks a few lines of JSON; here with a module that
computes nothing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from mindchat.errors import ResourceError, UsageError
from mindchat.lab.bench import bench_decode
from mindchat.lab.bench.llama import Absent, Found, Llama, find

pytestmark = pytest.mark.slow

REAL = [
    os.environ.get(f"MINDCHAT_LLAMA_{name}", "") for name in ("PYTHON", "GGUF")
]  # read before the environment is cleaned for each test
MODULE = """
__version__ = "9.9"
class Llama:
    def __init__(self, file, *, n_ctx, n_threads, n_threads_batch, verbose):
        print("chatter that must not reach the protocol")
        assert n_threads == n_threads_batch == 3 and n_ctx == 700 and not verbose
    def reset(self):
        self.clean = True
    def generate(self, ids, *, temp, repeat_penalty):
        assert self.clean and temp == 0.0 and repeat_penalty == 1.0
        self.clean = False
        if ids == [666]:
            raise SystemExit("no room for the context")
        at = ids[-1]
        while True:
            at += 1
            yield at
"""


@pytest.fixture
def gguf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file, and an environment whose interpreters have the module above."""
    (tmp_path / "llama_cpp.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for name in ("PYTHON", "GGUF"):
        monkeypatch.delenv(f"MINDCHAT_LLAMA_{name}", raising=False)
    file = tmp_path / "small.gguf"
    file.write_bytes(b"GGUF")
    return file


def test_it_generates_from_an_empty_cache_each_time(gguf: Path) -> None:
    found = find(gguf=gguf)
    assert found == Found(sys.executable, gguf)
    with Llama(found, threads=3, window=700) as llama:
        assert llama.version == "9.9"
        first = llama.generate([1, 2], 4)
        assert first.ids == (3, 4, 5, 6)
        assert 0 < first.first <= first.seconds
        assert llama.generate([7], 1).ids == (8,)
        assert llama.generate([7], 1).rate == 0.0
        with pytest.raises(ResourceError, match=r"small\.gguf: no room for the context"):
            llama.generate([666], 4)


def test_what_is_missing_is_said(gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = find()
    assert isinstance(absent, Absent)
    assert "--gguf" in absent.why
    with pytest.raises(UsageError, match="no file"):
        find(gguf=gguf.with_name("other.gguf"))
    with pytest.raises(UsageError, match="cannot be started"):
        find(str(gguf.parent / "no-python"), gguf)
    monkeypatch.setenv("MINDCHAT_LLAMA_GGUF", str(gguf))
    assert isinstance(find(), Found)
    gguf.with_name("llama_cpp.py").write_text("raise ImportError", encoding="utf-8")
    assert isinstance(find(), Absent)


def test_a_report_has_its_ratios(gguf: Path, tiny: Any) -> None:
    model = tiny("llama")
    model.ends = frozenset()
    with Llama(Found(sys.executable, gguf), threads=3, window=700) as llama:
        (row,) = bench_decode(
            model, "Paris is big. The capital of France is Paris.", lengths=(60,), tokens=5, repeats=1, llama=llama
        )["rows"]
    assert row["speed_llama"] == pytest.approx(row["llama_seconds"] / row["seconds"])
    assert row["llama_tokens_per_second"] > 0
    assert row["llama_same_until"] == 0  # its tokens are made up
    assert row["same_choice"] == 1.0


@pytest.mark.server
def test_a_real_one_reads_the_same_ids() -> None:
    found = find(REAL[0], Path(REAL[1]).expanduser())
    assert isinstance(found, Found)
    with Llama(found, threads=1, window=256) as llama:
        ran = llama.generate([1, 2, 3, 4, 5, 6, 7, 8], 6)
        assert len(ran.ids) == 6
        assert ran.ids == llama.generate([1, 2, 3, 4, 5, 6, 7, 8], 6).ids
