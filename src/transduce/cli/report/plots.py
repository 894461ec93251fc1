"""Charts of a report as inline SVG, each in two widths, for desktop and phone; the page shows the one that fits.

A chart draws the first classes that it is given, as many as are readable, so callers sort them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from transduce.cli.report.svg import LETTER_WIDTH, element, label, line, shorten, ticks

WIDE, NARROW = 720, 328
MAX_BARS = 25
MAX_CELLS = {WIDE: 30, NARROW: 12}
DASHES = ("", "6 2.4", "1.8 1.8", "7.2 2.4 1.8 2.4")
"""Line styles of the restarts that were not kept, used in turn."""
_ROW = 24
_NAME_WIDTH = {WIDE: 32, NARROW: 15}

Drawing: TypeAlias = tuple[float, list[Markup]]
"""Height in pixels, and the elements."""


class Chart(NamedTuple):
    """One chart in two widths."""

    wide: Markup
    narrow: Markup


def make_chart(draw: Callable[[int], Drawing], title: str) -> Chart:
    """Draw a chart in both widths."""

    def svg(width: int) -> Markup:
        height, elements = draw(width)
        size = {"viewBox": f"0 0 {width} {height:.0f}", "width": width}
        return element("svg", element("title", title), *elements, role="img", aria_label=title, **size)

    return Chart(svg(WIDE), svg(NARROW))


def thousands(number: float) -> str:
    """Write a whole number in groups of three digits, separated by narrow no-break spaces."""
    return f"{round(number):,}".replace(",", "\u202f")


def sizes_chart(sizes: Sequence[Mapping[str, Any]]) -> Chart:
    """Bars for assigned counts, ticks for stated sizes, rings for the classifier alone, thin lines for intervals."""
    sizes = sizes[:MAX_BARS]
    assigned = {size["class"]: size["assigned"] for size in sizes}
    limit = max(max(size["assigned"], size["own"], *_stated(size), *(size["estimate"] or ())) for size in sizes)
    is_estimated = any(size["estimate"] is not None for size in sizes)
    top = 44 if is_estimated else 26
    legend = [
        element("rect", x=4, y=2, width=8, height=8, class_="fill-accent"),
        line(92, 1, 92, 11, "ink", 2),
        _ring(184, 6),
        *(label(x, 10, text) for x, text in ((18, "assigned"), (100, "stated"), (192, "classifier alone"))),
    ]
    if is_estimated:
        legend += [line(4, 24, 12, 24, "ink", 1), label(18, 28, "estimated, 90 % interval")]

    def draw(width: int) -> Drawing:
        height, elements, x_of = _bars(width, assigned, top, limit)
        for row, size in enumerate(sizes):
            y = top + (row + 0.5) * _ROW
            if size["estimate"] is not None:
                low, high = map(x_of, size["estimate"][1:])
                elements += [line(low, y, high, y, "ink", 1)]
                elements += [line(x, y - 0.12 * _ROW, x, y + 0.12 * _ROW, "ink", 1) for x in (low, high)]
            stated = [x_of(rows) for rows in _stated(size)]
            if len(stated) == 2:
                elements += [line(stated[0], y, stated[1], y, "ink", 2)]
            elements += [line(x, y - 0.42 * _ROW, x, y + 0.42 * _ROW, "ink", 2) for x in stated]
            elements += [_ring(x_of(size["own"]), y)]
        return height, elements + legend

    return make_chart(draw, "Documents per class: assigned, stated, estimated, and by the classifier alone")


def _stated(size: Mapping[str, Any]) -> list[float]:
    """The stated size in rows: nothing, one number, or the ends of a range."""
    if "rough" in size:
        return [size["rough"]]
    return [size["asked_low"], size["asked_high"]] if size["is_bounded"] else []


def _ring(x: float, y: float) -> Markup:
    return element("circle", cx=x, cy=y, r=3, class_="fill-paper stroke-ink")


def counts_chart(counts: Mapping[str, int], title: str) -> Chart:
    """Bars for the number of documents per class."""
    first = dict(islice(counts.items(), MAX_BARS))
    return make_chart(lambda width: _bars(width, first, 4, max(first.values()))[:2], title)


def _bars(
    width: int, counts: Mapping[str, int], top: int, limit: float
) -> tuple[float, list[Markup], Callable[[float], float]]:
    """Draw one row per class (name, bar, number); return the height, the elements and the horizontal scale."""
    shown = [shorten(name, _NAME_WIDTH[width]) for name in counts]
    left, right = max(size for _, size in shown) * LETTER_WIDTH + 12, width - 54
    end, bottom = 1.04 * max(1, limit), top + _ROW * len(shown)

    def x_of(value: float) -> float:
        return left + (right - left) * value / end

    elements = [line(left, bottom, right, bottom)]
    for value in ticks(0, end, 5 if width > NARROW else 3, least_step=1):
        elements += [line(x_of(value), top, x_of(value), bottom)]
        elements += [label(x_of(value), bottom + 16, thousands(value), "muted", "middle")]
    for row, ((name, _), value) in enumerate(zip(shown, counts.values(), strict=True)):
        y = top + row * _ROW
        elements += [
            element("rect", x=left, y=y + 4.6, width=x_of(value) - left, height=14.9, class_="fill-accent"),
            label(left - 6, y + 16, name, anchor="end"),
            label(width - 4, y + 16, thousands(value), anchor="end"),
        ]
    return bottom + 26, elements, x_of


@dataclass(frozen=True)
class _Panel:
    """Axes between x = 56 and width - 12; `scale` maps low to high values monotonically."""

    width: int
    top: float
    bottom: float
    low: float
    high: float
    scale: Callable[[float], float] = float

    def x(self, fraction: float) -> float:
        return 56 + (self.width - 68) * fraction

    def y(self, value: float) -> float:
        low, high = self.scale(self.low), self.scale(self.high)
        return self.bottom - (self.bottom - self.top) * (self.scale(value) - low) / (high - low)

    def y_axis(self, marks: Mapping[float, str]) -> list[Markup]:
        """Draw the grid and its labels, and the horizontal axis."""
        grid = [line(56, self.y(value), self.width - 12, self.y(value)) for value in (self.low, *marks)]
        return grid + [label(50, self.y(value) + 4, text, "muted", "end") for value, text in marks.items()]

    def x_axis(self, marks: Mapping[float, str], title: str) -> list[Markup]:
        """Write the labels of the horizontal axis, and its title."""
        labels = [label(self.x(at), self.bottom + 16, text, "muted", "middle") for at, text in marks.items()]
        return [*labels, label(self.x(0.5), self.bottom + 36, title, "muted", "middle")]


def progress_chart(rows_of: Mapping[int, Sequence[Mapping[str, Any]]], kept: int) -> Chart:
    """Objective and labels moved by round, one line per restart; the restart that was kept is highlighted."""
    end = 1 + max(map(len, rows_of.values()))
    objectives = [float(row["objective"]) for rows in rows_of.values() for row in rows]
    margin = 0.05 * (max(objectives) - min(objectives)) or max(1e-9, 0.05 * abs(objectives[0]))
    low, high = min(objectives) - margin, max(objectives) + margin
    most_moved = 1.3 * max(10, *(row["moved"] for rows in rows_of.values() for row in rows))
    powers = (0, *(10**power for power in range(1, 10) if 10**power <= most_moved))

    def path(panel: _Panel, restart: int, key: str) -> Markup:
        values = enumerate((float(row[key]) for row in rows_of[restart]), start=1)
        points = "M " + " L ".join(f"{panel.x(number / end):.1f} {panel.y(value):.1f}" for number, value in values)
        style = {"class_": "stroke-muted", "stroke_width": 1.2, "stroke_dasharray": DASHES[restart % len(DASHES)]}
        style = {"class_": "stroke-accent", "stroke_width": 2.5} if restart == kept else style
        return element("path", d=points, fill="none", **{name: value for name, value in style.items() if value})

    def draw(width: int) -> Drawing:
        upper = _Panel(width, 28, 187, low, high)
        lower = _Panel(width, 227, 356, 0, most_moved, _symlog)
        elements = [label(56, 20, "objective", "muted"), label(56, 219, "labels moved", "muted")]
        elements += upper.y_axis({value: f"{value:.10g}" for value in ticks(low, high, 5)})
        elements += lower.y_axis({value: thousands(value) for value in powers})
        elements += lower.x_axis({value / end: thousands(value) for value in ticks(0, end, 6, least_step=1)}, "round")
        for restart in sorted(rows_of, key=lambda restart: (restart == kept, restart)):
            elements += [path(upper, restart, "objective"), path(lower, restart, "moved")]
        return 398, elements

    return make_chart(draw, "Objective and labels moved in each round, for each restart")


def _symlog(value: float) -> float:
    """Scale logarithmically above 10 and linearly below, so that an axis can show 0."""
    return 0.09 * value if value <= 10 else 0.9 + math.log10(value / 10)


def confidence_chart(counts: Sequence[int]) -> Chart:
    """Histogram of numbers between 0 and 1, in bins of equal width."""
    n = len(counts)

    def draw(width: int) -> Drawing:
        panel = _Panel(width, 8, 158, 0, 1.05 * max(1, *counts))
        elements = panel.y_axis({value: thousands(value) for value in ticks(0, panel.high, 4, least_step=1)})
        elements += panel.x_axis({value: f"{value:.1f}" for value in ticks(0, 1, 5)}, "confidence")
        for k, count in enumerate(counts):
            box = {"x": panel.x(k / n), "y": panel.y(count), "width": 0.88 * (width - 68) / n}
            elements += [element("rect", **box, height=panel.bottom - panel.y(count), class_="fill-accent")]
        return 200, elements

    return make_chart(draw, "Number of labels by confidence")


def confusion_chart(names: Sequence[str], counts: NDArray[np.int64]) -> Chart:
    """Documents by true class (rows) and label (columns); if there are too many classes, those with most mistakes."""
    mistakes = counts.sum(axis=0) + counts.sum(axis=1) - 2 * counts.diagonal()
    strengths = np.sqrt(counts / np.maximum(counts.sum(axis=1), 1)[:, None])

    def draw(width: int) -> Drawing:
        chosen = np.sort(np.argsort(-mistakes, kind="stable")[: MAX_CELLS[width]])
        shown = [shorten(names[k], _NAME_WIDTH[width] - 3) for k in chosen]
        left = (max(size for _, size in shown) + 3) * LETTER_WIDTH + 12
        cell = min(44.0, (width - left - 8) / len(chosen))
        end, small = cell * len(chosen), min(12.0, 0.58 * cell)
        edges = [k * cell for k in range(len(chosen) + 1)]
        elements = [line(left, 20 + edge, left + end, 20 + edge, width=0.5) for edge in edges]
        elements += [line(left + edge, 20, left + edge, 20 + end, width=0.5) for edge in edges]
        for k, (name, _) in enumerate(shown):
            middle = edges[k] + cell / 2
            elements += [
                label(left + middle, 16, str(k + 1), "muted", "middle", small),
                label(left - 6, 20 + middle + small / 3, str(k + 1), "muted", "end", small),
                label(left - 26, 24 + middle, name, anchor="end", size=min(12.0, 0.75 * cell)),
            ]
        for row, column in np.argwhere(counts[np.ix_(chosen, chosen)] > 0):
            pair = chosen[row], chosen[column]
            x, y = left + edges[column], 20 + edges[row]
            opacity = f"{max(0.03, strengths[pair]):.2f}"
            elements += [element("rect", x=x, y=y, width=cell, height=cell, class_="fill-accent", opacity=opacity)]
            if cell > 30:
                color = "paper" if strengths[pair] > 0.7 else "ink"
                elements += [label(x + cell / 2, y + cell / 2 + 4, thousands(counts[pair]), color, "middle", 10)]
        return end + 24, elements

    return make_chart(draw, "Confusion: true classes in rows, labels in columns")
