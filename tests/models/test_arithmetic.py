from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mindchat.models import arithmetic
from mindchat.models.arithmetic import prefers_int8

IDS = [5, 6, 7, 8, 9, 10]


def test_the_choice_is_measured_once_and_kept(tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = tiny("llama").backbone.model
    memo = tmp_path / "cache" / "arithmetic.json"
    speeds = iter([2.0, 1.0])
    monkeypatch.setattr(arithmetic, "_seconds", lambda *_: next(speeds))
    assert prefers_int8(network, IDS, memo=memo)
    assert prefers_int8(network, IDS, memo=memo)  # a second measurement would find no number
    memo.write_text("{broken")
    speeds = iter([1.2, 1.0])
    assert not prefers_int8(network, IDS, memo=memo)


def test_other_layouts_never_prefer_it_and_a_real_measurement_ends(tiny: Any, tmp_path: Path) -> None:
    assert not prefers_int8(tiny("gemma3").backbone.model, IDS, memo=tmp_path / "a.json")
    assert not (tmp_path / "a.json").exists()  # nothing was measured
    assert prefers_int8(tiny("qwen2").backbone.model, IDS, memo=tmp_path / "a.json") in (True, False)


def test_auto_asks_for_it(tiny: Any) -> None:
    assert tiny("llama", arithmetic="auto").backbone.arithmetic in ("fp32", "int8")
    assert tiny("llama").backbone.arithmetic == "fp32"
