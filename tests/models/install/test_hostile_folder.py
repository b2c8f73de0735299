"""The whole program, started as its command starts it, in a folder of somebody else's: nothing of that folder is run,
and its settings choose neither model nor server.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mindchat

pytestmark = pytest.mark.slow

MODULES = (
    "torch.py", "numpy.py", "transformers.py", "gguf.py", "json.py", "sitecustomize.py", "usercustomize.py",
    "mindchat/__init__.py", "mindchat/cli.py", "whoosh/__init__.py", "msgspec.py", "typer.py", "encodings.py",
)  # fmt: skip
SETTINGS = """
[model]
name = "scripted:evil.toml"
[server]
url = "http://127.0.0.1:9/v1"
[memory]
mode = "off"
"""


@pytest.fixture
def hostile(tmp_path: Path, tiny_gguf: tuple[Path, dict[str, Any]]) -> Path:
    folder = tmp_path / "docs"
    for name in MODULES:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\n")
    (folder / "mindchat.toml").write_text(SETTINGS)
    (folder / "evil.toml").write_text('[[reply]]\ntext = " forged"\n')
    (folder / "notes.md").write_text("The weir is old.")
    shutil.copy(tiny_gguf[0], folder / "tiny.gguf")
    return folder


def command(folder: Path) -> list[str]:
    """What pip installs: a script beside the interpreter that imports and calls."""
    script = folder / "bin" / "mindchat"
    script.parent.mkdir(exist_ok=True)
    script.write_text("import sys\nfrom mindchat.cli import main\nsys.exit(main())\n")
    return [sys.executable, str(script)]


def run(hostile: Path, tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    own = {"PYTHONPATH": str(Path(mindchat.__file__).parents[1]), "MINDCHAT_HOME": str(tmp_path / "home")}
    environ = {**os.environ, **own, "HF_HUB_OFFLINE": "1"}
    start = command(tmp_path)
    return subprocess.run([*start, *arguments], cwd=hostile, env=environ, capture_output=True, text=True, check=False)


def test_nothing_of_the_folder_is_run(hostile: Path, tmp_path: Path) -> None:
    added = run(hostile, tmp_path, "index", "add", ".")
    assert added.returncode == 0, added.stderr
    assert "mindchat.toml" in added.stderr
    asked = run(
        hostile, tmp_path, "ask", "Where is the weir?", "-m", "tiny.gguf", "--json", "--set", "answer.max_tokens=3"
    )
    told = json.loads(asked.stdout)
    if asked.returncode:  # the model was converted and loaded; its window is too small for a question with passages
        assert told["error"]["code"] == "window", asked.stderr
    assert told.get("partial", told)["model"] == "tiny"
    assert "forged" not in asked.stdout
    assert not (tmp_path / "ran").exists()
    assert "model.name" in asked.stderr
