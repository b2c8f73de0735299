"""The README's Python snippet, run as it stands; and the names the package offers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mindchat
from mindchat import wiring
from mindchat.models.scripted import ScriptedModel

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_snippet_of_the_readme_runs(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tape = ["The composer was Harry Carroll. So the answer is Atlantic City.", " Atlantic City"]
    monkeypatch.setattr(wiring, "load_model", lambda config, progress: ScriptedModel(tape))
    snippets = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(snippets) == 1
    exec(compile(snippets[0], "README.md", "exec"), {})
    assert "Atlantic City" in capsys.readouterr().out


def test_every_public_name_exists() -> None:
    assert sorted(mindchat.__all__) == list(mindchat.__all__)
    for name in mindchat.__all__:
        assert getattr(mindchat, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        mindchat.nothing  # noqa: B018
