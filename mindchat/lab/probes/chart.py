"""The picture of a probe: one panel beside the other, each a few curves with their 95 % intervals.

Owns: curves in SVG, in the style of the evaluation's charts. Does not own: the numbers (report.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from mindchat.lab.evals.chart import HUES, STYLE, ticks
from mindchat.lab.probes.cases import Panel, Series
from mindchat.text.clean import clean_line

WIDE, HIGH = 400, 260
LEFT, TOP, GAP, LINE = 56, 60, 70, 18


def draw(title: str, panels: Sequence[Panel]) -> str:
    """All panels; values are shares and are shown in per cent. Equal panels give equal text."""
    width = LEFT + len(panels) * (WIDE + GAP)
    legend = LINE * max((len(panel.series) for panel in panels), default=0)
    height = TOP + HIGH + 56 + legend
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            ' role="img">'
        ),
        f"<title>{escape(clean_line(title))}</title>",
        (
            "<desc>Points are means over cases; vertical lines are 95 % bootstrap intervals. Numbers tell the curves"
            " apart.</desc>"
        ),
        f"<style>{STYLE} .curve {{ fill: none; stroke-width: 2; }}</style>",
        f'<rect class="ground" width="{width}" height="{height}"/>',
        f'<text class="title" x="{LEFT}" y="22">{escape(clean_line(title, 120))}</text>',
    ]
    for number, panel in enumerate(panels):
        lines += _panel(panel, LEFT + number * (WIDE + GAP))
    return "\n".join([*lines, "</svg>"]) + "\n"


def _panel(panel: Panel, left: int) -> Iterator[str]:
    points = [point for series in panel.series for point in series.points if not math.isnan(point.mean)]
    up = ticks(100 * max((point.high for point in points), default=1.0))
    across = ticks(max((point.x for point in points), default=1.0), whole=True)
    bottom = TOP + HIGH
    yield f'<text x="{left}" y="{TOP - 22}">{escape(clean_line(panel.title))}</text>'
    yield f'<text class="dim" x="{left}" y="{TOP - 6}">{escape(clean_line(panel.y))}</text>'
    for tick in up:
        at = round(bottom - HIGH * tick / up[-1], 1)
        yield f'<line class="grid" x1="{left}" x2="{left + WIDE}" y1="{at}" y2="{at}"/>'
        yield f'<text class="dim" x="{left - 8}" y="{at + 4}" text-anchor="end">{tick:g}</text>'
    for tick in across:
        yield (
            f'<text class="dim" x="{round(left + WIDE * tick / across[-1], 1)}" y="{bottom + 18}"'
            f' text-anchor="middle">{tick:g}</text>'
        )
    yield f'<line class="axis" x1="{left}" x2="{left + WIDE}" y1="{bottom}" y2="{bottom}"/>'
    yield (
        f'<text class="dim" x="{left + WIDE}" y="{bottom + 36}" text-anchor="end">{escape(clean_line(panel.x))}</text>'
    )
    for number, series in enumerate(panel.series):
        yield from _curve(series, number, left, across[-1], up[-1])
        y = bottom + 52 + number * LINE
        last = series.points[-1] if series.points else None
        shown = f" ({100 * last.mean:.1f} at {last.x:g}, n {last.n})" if last else ""
        yield _dot(left + 8, y, number)
        yield f'<text x="{left + 24}" y="{y + 4}">{escape(clean_line(series.name + shown, 70))}</text>'


def _curve(series: Series, number: int, left: int, widest: float, highest: float) -> Iterator[str]:
    hue = HUES[number % len(HUES)]

    def y(share: float) -> float:
        return round(TOP + HIGH * (1 - 100 * share / highest), 1)

    places = [
        (round(left + WIDE * point.x / widest, 1), point) for point in series.points if not math.isnan(point.mean)
    ]
    for x, point in places:
        yield f'<line class="bar" stroke="{hue}" x1="{x}" x2="{x}" y1="{y(point.low)}" y2="{y(point.high)}"/>'
    yield f'<polyline class="curve" stroke="{hue}" points="{" ".join(f"{x},{y(point.mean)}" for x, point in places)}"/>'
    for x, point in places:
        yield _dot(x, y(point.mean), number, f"{series.name}: {100 * point.mean:.1f} at {point.x:g}, n {point.n}")


def _dot(x: float, y: float, number: int, label: str = "") -> str:
    title = f"<title>{escape(clean_line(label))}</title>" if label else ""
    circle = f'<circle cx="{x}" cy="{y}" r="7" fill="{HUES[number % len(HUES)]}" stroke="var(--ground)"/>'
    return f'<g>{title}{circle}<text class="n" x="{x}" y="{y + 3.5}" text-anchor="middle">{number + 1}</text></g>'
