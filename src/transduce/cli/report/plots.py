"""Charts of a report, each in two widths, for desktop and phone; the page shows the one that fits.

A chart draws the first classes that it is given, as many as are readable, so callers sort them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from transduce.cli.report.svg import ACCENT, INK, LINE, MUTED, PAPER, Draw, Placeholders, inline_svg

WIDE, NARROW = 720, 328
MAX_BARS = 25
MAX_CELLS = {WIDE: 30, NARROW: 12}
_ROW_HEIGHT, _LETTER_WIDTH = 24, 7.4
_NAME_WIDTH = {WIDE: 32, NARROW: 15}
_DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))


@dataclass(frozen=True)
class Chart:
    """One chart in two widths."""

    wide: Markup
    narrow: Markup


def _chart(draw: Draw, name: str, title: str) -> Chart:
    wide, narrow = (inline_svg(draw, width, f"{name}{width}", title) for width in (WIDE, NARROW))
    return Chart(wide, narrow)


def thousands(number: float) -> str:
    """Write a whole number in groups of three digits, separated by narrow no-break spaces.

    >>> thousands(22420).replace("\\u202f", " ")
    '22 420'
    """
    return f"{round(number):,}".replace(",", "\u202f")


def sizes_chart(
    names: Sequence[str], assigned: Sequence[int], predicted: Sequence[int], requested: Sequence[tuple[int, int] | None]
) -> Chart:
    """Bars for assigned counts, ticks for requested sizes (None where free), rings for the classifier alone."""
    sized = [(row, *bounds) for row, bounds in enumerate(requested[:MAX_BARS]) if bounds is not None]

    def draw(width: float, texts: Placeholders) -> Figure:
        figure, axes = _bars(width, names, assigned, texts, top=26)
        rows, low, high = np.array(sized, dtype=float).reshape(-1, 3).T
        axes.hlines(rows, low, high, colors=INK, linewidth=2)
        for bound in (low, high):
            axes.vlines(bound, rows - 0.42, rows + 0.42, colors=INK, linewidth=2)
        ring: dict[str, Any] = {"color": INK, "markerfacecolor": PAPER, "markersize": 6, "clip_on": False}
        axes.plot(predicted[:MAX_BARS], range(len(names[:MAX_BARS])), "o", **ring)
        axes.set_xlim(0, 1.04 * max(1, *assigned[:MAX_BARS], *predicted[:MAX_BARS], *high))
        _legend(figure, axes, [("s", ACCENT, "assigned"), ("|", INK, "requested"), ("o", INK, "classifier alone")])
        return figure

    return _chart(draw, "sizes", "Documents per class: assigned, requested, and by the classifier alone")


def counts_chart(names: Sequence[str], counts: Sequence[int], name: str, title: str) -> Chart:
    """Bars for the number of documents per class."""
    return _chart(lambda width, texts: _bars(width, names, counts, texts, top=4)[0], name, title)


def _bars(
    width: float, names: Sequence[str], values: Sequence[int], texts: Placeholders, top: int
) -> tuple[Figure, Axes]:
    """Draw one row per class: its name, a bar, and the number at the right."""
    names, values = names[:MAX_BARS], values[:MAX_BARS]
    columns = _NAME_WIDTH[round(72 * width)]
    labels = [texts.put(name, columns) for name in names]
    left, right = texts.widest * _LETTER_WIDTH + 12, 54
    figure, axes = _figure(width, _ROW_HEIGHT * len(names), (left, right, 26, top))
    axes.barh(range(len(names)), values, height=0.62, color=ACCENT)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(0, 1.04 * max(1, *values))
    axes.set_yticks(range(len(names)), labels)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    _whole_numbers(axes.xaxis, 5 if width > 6 else 3)
    for row, value in enumerate(values):
        _beside(axes, row, 50, thousands(value), x=1)
    return figure, axes


def progress_chart(rows_of: Mapping[int, Sequence[Mapping[str, Any]]], kept: int) -> Chart:
    """Objective and labels moved by round, one line per restart; the restart that was kept is highlighted."""
    last_round = max(map(len, rows_of.values()))
    most_moved = max(row["moved"] for rows in rows_of.values() for row in rows)

    def draw(width: float, texts: Placeholders) -> Figure:
        figure, upper = _figure(width, 330, (56, 12, 42, 26))
        left, bottom, across, _ = upper.get_position().bounds
        upper.set_position((left, 0.53, across, 0.40))
        lower = figure.add_axes((left, bottom, across, 0.43 - bottom))
        for restart in sorted(rows_of, key=lambda restart: (restart == kept, restart)):
            rounds, look = range(1, len(rows_of[restart]) + 1), _line_style(restart, kept)
            upper.plot(rounds, [row["objective"] for row in rows_of[restart]], **look)
            lower.plot(rounds, [row["moved"] for row in rows_of[restart]], **look)
        _moved_axis(lower, most_moved)
        for axes, title in ((upper, "objective"), (lower, "labels moved")):
            axes.grid(axis="y")
            axes.set_xlim(0, 1 + last_round)
            axes.set_title(title, loc="left", fontsize=12, color=MUTED, pad=8)
            _whole_numbers(axes.xaxis, 6)
        upper.tick_params(axis="x", labelbottom=False)
        upper.yaxis.set_major_locator(MaxNLocator(5))
        lower.set_xlabel("round")
        return figure

    return _chart(draw, "progress", "Objective and labels moved in each round, for each restart")


def _moved_axis(axes: Axes, most: float) -> None:
    """Scale the axis logarithmically above 10 and linearly below, so that it shows 0."""
    axes.set_yscale("symlog", linthresh=10, linscale=0.9)
    axes.yaxis.set_major_locator(FixedLocator([0, *(10**power for power in range(1, 10))]))
    axes.yaxis.set_minor_locator(FixedLocator([]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: thousands(value)))
    axes.set_ylim(0, 1.3 * max(10.0, most))


def _line_style(restart: int, kept: int) -> dict[str, Any]:
    if restart == kept:
        return {"color": ACCENT, "linewidth": 2.5}
    return {"color": MUTED, "linewidth": 1.2, "linestyle": _DASHES[restart % len(_DASHES)]}


def dash_of(restart: int) -> int:
    """Return the index of the line style of a restart that was not kept."""
    return restart % len(_DASHES)


def confidence_chart(counts: Sequence[int]) -> Chart:
    """Histogram of numbers between 0 and 1, in bins of equal width."""
    edges = np.linspace(0, 1, len(counts) + 1)

    def draw(width: float, texts: Placeholders) -> Figure:
        figure, axes = _figure(width, 150, (56, 12, 42, 8))
        axes.bar(edges[:-1], counts, width=0.88 * np.diff(edges), align="edge", color=ACCENT)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1.05 * max(1, *counts))
        axes.set_xticks(np.linspace(0, 1, 6))
        axes.set_xlabel("confidence")
        axes.grid(axis="y")
        _whole_numbers(axes.yaxis, 4)
        return figure

    return _chart(draw, "confidence", "Number of labels by confidence")


def confusion_chart(names: Sequence[str], counts: NDArray[np.int64]) -> Chart:
    """Documents by true class (rows) and label (columns); if there are too many classes, those with most mistakes."""
    mistakes = counts.sum(axis=0) + counts.sum(axis=1) - 2 * counts.diagonal()
    totals = np.maximum(counts.sum(axis=1), 1)

    def draw(width: float, texts: Placeholders) -> Figure:
        pixels = round(72 * width)
        chosen = np.sort(np.argsort(-mistakes, kind="stable")[: MAX_CELLS[pixels]])
        size = len(chosen)
        labels = [texts.put(names[k], _NAME_WIDTH[pixels] - 3) for k in chosen]
        left = (texts.widest + 3) * _LETTER_WIDTH + 12
        cell = min(44.0, (pixels - left - 8) / size)
        figure, axes = _figure(width, cell * size, (left, pixels - left - cell * size, 4, 20))
        _cells(axes, counts[np.ix_(chosen, chosen)], totals[chosen][:, None], numbered=cell > 30)
        axes.set_xticks(range(size), [str(k + 1) for k in range(size)])
        axes.set_yticks(range(size), labels)
        small = min(12.0, 0.58 * cell)
        axes.tick_params(length=0, pad=4, labelsize=small, labeltop=True, labelbottom=False)
        axes.tick_params(axis="y", pad=26, labelcolor=INK, labelsize=min(12.0, 0.75 * cell))
        for row in range(size):
            _beside(axes, row, -6, str(row + 1), x=0, color=MUTED, fontsize=small)
        return figure

    return _chart(draw, "confusion", "Confusion: true classes in rows, labels in columns")


def _beside(axes: Axes, row: float, offset: float, text: str, x: float, **look: Any) -> None:
    """Write text that ends `offset` pixels from the left (x = 0) or the right (x = 1) edge of a row."""
    where = ("axes fraction", "data")
    axes.annotate(text, (x, row), (offset, 0), where, "offset points", ha="right", va="center_baseline", **look)


def _cells(axes: Axes, counts: NDArray[np.int64], totals: NDArray[np.int64], numbered: bool) -> None:
    size = len(counts)
    axes.set_xlim(-0.5, size - 0.5)
    axes.set_ylim(size - 0.5, -0.5)
    axes.hlines(np.arange(size + 1) - 0.5, -0.5, size - 0.5, colors=LINE, linewidth=0.5)
    axes.vlines(np.arange(size + 1) - 0.5, -0.5, size - 0.5, colors=LINE, linewidth=0.5)
    axes.spines[:].set_visible(False)
    strengths = np.sqrt(counts / totals)
    for row, column in np.argwhere(counts > 0):
        strength = float(strengths[row, column])
        axes.bar(column, 1, 1, row - 0.5, color=ACCENT, alpha=max(0.03, strength), linewidth=0)
        if numbered:
            colour = PAPER if strength > 0.7 else INK
            look: dict[str, Any] = {"ha": "center", "va": "center_baseline", "fontsize": 10, "color": colour}
            axes.text(column, row, thousands(counts[row, column]), **look)


def _figure(width: float, inner: float, margins: tuple[float, float, float, float]) -> tuple[Figure, Axes]:
    """Make a figure of a width in inches, with axes of a height in pixels inside margins (left, right, bottom, top)."""
    left, right, bottom, top = margins
    across, high = 72 * width, inner + bottom + top
    figure = Figure(figsize=(width, high / 72))
    return figure, figure.add_axes((left / across, bottom / high, (across - left - right) / across, inner / high))


def _whole_numbers(axis: Any, at_most: int) -> None:
    axis.set_major_locator(MaxNLocator(at_most, integer=True, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: thousands(value)))


def _legend(figure: Figure, axes: Axes, entries: Sequence[tuple[str, str, str]]) -> None:
    for marker, colour, label in entries:
        filled, edge = PAPER if marker == "o" else colour, 2 if marker == "|" else 1
        look: dict[str, Any] = {"color": colour, "markerfacecolor": filled, "markeredgewidth": edge, "markersize": 8}
        axes.plot([], [], marker, label=label, **look)
    spacing = {"borderpad": 0, "borderaxespad": 0.1, "handletextpad": 0.3, "columnspacing": 1.4, "handlelength": 1.4}
    figure.legend(loc="upper left", ncols=len(entries), **spacing)
