"""A hundred hostile files and folders, each in a fresh home beside a good file: `mindchat index add` from that folder.

Held each time: exit code 0 and no fault in what is printed; the good file is found; nothing from outside the folder is;
nothing of the folder was run; index and registry agree; less than 1.5 GB and two minutes. A settings file that is not one
ends the command instead, in a sentence.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .hostile import CANARY, FILES
from .program import run, write

pytestmark = [pytest.mark.soak, pytest.mark.skipif(os.name != "posix", reason="pipes, sockets and names of Linux")]
UNUSABLE = {"deep-setting", "many-settings"}
seen: list[tuple[float, float, str]] = []


@pytest.fixture(scope="module", autouse=True)
def table() -> Iterator[None]:
    """One line about all that ran in this process."""
    yield
    slowest, largest = max(seen), max((peak, name) for _, peak, name in seen)
    print(  # noqa: T201
        f"\n{len(seen)} hostile; slowest {slowest[0]:.1f} s ({slowest[2]}), largest {largest[0]:.0f} MB ({largest[1]})"
    )


def test_there_are_a_hundred() -> None:
    assert len(FILES) >= 100


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder that is removed by a tool that does not mind how deep it is; pytest's own way does."""
    yield tmp_path
    subprocess.run(["rm", "-rf", str(tmp_path)], check=True)


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_costs_itself_only(place: Path, name: str) -> None:
    docs, home = place / "docs", place / "home"
    write(docs, {"good.md": "The weir is old."})
    write(place, {"outside.txt": CANARY, "outside/x.txt": CANARY})
    FILES[name](docs)
    before = set(place.iterdir())
    ended = run(home, docs, "index", "add", str(docs), "--json")
    seen.append((ended.seconds, ended.peak_mb, name))
    if name in UNUSABLE:  # settings that cannot be read end a command in that folder with a sentence
        assert (ended.code, ended.faults, ended.told["error"]["code"]) == (2, [], "config"), ended.out[-2000:]
        return
    assert (ended.code, ended.faults) == (0, []), ended.out[-2000:] + ended.err[-2000:]
    report = ended.told
    assert all("\x1b" not in str(entry) for kind in ("failed", "skipped") for entry in report[kind])
    hits = run(home, docs, "index", "search", "weir", "--json")
    assert "good.md" in [Path(hit["document"]).name for hit in hits.told["hits"]], hits.out[-500:]
    assert CANARY not in run(home, docs, "index", "search", CANARY, "--json").out.replace(f'"{CANARY}"', "")
    assert run(home, docs, "index", "verify").code == 0
    assert set(place.iterdir()) - before <= {home}
    assert not Path("/tmp/slipped.txt").exists()
    assert ended.peak_mb < 1500
