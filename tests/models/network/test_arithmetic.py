from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mindchat.models import local
from mindchat.models.network import arithmetic, projections
from mindchat.models.network import speed_race as race_module
from mindchat.models.network.arithmetic import quickest_step
from mindchat.models.network.speed_race import Raced

IDS = [5, 6, 7, 8, 9, 10]


@pytest.mark.parametrize(("missing", "rival"), [("", "fp16"), ("fp16", "int8")])
def test_a_sure_choice_is_measured_once_and_kept(
    tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str, rival: str
) -> None:
    if missing == "" and not projections.possible("fp16"):
        pytest.skip("no kernel on this processor")
    network = tiny("llama").backbone.model
    memo = tmp_path / "cache" / "arithmetic.json"
    outcomes = iter(
        [Raced(2.0, won=True, sure=False), Raced(2.0, won=True, sure=True), Raced(1.2, won=False, sure=True)]
    )
    monkeypatch.setattr(arithmetic, "race", lambda *_: next(outcomes))
    monkeypatch.setattr(projections, "possible", lambda step: step != missing)
    assert quickest_step(network, IDS, memo=memo) == (rival, False)
    assert not memo.exists()
    assert quickest_step(network, IDS, memo=memo) == (rival, True)
    assert quickest_step(network, IDS, memo=memo) == (rival, True)  # from the memo
    memo.write_text("{broken")
    assert quickest_step(network, IDS, memo=memo) == ("fp32", True)


def runs(seconds: Sequence[float], clock: list[float]) -> Callable[[], object]:
    """A way whose runs take these seconds, the last one again and again."""
    left = list(seconds)

    def way() -> None:
        clock[0] += left.pop(0) if len(left) > 1 else left[0]

    return way


@pytest.mark.parametrize(
    ("base", "rival", "won", "sure", "rounds"),
    [
        ([2.0], [1.0], True, True, 5),
        ([1.0], [1.0], False, True, 5),
        ([2.0], [9.0, 1.0, 9.0, 9.0, 1.0, 1.0, 1.0], True, True, 7),  # a busy moment that passes
        ([2.0], [1.0, 9.0], True, False, 15),  # a machine that stays busy: quick once, slow ever after
        ([1.0], [9.0], False, True, 2),  # not worth more of it
    ],
)
def test_a_race_is_run_until_it_is_clear(
    base: list[float], rival: list[float], won: bool, sure: bool, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, counted = [0.0], [0]
    monkeypatch.setattr(race_module.time, "perf_counter", lambda: clock[0])
    ways = runs(base, clock), runs(rival, clock)

    def counting() -> None:
        counted[0] += 1
        ways[0]()

    found = race_module.race(counting, ways[1], 1.3)
    assert (found.won, found.sure, counted[0]) == (won, sure, rounds)


def test_other_layouts_never_prefer_it_and_a_real_measurement_ends(tiny: Any, tmp_path: Path) -> None:
    assert quickest_step(tiny("gemma3").backbone.model, IDS, memo=tmp_path / "a.json") == ("fp32", True)
    assert not (tmp_path / "a.json").exists()  # nothing was measured
    step, sure = quickest_step(tiny("qwen2").backbone.model, IDS, memo=tmp_path / "a.json")
    assert (tmp_path / "a.json").exists() == sure
    if sure:  # what was measured is what is taken, then and later
        (ratio,) = json.loads((tmp_path / "a.json").read_text()).values()
        assert (step != "fp32") == (ratio >= arithmetic.WORTH)


def test_auto_asks_for_it(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for step in ("int8", "fp32"):
        monkeypatch.setattr(local, "quickest_step", lambda *_, step=step, **__: (step, True))
        assert tiny("llama", arithmetic="auto").backbone.arithmetic == step
    monkeypatch.setattr(local, "quickest_step", lambda *_, **__: ("int8", True))
    assert tiny("llama").backbone.arithmetic == "fp32"
