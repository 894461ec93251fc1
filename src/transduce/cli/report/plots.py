"""Charts of a report as inline SVG, each in two widths, for desktop and phone; the page shows the one that fits.

A chart draws the first classes that it is given, as many as are readable, so callers sort them.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from transduce.cli.report.svg import LETTER_WIDTH, element, label, line, shorten, ticks

WIDE, NARROW = 720, 328
MAX_BARS = 25
MAX_CELLS = {WIDE: 30, NARROW: 12}
DASHES = ("", "6 2.4", "1.8 1.8", "7.2 2.4 1.8 2.4")
"""Line styles of the restarts that were not kept, by turns."""
_ROW = 24
_NAME_WIDTH = {WIDE: 32, NARROW: 15}

Drawing: TypeAlias = tuple[float, Iterator[Markup]]
"""Height in pixels, and the elements."""


@dataclass(frozen=True)
class Chart:
    """One chart in two widths."""

    wide: Markup
    narrow: Markup


def _chart(draw: Callable[[int], Drawing], title: str) -> Chart:
    def svg(width: int) -> Markup:
        height, elements = draw(width)
        size = {"viewBox": f"0 0 {width} {height:.0f}", "width": width}
        return element("svg", element("title", title), *elements, role="img", aria_label=title, **size)

    return Chart(svg(WIDE), svg(NARROW))


def thousands(number: float) -> str:
    """Write a whole number in groups of three digits, separated by narrow no-break spaces.

    >>> thousands(22420).replace("\\u202f", " ")
    '22 420'
    """
    return f"{round(number):,}".replace(",", "\u202f")


def sizes_chart(
    names: Sequence[str],
    assigned: Sequence[int],
    predicted: Sequence[int],
    requested: Sequence[tuple[int, int] | None],
) -> Chart:
    """Bars for assigned counts, ticks for requested sizes (None where free), rings for the classifier alone."""
    bounds = [(0, 0) if pair is None else pair for pair in requested[:MAX_BARS]]
    limit = max(*assigned[:MAX_BARS], *predicted[:MAX_BARS], *(high for _, high in bounds))

    def draw(width: int) -> Drawing:
        height, bars, x_of = _bars(width, names, assigned, 26, limit)
        return height, _with_marks(bars, x_of)

    def _with_marks(bars: Iterator[Markup], x_of: Callable[[float], float]) -> Iterator[Markup]:
        yield from bars
        for row, pair in enumerate(requested[:MAX_BARS]):
            y = 26 + (row + 0.5) * _ROW
            if pair is not None:
                low, high = map(x_of, pair)
                yield line(low, y, high, y, "ink", 2)
                yield from (line(x, y - 0.42 * _ROW, x, y + 0.42 * _ROW, "ink", 2) for x in (low, high))
            yield _ring(x_of(predicted[row]), y)
        yield element("rect", x=4, y=2, width=8, height=8, class_="fill-accent")
        yield line(92, 1, 92, 11, "ink", 2)
        yield _ring(184, 6)
        for x, text in ((18, "assigned"), (100, "requested"), (192, "classifier alone")):
            yield label(x, 10, text)

    return _chart(draw, "Documents per class: assigned, requested, and by the classifier alone")


def _ring(x: float, y: float) -> Markup:
    return element("circle", cx=x, cy=y, r=3, class_="fill-paper stroke-ink")


def counts_chart(names: Sequence[str], counts: Sequence[int], title: str) -> Chart:
    """Bars for the number of documents per class."""
    return _chart(lambda width: _bars(width, names, counts, 4, max(counts[:MAX_BARS]))[:2], title)


def _bars(
    width: int, names: Sequence[str], values: Sequence[int], top: int, limit: float
) -> tuple[float, Iterator[Markup], Callable[[float], float]]:
    """Draw one row per class (name, bar, number); return the height, the elements and the horizontal scale."""
    shown = [shorten(name, _NAME_WIDTH[width]) for name in names[:MAX_BARS]]
    left, right = max(size for _, size in shown) * LETTER_WIDTH + 12, width - 54
    end, bottom = 1.04 * max(1, limit), top + _ROW * len(shown)

    def x_of(value: float) -> float:
        return left + (right - left) * value / end

    def elements() -> Iterator[Markup]:
        for value in ticks(0, end, 5 if width > NARROW else 3, least_step=1):
            yield line(x_of(value), top, x_of(value), bottom)
            yield label(x_of(value), bottom + 16, thousands(value), "muted", "middle")
        yield line(left, bottom, right, bottom)
        for row, ((name, _), value) in enumerate(zip(shown, values, strict=False)):
            y = top + row * _ROW
            yield element("rect", x=left, y=y + 4.6, width=x_of(value) - left, height=14.9, class_="fill-accent")
            yield label(left - 6, y + 16, name, anchor="end")
            yield label(width - 4, y + 16, thousands(value), anchor="end")

    return bottom + 26, elements(), x_of


def progress_chart(rows_of: Mapping[int, Sequence[Mapping[str, Any]]], kept: int) -> Chart:
    """Objective and labels moved by round, one line per restart; the restart that was kept is highlighted."""
    last_round = max(map(len, rows_of.values()))
    objectives = [float(row["objective"]) for rows in rows_of.values() for row in rows]
    margin = 0.05 * (max(objectives) - min(objectives)) or max(1e-9, 0.05 * abs(objectives[0]))
    low, high = min(objectives) - margin, max(objectives) + margin
    most_moved = 1.3 * max(10, *(row["moved"] for rows in rows_of.values() for row in rows))
    powers = [0, *(10**power for power in range(1, 10) if 10**power <= most_moved)]

    def panel(width: int, key: str, top: int, bottom: int, y_of: Callable[[float], float]) -> Iterator[Markup]:
        """Draw the lines of one quantity; `y_of` is the height of a value within the panel, from 0 to 1."""

        def point(number: int, value: float) -> str:
            x = 56 + (width - 68) * number / (last_round + 1)
            return f"{x:.1f} {bottom - (bottom - top) * y_of(value):.1f}"

        for restart in sorted(rows_of, key=lambda restart: (restart == kept, restart)):
            path = "M " + " L ".join(point(number, row[key]) for number, row in enumerate(rows_of[restart], start=1))
            style = {"class_": "stroke-muted", "stroke_width": 1.2, "stroke_dasharray": DASHES[restart % len(DASHES)]}
            style = {"class_": "stroke-accent", "stroke_width": 2.5} if restart == kept else style
            yield element("path", d=path, fill="none", **{name: value for name, value in style.items() if value})

    def axes(width: int, title: str, top: int, bottom: int, marks: Mapping[float, str]) -> Iterator[Markup]:
        yield label(56, top - 8, title, "muted")
        yield line(56, top, 56, bottom)
        yield line(56, bottom, width - 12, bottom)
        for height, text in marks.items():
            y = bottom - (bottom - top) * height
            yield line(56, y, width - 12, y)
            yield label(50, y + 4, text, "muted", "end")

    def draw(width: int) -> Drawing:
        def elements() -> Iterator[Markup]:
            span = high - low
            marks = {(value - low) / span: f"{value:.10g}" for value in ticks(low, high, 5)}
            yield from axes(width, "objective", 28, 187, marks)
            yield from panel(width, "objective", 28, 187, lambda value: (value - low) / span)
            top = _symlog(most_moved)
            marks = {_symlog(value) / top: thousands(value) for value in powers}
            yield from axes(width, "labels moved", 227, 356, marks)
            yield from panel(width, "moved", 227, 356, lambda value: _symlog(value) / top)
            for value in ticks(0, last_round + 1, 6, least_step=1):
                yield label(56 + (width - 68) * value / (last_round + 1), 372, thousands(value), "muted", "middle")
            yield label((width + 44) / 2, 392, "round", "muted", "middle")

        return 398, elements()

    return _chart(draw, "Objective and labels moved in each round, for each restart")


def _symlog(value: float) -> float:
    """Scale logarithmically above 10 and linearly below, so that an axis can show 0."""
    return 0.09 * value if value <= 10 else 0.9 + math.log10(value / 10)


def confidence_chart(counts: Sequence[int]) -> Chart:
    """Histogram of numbers between 0 and 1, in bins of equal width."""
    limit = 1.05 * max(1, *counts)

    def draw(width: int) -> Drawing:
        def elements() -> Iterator[Markup]:
            across, step = width - 68, (width - 68) / len(counts)
            for value in ticks(0, limit, 4, least_step=1):
                y = 158 - 150 * value / limit
                yield line(56, y, width - 12, y)
                yield label(50, y + 4, thousands(value), "muted", "end")
            for k, count in enumerate(counts):
                height = 150 * count / limit
                box = {"x": 56 + k * step, "y": 158 - height, "width": 0.88 * step, "height": height}
                yield element("rect", **box, class_="fill-accent")
            yield line(56, 158, width - 12, 158)
            for value in ticks(0, 1, 5):
                yield label(56 + across * value, 174, f"{value:.1f}", "muted", "middle")
            yield label(56 + across / 2, 194, "confidence", "muted", "middle")

        return 200, elements()

    return _chart(draw, "Number of labels by confidence")


def confusion_chart(names: Sequence[str], counts: NDArray[np.int64]) -> Chart:
    """Documents by true class (rows) and label (columns); if there are too many classes, those with most mistakes."""
    mistakes = counts.sum(axis=0) + counts.sum(axis=1) - 2 * counts.diagonal()
    strengths = np.sqrt(counts / np.maximum(counts.sum(axis=1), 1)[:, None])

    def draw(width: int) -> Drawing:
        chosen = np.sort(np.argsort(-mistakes, kind="stable")[: MAX_CELLS[width]])
        shown = [shorten(names[k], _NAME_WIDTH[width] - 3) for k in chosen]
        left = (max(size for _, size in shown) + 3) * LETTER_WIDTH + 12
        cell = min(44.0, (width - left - 8) / len(chosen))
        end = cell * len(chosen)
        small = min(12.0, 0.58 * cell)

        def elements() -> Iterator[Markup]:
            for k in range(len(chosen) + 1):
                yield line(left, 20 + k * cell, left + end, 20 + k * cell, width=0.5)
                yield line(left + k * cell, 20, left + k * cell, 20 + end, width=0.5)
            for k, (name, _) in enumerate(shown):
                middle = 20 + (k + 0.5) * cell
                yield label(left + (k + 0.5) * cell, 16, str(k + 1), "muted", "middle", small)
                yield label(left - 6, middle + small / 3, str(k + 1), "muted", "end", small)
                yield label(left - 26, middle + 4, name, anchor="end", size=min(12.0, 0.75 * cell))
            for row, column in np.argwhere(counts[np.ix_(chosen, chosen)] > 0):
                strength = float(strengths[chosen[row], chosen[column]])
                x, y = left + column * cell, 20 + row * cell
                opacity = f"{max(0.03, strength):.2f}"
                yield element("rect", x=x, y=y, width=cell, height=cell, class_="fill-accent", opacity=opacity)
                if cell > 30:
                    number = thousands(counts[chosen[row], chosen[column]])
                    colour = "paper" if strength > 0.7 else "ink"
                    yield label(x + cell / 2, y + cell / 2 + 4, number, colour, "middle", 10)

        return end + 24, elements()

    return _chart(draw, "Confusion: true classes in rows, labels in columns")
