"""The picture: F1 against model calls and against seconds, each arm a numbered dot with its 95 % intervals.

Owns: a small SVG writer (no plotting library), readable on light and dark ground, in print and without colour: the
number tells arms apart.
Does not own: the numbers (summary.py). Source: none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from xml.sax.saxutils import escape

from mindchat.lab.evals.bootstrap import Interval
from mindchat.lab.evals.summary import ArmSummary, DatasetSummary, shorten
from mindchat.text.clean import clean_line

WIDTH = 920
PANEL_WIDTH, PANEL_HEIGHT = 390, 260
LEFT, TOP, GAP = 52, 44, 62
LEGEND_LINE = 18
LEGEND_COLUMNS = (700, 780, 850, WIDTH - 12)
"""Right edges of F1, calls, seconds and n."""
STYLE = """
svg { --ink: #1f2328; --dim: #6a737d; --grid: #d8dee4; --ground: #ffffff; font: 12px system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { svg { --ink: #e6edf3; --dim: #9198a1; --grid: #30363d; --ground: #0d1117; } }
.ground { fill: var(--ground); } .grid { stroke: var(--grid); } .axis { stroke: var(--dim); } .bar { stroke-width: 1.5; opacity: .7; }
text { fill: var(--ink); } .dim { fill: var(--dim); } .title { font-size: 14px; font-weight: 600; }
.n { fill: #ffffff; font-size: 10px; font-weight: 600; }
"""
HUES = ("#0969da", "#bc4c00", "#1a7f37", "#8250df", "#cf222e", "#6e7781", "#9a6700", "#0a7a8a", "#a0308a", "#57606a")

Of = Callable[[ArmSummary], Interval]
PANELS: tuple[tuple[str, Of], ...] = (
    ("model calls per question", lambda arm: arm.calls),
    ("seconds per question", lambda arm: arm.seconds),
)


def ticks(top: float, wanted: int = 5, *, whole: bool = False) -> list[float]:
    """Round steps from 0 up to at least `top`; `whole`: of something that is counted, so that no step lies between two
    numbers.
    """
    if not top > 0 or math.isinf(top):
        return [0.0, 1.0]
    raw = max(top / wanted, 1.0) if whole else top / wanted
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = next(
        m * magnitude for m in ((1, 2, 5, 10) if whole else (1, 2, 2.5, 5, 10)) if m * magnitude >= raw * (1 - 1e-9)
    )
    return [n * step for n in range(math.ceil(top / step - 1e-9) + 1)]


def _figure(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def draw(datasets: Sequence[DatasetSummary]) -> str:
    """One row of two panels and a legend for each dataset; equal summaries give equal text."""
    heights = [TOP + PANEL_HEIGHT + GAP + LEGEND_LINE * len(dataset.arms) + 16 for dataset in datasets]
    total = sum(heights)
    names = ", ".join(clean_line(dataset.dataset) for dataset in datasets)
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {total}" width="{WIDTH}" height="{total}"'
            ' role="img">'
        ),
        f"<title>{escape(f'F1 against model calls and seconds: {names}')}</title>",
        (
            "<desc>Each numbered dot is one arm; lines are 95 % bootstrap intervals over questions. Higher and further"
            " left is better.</desc>"
        ),
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{total}"/>',
    ]
    top = 0
    for dataset, height in zip(datasets, heights, strict=True):
        lines += [f'<g transform="translate(0 {top})">', *_row(dataset), "</g>"]
        top += height
    return "\n".join([*lines, "</svg>"]) + "\n"


def _row(dataset: DatasetSummary) -> Iterator[str]:
    common, short = shorten([arm.arm for arm in dataset.arms])
    name = f"{clean_line(dataset.dataset)}, {dataset.questions} questions" + (f", {common}" if common else "")
    yield f'<text class="title" x="{LEFT}" y="24">{escape(clean_line(name, 110))}</text>'
    bounds = [arm.total.f1.high for arm in dataset.arms if not math.isnan(arm.total.f1.high)]
    scale = ticks(100 * max(bounds, default=1.0))
    for n, (label, of) in enumerate(PANELS):
        left = LEFT + n * (PANEL_WIDTH + GAP)
        yield from _panel(dataset.arms, label, of, scale, left)
    for n, arm in enumerate(dataset.arms):
        y = TOP + PANEL_HEIGHT + GAP + n * LEGEND_LINE
        yield _dot(LEFT + 8, y, n)
        yield f'<text x="{LEFT + 24}" y="{y + 4}">{escape(clean_line(short[arm.arm], 70))}</text>'
        f1 = arm.total.f1
        cells = [
            f"F1 {100 * f1.mean:.1f} [{100 * f1.low:.1f}, {100 * f1.high:.1f}]",
            f"{arm.calls.mean:.1f} calls",
            f"{arm.seconds.mean:.1f} s",
        ]
        for x, words in zip(LEGEND_COLUMNS, [*cells, f"n {arm.total.n}"], strict=True):
            yield f'<text class="dim" x="{x}" y="{y + 4}" text-anchor="end">{escape(words)}</text>'


def _panel(arms: Sequence[ArmSummary], label: str, of: Of, scale: Sequence[float], left: int) -> Iterator[str]:
    across = ticks(max((of(arm).high for arm in arms if not math.isnan(of(arm).high)), default=1.0))

    def x(value: float) -> float:
        return round(left + PANEL_WIDTH * value / across[-1], 1)

    def y(f1: float) -> float:
        return round(TOP + PANEL_HEIGHT * (1 - 100 * f1 / scale[-1]), 1)

    bottom = TOP + PANEL_HEIGHT
    for tick in scale:
        at = round(bottom - PANEL_HEIGHT * tick / scale[-1], 1)
        yield f'<line class="grid" x1="{left}" x2="{left + PANEL_WIDTH}" y1="{at}" y2="{at}"/>'
        yield f'<text class="dim" x="{left - 8}" y="{at + 4}" text-anchor="end">{_figure(tick)}</text>'
    for tick in across:
        yield f'<text class="dim" x="{x(tick)}" y="{bottom + 18}" text-anchor="middle">{_figure(tick)}</text>'
    yield f'<line class="axis" x1="{left}" x2="{left + PANEL_WIDTH}" y1="{bottom}" y2="{bottom}"/>'
    yield f'<text class="dim" x="{left + PANEL_WIDTH}" y="{bottom + 36}" text-anchor="end">{escape(label)}</text>'
    yield f'<text class="dim" x="{left - 8}" y="{TOP - 8}" text-anchor="start">F1, %</text>'
    for n, arm in enumerate(arms):
        f1, cost = arm.total.f1, of(arm)
        if math.isnan(f1.mean) or math.isnan(cost.mean):
            continue
        hue = HUES[n % len(HUES)]
        yield (
            f'<line class="bar" stroke="{hue}" x1="{x(cost.mean)}" x2="{x(cost.mean)}" y1="{y(f1.low)}"'
            f' y2="{y(f1.high)}"/>'
        )
        yield (
            f'<line class="bar" stroke="{hue}" x1="{x(cost.low)}" x2="{x(cost.high)}" y1="{y(f1.mean)}"'
            f' y2="{y(f1.mean)}"/>'
        )
    for n, arm in enumerate(arms):
        f1, cost = arm.total.f1, of(arm)
        if not math.isnan(f1.mean) and not math.isnan(cost.mean):
            yield _dot(x(cost.mean), y(f1.mean), n, arm.arm)


def _dot(x: float, y: float, n: int, name: str = "") -> str:
    label = f"<title>{escape(clean_line(name))}</title>" if name else ""
    circle = f'<circle cx="{x}" cy="{y}" r="8" fill="{HUES[n % len(HUES)]}" stroke="var(--ground)"/>'
    return f'<g>{label}{circle}<text class="n" x="{x}" y="{y + 3.5}" text-anchor="middle">{n + 1}</text></g>'
