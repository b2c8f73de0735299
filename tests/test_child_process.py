"""No child interpreter imports from the current folder, and there is one way to start one."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mindchat
from mindchat import child_process

PACKAGE = Path(mindchat.__file__).parent
HOSTILE = ("torch.py", "sitecustomize.py", "usercustomize.py", "json.py", "numpy.py", "gguf.py", "mindchat/__init__.py")
STARTERS = {
    "child_process.py": "the one way",
    "tui/clipboard.py": "a clipboard tool, no interpreter",
    "lab/evals/cluster.py": "a shard's command, made by child_process.command",
    "lab/bench/llama.py": "an interpreter that the user names, started in another folder",
}


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder whose every module leaves a trace when it is run."""
    folder = tmp_path / "docs"
    for name in HOSTILE:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).write_text({name!r})\n")
    return folder


CODE = "import sys, json\nimport mindchat\nprint(json.dumps([mindchat.__file__, sys.path]))"


@pytest.mark.parametrize("path", ["", os.pathsep, f"{os.pathsep}.", "."])
def test_a_child_imports_nothing_from_the_current_folder(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(hostile)
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setattr(sys, "path", ["", ".", str(hostile), *sys.path])
    done = child_process.run(["-c", CODE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert str(PACKAGE) in done.stdout
    assert str(hostile) not in done.stdout
    assert not (tmp_path / "ran").exists()


def test_python_m_mindchat_leaves_the_folder_it_was_called_in(hostile: Path, tmp_path: Path) -> None:
    """Only a folder that holds a package of this very name is found before us, and nothing of ours runs then."""
    (hostile / "mindchat" / "__init__.py").unlink()
    environ = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "MINDCHAT_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "mindchat", "index", "status", "--json"]
    for name in ("sitecustomize.py", "usercustomize.py"):
        (
            hostile / name
        ).unlink()  # Python runs these before any program may speak; PYTHONPATH does not name the folder in real use
    done = subprocess.run(command, cwd=hostile, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(os.name != "posix", reason="executables by their mode")
@pytest.mark.parametrize("entry", ["", ".", "HERE"])
def test_a_program_of_the_current_folder_is_none(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    """`xclip` in a folder of documents, and a PATH that begins there."""
    from mindchat.tui.clipboard import local_tool

    (hostile / "xclip").write_text("#!/bin/sh\n")
    (hostile / "xclip").chmod(0o755)
    monkeypatch.chdir(hostile)
    monkeypatch.setenv("PATH", str(hostile) if entry == "HERE" else f"{entry}{os.pathsep}/nowhere")
    assert child_process.find_program("xclip") is None
    assert local_tool({"DISPLAY": ":0"}, "linux") is None
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(hostile))
    assert child_process.find_program("xclip") == str(hostile / "xclip")


def test_no_other_place_starts_a_process() -> None:
    found = set()
    for source in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name = ast.unparse(node.func)
                if name in (
                    "subprocess.Popen",
                    "subprocess.run",
                    "subprocess.call",
                    "subprocess.check_output",
                    "subprocess.check_call",
                ) or (
                    name.startswith(
                        ("os.exec", "os.spawn", "os.posix_spawn", "os.system", "os.popen", "multiprocessing.")
                    )
                ):
                    found.add(source.relative_to(PACKAGE).as_posix())
            if isinstance(node, ast.ImportFrom | ast.Import):
                names = {node.module} if isinstance(node, ast.ImportFrom) else {alias.name for alias in node.names}
                assert not any(str(name).split(".")[0] == "multiprocessing" for name in names), source
                assert not (isinstance(node, ast.ImportFrom) and node.module == "subprocess"), source
    assert found == set(STARTERS)
