"""torch's libraries come into the process without the interpreter lock, and the import takes them as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mindchat.config import ModelSection
from mindchat.models import MODELS, loader
from mindchat.models.network import torch_mapping

ROOT = Path(__file__).parents[3]
MAPPED = """
import sys
from mindchat.models.network.torch_mapping import library_folder, map_libraries
def mapped():
    with open("/proc/self/maps") as maps:
        return {line.split()[-1] for line in maps if "libtorch_cpu" in line or "libgomp" in line}
assert not mapped()
assert map_libraries()
early = mapped()
assert any("libtorch_cpu" in path for path in early), early
assert all(str(library_folder()) in path for path in early if "torch" in path)
assert "torch" not in sys.modules
import torch
assert mapped() == early, mapped() ^ early
assert torch.ones(3).sum().item() == 3
assert not map_libraries(), "torch is there already"
"""
BEAT = """
import os, sys, threading, time
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
from mindchat.models.network.torch_mapping import map_libraries
gaps, over = [], threading.Event()
def beat():
    last = time.monotonic()
    while not over.wait(0.01):
        now = time.monotonic()
        gaps.append(now - last)
        last = now
heart = threading.Thread(target=beat)
heart.start()
if sys.argv[1] == "mapped":
    assert map_libraries()
import torch
over.set()
heart.join()
print(max(gaps))
"""


def run(code: str, *args: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=ROOT,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux lists what is mapped")
def test_the_import_finds_the_same_files_in_place() -> None:
    run(MAPPED)


@pytest.mark.skipif(os.name != "posix", reason="torch does it itself on Windows")
def test_what_cannot_be_mapped_is_left_to_the_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert not torch_mapping.map_libraries(tmp_path)
    (tmp_path / "libtorch_global_deps.so").write_bytes(b"\x7fELF but cut off")
    (tmp_path / "libtorch_global_deps.dylib").write_bytes(b"cut off")
    assert not torch_mapping.map_libraries(tmp_path)
    monkeypatch.setattr(torch_mapping, "find_spec", lambda name: None)
    assert not torch_mapping.map_libraries()

    def broken(name: str) -> None:
        raise ValueError(f"{name}.__spec__ is None")

    monkeypatch.setattr(torch_mapping, "find_spec", broken)
    assert torch_mapping.library_folder() is None


def test_the_way_of_waiting_is_set_before_openmp_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.setattr(loader, "map_libraries", lambda: seen.append(os.environ.get("OMP_WAIT_POLICY")))
    monkeypatch.setattr(loader, "_folder", lambda *_: (tmp_path, "x"))
    monkeypatch.setattr(loader, "shape_of_folder", lambda folder: None)
    monkeypatch.setattr(loader, "_fit", lambda *_: None)
    monkeypatch.setattr(loader, "settings_for", lambda section, fitted: section)
    monkeypatch.setitem(MODELS.own, "hf", "mindchat_absent_backend:LocalModel")
    with pytest.raises(ModuleNotFoundError, match="absent"):
        loader.open_model(ModelSection(name="x"), tmp_path)
    assert seen == ["PASSIVE"]


@pytest.mark.bench
def test_other_threads_go_on_while_torch_is_imported() -> None:
    gaps = {kind: min(float(run(BEAT, kind)) for _ in range(3)) for kind in ("mapped", "plain")}
    assert gaps["mapped"] < 0.25, gaps
    assert gaps["mapped"] < gaps["plain"], gaps
