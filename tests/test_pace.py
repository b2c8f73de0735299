"""What earlier turns took, and what follows for the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindchat import events as ev
from mindchat.config import Config, change
from mindchat.pace import (
    Forecast,
    Pace,
    PaceFile,
    Ratio,
    about,
    cost_of_copies,
    forecast,
    joined,
    measure,
    said_of,
    said_of_copies,
)
from mindchat.values import Prompt

ONCE = change(Config(), "layout.repeat", "1")


def built(tokens: int, copies: int, purpose: str = "answer") -> ev.PromptBuilt:
    return ev.PromptBuilt(Prompt(()), "", (("p1", "p2"),) * copies, tokens, 4096, purpose)


def turn(
    read: int = 900, cached: int = 100, read_seconds: float = 9.0, written: int = 20, write_seconds: float = 4.0
) -> list[ev.Event]:
    total = read + cached
    return [
        built(total, 2),
        ev.PromptPrefilled(cached + read // 2, total, cached, read_seconds / 2),
        ev.PromptPrefilled(total, total, cached, read_seconds),
        ev.ModelAsked("answer", read, cached, written, read_seconds + write_seconds),
    ]


def test_reading_and_writing_are_told_apart() -> None:
    pace = measure(turn(), ONCE)
    assert (pace.reading.value, pace.writing.value, pace.copy.value) == (100.0, 5.0, 500.0)


def test_a_sentence_that_goes_on_counts_as_writing_and_a_side_call_does_not() -> None:
    going_on = ev.ModelAsked("draft", 0, 0, 10, 2.0)
    side = ev.ModelAsked("extract", 300, 0, 10, 30.0)
    pace = measure([*turn(), going_on, side], ONCE)
    assert pace.writing == Ratio(30, 6.0)
    (work,) = pace.work.values()
    assert (work.read.value, work.written.value) == (1200, 40), "both are work"


def test_the_forecast_is_work_over_speed() -> None:
    assert forecast(measure(turn(), ONCE), ONCE) == Forecast(900, 20, 13.0)


@pytest.mark.parametrize("pace", [Pace(), measure([], ONCE), measure([ev.ModelAsked("answer", 500, 0, 0, 3.0)], ONCE)])
def test_what_was_never_measured_has_no_forecast(pace: Pace) -> None:
    assert forecast(pace, ONCE) is None
    assert cost_of_copies(pace, 1) is None


def test_another_policy_has_none_until_it_was_tried() -> None:
    pace, mind = measure(turn(), ONCE), change(ONCE, "engine.policy", "mind")
    assert forecast(pace, mind) is None
    pace = joined(pace, measure(turn(read=2000), mind))
    assert forecast(pace, mind) is not None
    assert forecast(pace, ONCE) is not None


@pytest.mark.parametrize(("repeat", "read"), [("0", 400.0), ("2", 1400.0), ("3", 1900.0)])
def test_other_numbers_of_copies_are_carried_over(repeat: str, read: float) -> None:
    found = forecast(measure(turn(), ONCE), change(ONCE, "layout.repeat", repeat))
    assert found == Forecast(read, 20, read / 100 + 4.0)


def test_auto_is_only_known_by_itself() -> None:
    assert forecast(measure(turn(), ONCE), change(ONCE, "layout.repeat", "auto")) is None


def test_the_newest_turn_counts_most() -> None:
    slow = measure(turn(read_seconds=90.0, write_seconds=40.0), ONCE)
    pace = joined(slow, measure(turn(), ONCE))
    for _ in range(12):
        pace = joined(pace, measure(turn(), ONCE))
    assert pace.reading.value == pytest.approx(100.0, rel=0.05)
    only_read = joined(pace, measure([ev.PromptPrefilled(10, 10, 0, 1.0)], ONCE))
    assert only_read.writing == pace.writing, "what a turn does not tell stays"


def test_copies_cost_reading_and_no_writing() -> None:
    extra = cost_of_copies(measure(turn(), ONCE), 2)
    assert extra is not None
    assert (extra.tokens, extra.seconds) == (1000.0, 10.0)
    assert said_of_copies(extra) == "+1,000 tokens, about 10 s"
    assert (
        said_of(Forecast(900, 20, 31.0), extra)
        == "about 31 s: about 900 tokens to read, 20 to write; +1,000 tokens, about 10 s for repeating the documents"
    )
    assert about(150) == "about 2 min"


def test_it_is_kept_for_each_model_and_a_broken_file_is_begun_anew(tmp_path: Path) -> None:
    file = tmp_path / "cache" / "pace.json"
    kept, other = PaceFile(file), change(ONCE, "model.name", "smollm2-135m")
    assert kept.read(ONCE) == Pace()
    kept.add(ONCE, measure(turn(), ONCE))
    kept.add(other, measure(turn(read_seconds=3.0), other))
    again = PaceFile(file)
    assert forecast(again.read(ONCE), ONCE) == Forecast(900, 20, 13.0)
    assert again.read(other).reading.value == 300.0
    file.write_text("{broken")
    assert again.read(ONCE) == Pace()
    again.add(ONCE, measure(turn(), ONCE))
    assert again.read(ONCE).reading.value == 100.0


def test_a_folder_that_cannot_be_written_costs_only_the_forecast_and_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache").write_text("a file, no folder")
    kept = PaceFile(tmp_path / "cache" / "pace.json")
    kept.add(ONCE, measure(turn(), ONCE))
    assert kept.read(ONCE) == Pace()
    assert "is not kept" in caplog.text
