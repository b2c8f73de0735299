"""What each probe asks, and what comes of it."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from mindchat.errors import UsageError
from mindchat.lab.evals import study
from mindchat.lab.evals.kept_results import keep
from mindchat.lab.probes import PROBES
from mindchat.lab.probes.cases import Options, Record, Run
from mindchat.lab.probes.chart import draw
from mindchat.lab.probes.lists import Lists, only_number
from mindchat.lab.probes.lists import draw as draw_lists
from mindchat.lab.probes.noise import AMOUNTS, Noise
from mindchat.lab.probes.order import Orders
from mindchat.lab.probes.position import Positions
from mindchat.lab.probes.questions import demo, studies
from mindchat.lab.probes.report import build, find, markdown, write
from mindchat.lab.probes.running import Finished, Measured, measure, run
from mindchat.prompts.core import copies_of

from .conftest import Reader


def about(name: str) -> Run:
    return Run(name, "reader", {"n": 1})


def records(name: str, options: Options, model: Reader, folder: Path) -> list[Record]:
    events = list(run(find(name), options, model, about(name), out=folder))
    assert isinstance(events[-1], Finished)
    from mindchat.lab.probes.records import read_records

    return read_records(folder)


# ── lists ──


def test_the_lists_are_as_the_paper_says() -> None:
    for k in (10, 6, 3, 1):
        rows = draw_lists(k, 0, 5)
        flat = [number for row in rows for number in row]
        assert len(rows) == k
        assert all(len(row) == 3 for row in rows)
        assert len(set(flat)) == len(flat)
        assert all(0 <= number <= 9999 for number in flat)
    assert draw_lists(10, 0, 5) == draw_lists(10, 0, 5) != draw_lists(10, 1, 5)
    assert Lists().defaults.repeats == tuple(range(11))
    assert Lists().defaults.lists == (10, 6, 3, 1)


def test_a_larger_n_extends_a_smaller_one() -> None:
    options = Options(n=2, repeats=(0,), lists=(3,))
    few, many = ([case.id for case in Lists().cases(replace(options, n=n))] for n in (2, 5))
    assert many[:2] == few
    first, second = (next(iter(Lists().cases(replace(options, n=n)))).cells[0].gold for n in (2, 5))
    assert first == second


@pytest.mark.parametrize(
    ("said", "number"),
    [("512", 512), ("The first is 512.", 512), ("list 0: 512", None), ("none", None), ("512, yes 512", 512)],
)
def test_one_number_or_none(said: str, number: int | None) -> None:
    assert only_number(said) == number


def test_reading_left_to_right_needs_two_copies(reader: Reader, tmp_path: Path) -> None:
    found = records("lists", Options(n=4, repeats=(0, 1, 2), lists=(6, 1)), reader, tmp_path / "out")
    right = {repeat: [r.values["accuracy"] for r in found if r.repeat == repeat] for repeat in (0, 1, 2)}
    assert right == {0: [0.0] * 8, 1: [1.0] * 8, 2: [1.0] * 8}
    (panel,) = Lists().panels(found)
    assert [series.name for series in panel.series] == ["6 lists", "1 list"]
    assert [point.mean for point in panel.series[0].points] == [0.0, 1.0, 1.0]
    assert all(point.n == 4 for point in panel.series[0].points)


# ── order ──


def test_every_order_of_the_documents_once(questions: Path) -> None:
    (case,) = Orders().cases(Options(n=1, documents=4, repeats=(0, 1), questions=questions))
    assert len(case.cells) == math.factorial(4) * 2
    orders = {copies_of(cell.lay())[0] for cell in case.cells}
    assert len(orders) == 24
    assert len({frozenset(order) for order in orders}) == 1
    number = case.id[1:]
    assert {f"q{number}p3", f"q{number}p7"} <= set(next(iter(orders))), "the supports are always there"
    for cell in case.cells:
        order = copies_of(cell.lay())[0]
        needed = [order.index(f"q{number}p7"), order.index(f"q{number}p3")]
        assert cell.facts["descents"] == float(needed[1] < needed[0])
        assert len(copies_of(cell.lay())) == cell.repeat + 1


def test_orders_are_ranked_by_the_first_reading_and_followed(reader: Reader, questions: Path, tmp_path: Path) -> None:
    found = records("order", Options(n=2, documents=3, repeats=(0, 1), questions=questions), reader, tmp_path / "out")
    probability, f1, by_descents = Orders().panels(found)
    curves = {series.name: [point.mean for point in series.points] for series in probability.series}
    assert curves["best order"][0] > curves["mean over orders"][0] > curves["worst order"][0]
    one = [r for r in found if r.case == found[0].case and r.repeat == 0]
    values = sorted(r.values["probability"] for r in one)
    ids = {r.case for r in found}
    assert len(ids) == 2
    expected = sum(max(r.values["probability"] for r in found if r.case == case and r.repeat == 0) for case in ids) / 2
    assert math.isclose(curves["best order"][0], expected, rel_tol=1e-6)
    assert len(values) == 6
    assert {series.name: [point.mean for point in series.points] for series in f1.series}["best order"] == [0.0, 1.0]
    assert [series.name for series in by_descents.series] == ["0 descents", "1 descents"]


# ── noise and position ──


def test_more_noise_contains_less(questions: Path) -> None:
    (case,) = Noise().cases(Options(n=1, repeats=(0,), questions=questions))
    shown = [copies_of(cell.lay())[0] for cell in case.cells]
    assert [cell.at for cell in case.cells] == [amount for amount in AMOUNTS if amount <= 10]
    assert [len(ids) for ids in shown] == [2, 3, 4, 6, 10]
    for less, more in itertools.pairwise(shown):
        assert [pid for pid in more if pid in less] == list(less), "the smaller context in the same order"
    assert all(f"{case.id}p3" in ids and f"{case.id}p7" in ids for ids in shown)


def test_the_supports_move_through_the_same_noise(questions: Path) -> None:
    (case,) = Positions().cases(Options(n=1, repeats=(0, 1), questions=questions))
    assert sorted({cell.at for cell in case.cells}) == [
        0,
        2,
        4,
        6,
        8,
        10,
    ], "no position that the question does not have"
    supports = (f"{case.id}p3", f"{case.id}p7")
    rests = set()
    for cell in case.cells:
        order = copies_of(cell.lay())[0]
        at = order.index(supports[0])
        assert order[at : at + 2] == supports
        assert at == cell.at
        rests.add(tuple(pid for pid in order if pid not in supports))
    assert len(rests) == 1


@pytest.mark.parametrize("name", ["noise", "position"])
def test_both_are_scored_by_the_data_sets_rule(name: str, reader: Reader, questions: Path, tmp_path: Path) -> None:
    found = records(name, Options(n=3, repeats=(0, 1), questions=questions), reader, tmp_path / "out")
    assert {r.values["f1"] for r in found if r.repeat == 0} == {0.0}
    assert {r.values["f1"] for r in found if r.repeat == 1} == {1.0}
    assert all(r.values["logprob"] < 0 for r in found)
    assert all(r.values["probability"] == pytest.approx(math.exp(r.values["logprob"])) for r in found)
    f1, probability = find(name).panels(found)
    for panel in (f1, probability):
        assert [series.name for series in panel.series] == ["no repetition", "1 repetition"]
    assert [point.mean for series in f1.series for point in series.points] == [0.0] * len(f1.series[0].points) + [
        1.0
    ] * len(f1.series[1].points)
    old = [replace(r, values={"f1": 0.0, "logprob": -1.0}) for r in found]
    assert [len(panel.series) for panel in find(name).panels(old)] == [
        2,
        0,
    ], "folders made before probability was kept still give their F1"


# ── questions ──


def test_the_demo_serves_every_probe() -> None:
    items = demo()
    assert len(items) > 20
    for name in ("order", "noise", "position"):
        cases = list(find(name).cases(Options(n=2, repeats=(0,), documents=3)))
        assert len(cases) == 2
        assert all(len(cell.lay().messages) == 2 for case in cases for cell in case.cells)


def test_gold_stands_in_no_prompt(questions: Path) -> None:
    for name in ("order", "noise", "position"):
        for case in find(name).cases(Options(n=2, repeats=(0, 1), documents=3, questions=questions)):
            for cell in case.cells:
                assert not any("Vienna" in message.text for message in cell.lay().messages)


def test_a_file_without_supports_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plain.jsonl"
    path.write_text('{"question": "Who?", "answers": ["x"]}\n', encoding="utf-8")
    with pytest.raises(UsageError, match="no question that this probe can use"):
        list(studies(Options(n=1, questions=path), lambda study: True))


# ── reports ──


def test_over_the_window_is_left_out_and_said(questions: Path, tmp_path: Path) -> None:
    small = Reader(window=80)
    folder = tmp_path / "out"
    found = records("noise", Options(n=2, repeats=(0, 1), questions=questions), small, folder)
    left_out = [r for r in found if r.failure]
    assert left_out
    assert all(not r.values and not r.said and "the window 80" in r.failure for r in left_out)
    assert build(folder)["left_out"] == len(left_out)


@pytest.mark.parametrize("name", list(PROBES))
def test_the_report_is_whole_and_the_same_every_time(
    name: str, reader: Reader, questions: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    records(name, Options(n=2, repeats=(0, 1), lists=(3, 1), documents=3, questions=questions), reader, folder)
    write(folder)
    first = {path.name: path.read_bytes() for path in folder.glob("report.*")}
    again = write(folder)
    assert again == build(folder)
    assert {path.name: path.read_bytes() for path in folder.glob("report.*")} == first
    assert sorted(first) == ["report.json", "report.md", "report.svg"]
    ElementTree.fromstring(first["report.svg"])
    text = markdown(again)
    assert all(panel["title"] in text for panel in again["panels"])
    assert "| repetitions | n |" in text
    panels = [{**panel, "series": []} for panel in again["panels"]]
    assert not any(panel["title"] in markdown({**again, "panels": panels, "groups": {}}) for panel in panels), (
        "no table without a row"
    )
    assert again["cost"][0]["tokens_new"] == 7.0
    keep(folder, tmp_path / "kept" / "small")
    assert [path.name for path in (tmp_path / "kept" / "small").iterdir()] == ["report.json"]
    body = study.render(study.Table("x", "X", ("small",), kind="probe"), tmp_path / "kept")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows == [line for line in body.splitlines() if line.startswith("|")], "the study's table is the report's"


def test_a_hostile_name_stays_text(tmp_path: Path) -> None:
    from mindchat.lab.probes.cases import Panel, Point, Series

    panel = Panel("<b>\x1b[31m", "x", "y", (Series("</svg>&", (Point(0, 0.5, 0.4, 0.6, 3),)),))
    svg = draw("<script>", (panel,))
    ElementTree.fromstring(svg)
    assert "<script>" not in svg
    assert "\x1b" not in svg


def test_one_measurement_by_hand(reader: Reader, questions: Path) -> None:
    probe = Positions()
    (case,) = probe.cases(Options(n=1, repeats=(1,), questions=questions))
    record = measure(probe, case, case.cells[0], reader)
    assert (record.case, record.cell, record.repeat, record.at) == (case.id, "p0/r1", 1, 0)
    assert record.said == "Vienna"
    assert (record.tokens_new, record.tokens_cached) == (7, 3)


def test_news_count_up_to_the_total(reader: Reader, tmp_path: Path) -> None:
    events = list(run(Lists(), Options(n=2, repeats=(0, 1), lists=(3,)), reader, about("lists"), out=tmp_path / "o"))
    made = [event for event in events if isinstance(event, Measured)]
    assert [event.done for event in made] == [1, 2, 3, 4]
    assert made[-1].eta_seconds == 0
    assert all(event.eta_seconds >= 0 for event in made)
