"""Files that are replaced: the old content or the new one, whatever happens in between."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import mindchat
from mindchat.storage.atomic import replacing, write_atomic

PACKAGE = Path(mindchat.__file__).parent
RENAMES = {
    "storage/atomic.py": "the one way",
    "storage/migrations.py": "a damaged file is set aside under another name",
    "models/install/convert.py": "a folder takes the place of a folder",
    "models/install/download.py": "the unfinished file is kept, to go on from it",
    "models/install/pull.py": "the unfinished file is kept, to go on from it",
    "corpus/search/generations.py": "a folder takes the place of a folder",
    "models/install/model_store.py": "a folder takes another name before it is removed",
}
"""Files that rename, and why they do not replace a small file."""


def test_the_new_file_is_whole_private_and_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")
    write_atomic(path, "new é")
    assert path.read_text(encoding="utf-8") == "new é"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("fault", [OSError("disk full"), KeyboardInterrupt(), ValueError()])
def test_a_failure_leaves_the_old_file_and_no_part(tmp_path: Path, fault: BaseException) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def fail() -> None:
        with replacing(path) as part:
            part.write_bytes(b"half")
            raise fault

    with pytest.raises(type(fault)):
        fail()
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"old", [path])


def test_several_writers_leave_one_of_their_contents(tmp_path: Path) -> None:
    path, contents = tmp_path / "a", [bytes([65 + n]) * 50_000 for n in range(8)]
    threads = [threading.Thread(target=write_atomic, args=(path, content)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_kill_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"A" * 300_000)
    code = (
        "import sys\nfrom pathlib import Path\nfrom mindchat.storage.atomic import write_atomic\n"
        "print('begun', flush=True)\n"
        "while True:\n    for letter in b'AB': write_atomic(Path(sys.argv[1]), bytes([letter]) * 300_000)"
    )
    for _ in range(3):
        child = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, cwd=PACKAGE.parent)
        assert child.stdout is not None
        child.stdout.readline()
        child.kill()
        child.wait()
        child.stdout.close()
        assert path.read_bytes() in (b"A" * 300_000, b"B" * 300_000)


def test_no_other_place_replaces_a_file() -> None:
    found = set()
    for source in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                by_os = ast.unparse(node.func) in ("os.replace", "os.rename")
                by_path = node.func.attr in ("replace", "rename") and len(node.args) == 1 and not node.keywords
                if by_os or by_path:
                    found.add(source.relative_to(PACKAGE).as_posix())
    assert found - set(RENAMES) == set()
