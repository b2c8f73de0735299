"""Torch's libraries are open before the import, and whatever goes wrong with that leaves the import as it was."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mindchat.models.preload import libraries, preload

ASIDE = """
import sys
from pathlib import Path
from mindchat.models.preload import libraries, preload
assert "torch" not in sys.modules
paths = libraries()
count = preload()
mapped = Path("/proc/self/maps").read_text() if Path("/proc/self/maps").exists() else None
assert "torch" not in sys.modules, "preloading must not import"
assert mapped is None or all(path.resolve().name in mapped for path in paths), paths
import torch
assert preload() == 0, "once it is imported there is nothing left to do"
print(count, len(paths), float(torch.ones(2).sum()))
"""

GAP = """
import sys, threading, time
gaps, done = [], threading.Event()
def beat():
    last = time.monotonic()
    while not done.is_set():
        time.sleep(0.005)
        now = time.monotonic()
        gaps.append(now - last)
        last = now
threading.Thread(target=beat, daemon=True).start()
if sys.argv[1] == "preloaded":
    from mindchat.models.preload import preload
    preload()
import torch
done.set()
print(max(gaps))
"""


def python(code: str, *arguments: str) -> str:
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, timeout=300).stdout


@pytest.mark.skipif(not libraries(), reason="this build of torch keeps its libraries elsewhere")
def test_libraries_are_mapped_before_the_import_and_torch_works() -> None:
    count, wanted, total = python(ASIDE).split()
    assert int(count) == int(wanted) >= 3
    assert float(total) == 2.0


@pytest.mark.parametrize("package", ["no_such_package", "json"])
def test_another_layout_is_left_alone(package: str) -> None:
    assert libraries(package) == []
    assert preload(package) == 0


def test_a_file_that_cannot_be_mapped_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken_package"
    (broken / "lib").mkdir(parents=True)
    (broken / "__init__.py").touch()
    (broken / "lib" / "libc10.so").write_bytes(b"not a library")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [path.name for path in libraries("broken_package")] == ["libc10.so"]
    assert preload("broken_package") == 0


@pytest.mark.bench
def test_the_longest_stall_is_shorter() -> None:
    plain, preloaded = (min(float(python(GAP, mode)) for _ in range(3)) for mode in ("plain", "preloaded"))
    assert preloaded < plain
