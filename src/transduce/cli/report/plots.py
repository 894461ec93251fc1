"""The charts of a report, each in two widths, for a desk and for a phone; the page shows the one that fits.

A chart draws as many classes as can be read, the first of those it is given, so callers sort them.
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

from transduce.cli.report.svg import ACCENT, INK, LINE, MUTED, PAPER, Draw, Words, inline_svg

WIDE, NARROW = 720, 328
MOST_BARS = 25
MOST_CELLS = {WIDE: 30, NARROW: 12}
_ROW, _LETTER = 24, 7.4
_NAME_COLUMNS = {WIDE: 32, NARROW: 15}
_DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))


@dataclass(frozen=True)
class Chart:
    """One picture as two SVGs."""

    wide: Markup
    narrow: Markup


def _chart(draw: Draw, name: str, title: str) -> Chart:
    wide, narrow = (inline_svg(draw, width, f"{name}{width}", title) for width in (WIDE, NARROW))
    return Chart(wide, narrow)


def thousands(number: float) -> str:
    """A whole number in groups of three, which no line break parts.

    >>> thousands(22420).replace("\\u202f", " ")
    '22 420'
    """
    return f"{round(number):,}".replace(",", "\u202f")


def sizes_chart(
    names: Sequence[str], assigned: Sequence[int], own: Sequence[int], asked: Sequence[tuple[int, int] | None]
) -> Chart:
    """Bars for what each class got, ticks or a span for what was asked (if it was), a ring for the classifier alone."""
    sized = [(row, *bounds) for row, bounds in enumerate(asked[:MOST_BARS]) if bounds is not None]

    def draw(width: float, words: Words) -> Figure:
        figure, axes = _bars(width, names, assigned, words, top=26)
        rows, low, high = np.array(sized, dtype=float).reshape(-1, 3).T
        axes.hlines(rows, low, high, colors=INK, linewidth=2)
        for bound in (low, high):
            axes.vlines(bound, rows - 0.42, rows + 0.42, colors=INK, linewidth=2)
        axes.plot(
            own[:MOST_BARS],
            range(len(names[:MOST_BARS])),
            "o",
            color=INK,
            markerfacecolor=PAPER,
            markersize=6,
            clip_on=False,
        )
        axes.set_xlim(0, 1.04 * max(1, *assigned[:MOST_BARS], *own[:MOST_BARS], *high))
        _legend(figure, axes, [("s", ACCENT, "assigned"), ("|", INK, "asked"), ("o", INK, "classifier alone")])
        return figure

    return _chart(draw, "sizes", "Documents of each class: assigned, asked, and by the classifier alone")


def counts_chart(names: Sequence[str], counts: Sequence[int], name: str, title: str) -> Chart:
    """Bars for a number of documents a class."""
    return _chart(lambda width, words: _bars(width, names, counts, words, top=4)[0], name, title)


def _bars(width: float, names: Sequence[str], values: Sequence[int], words: Words, top: int) -> tuple[Figure, Axes]:
    """A row for each class: its name, a bar, and the number at the right."""
    names, values = names[:MOST_BARS], values[:MOST_BARS]
    columns = _NAME_COLUMNS[round(72 * width)]
    labels = [words.put(name, columns) for name in names]
    left, right = words.widest * _LETTER + 12, 54
    figure, axes = _figure(width, _ROW * len(names), (left, right, 26, top))
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


def progress_chart(history: Sequence[Mapping[str, Any]], kept: int) -> Chart:
    """The objective and the labels moved, a line for each way; the way kept stands out."""
    restarts = sorted({int(row["restart"]) for row in history})

    def draw(width: float, words: Words) -> Figure:
        figure, whole = _figure(width, 330, (56, 12, 42, 26))
        left, bottom, across, _ = whole.get_position().bounds
        whole.set_position((left, 0.53, across, 0.40))
        upper, lower = whole, figure.add_axes((left, bottom, across, 0.43 - bottom))
        for restart in sorted(restarts, key=lambda restart: restart == kept):
            rows = [row for row in history if int(row["restart"]) == restart]
            rounds, look = range(1, len(rows) + 1), _look(restart, kept)
            upper.plot(rounds, [row["objective"] for row in rows], **look)
            lower.plot(rounds, [row["moved"] for row in rows], **look)
        _moved_axis(lower, max(row["moved"] for row in history))
        for axes, what in ((upper, "objective"), (lower, "labels moved")):
            axes.grid(axis="y")
            axes.set_xlim(
                0, 1 + max(len([row for row in history if int(row["restart"]) == restart]) for restart in restarts)
            )
            axes.set_title(what, loc="left", fontsize=12, color=MUTED, pad=8)
            _whole_numbers(axes.xaxis, 6)
        upper.tick_params(axis="x", labelbottom=False)
        upper.yaxis.set_major_locator(MaxNLocator(5))
        lower.set_xlabel("round")
        return figure

    return _chart(draw, "progress", "Objective and labels moved in each round, for each way to the labels")


def _moved_axis(axes: Axes, most: float) -> None:
    """From thousands to none: equal steps for equal factors, and a zero all the same."""
    axes.set_yscale("symlog", linthresh=10, linscale=0.9)
    axes.yaxis.set_major_locator(FixedLocator([0, *(10**power for power in range(1, 10))]))
    axes.yaxis.set_minor_locator(FixedLocator([]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: thousands(value)))
    axes.set_ylim(0, 1.3 * max(10.0, most))


def _look(restart: int, kept: int) -> dict[str, Any]:
    if restart == kept:
        return {"color": ACCENT, "linewidth": 2.5}
    return {"color": MUTED, "linewidth": 1.2, "linestyle": _DASHES[restart % len(_DASHES)]}


def dash_of(restart: int) -> int:
    """Which of the line styles a way that was not kept is drawn in."""
    return restart % len(_DASHES)


def confidence_chart(counts: Sequence[int]) -> Chart:
    """A histogram of numbers between 0 and 1, in bins of equal width."""
    edges = np.linspace(0, 1, len(counts) + 1)

    def draw(width: float, words: Words) -> Figure:
        figure, axes = _figure(width, 150, (56, 12, 42, 8))
        axes.bar(edges[:-1], counts, width=0.88 * np.diff(edges), align="edge", color=ACCENT)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1.05 * max(1, *counts))
        axes.set_xticks(np.linspace(0, 1, 6))
        axes.set_xlabel("confidence")
        axes.grid(axis="y")
        _whole_numbers(axes.yaxis, 4)
        return figure

    return _chart(draw, "confidence", "How many labels were given with which confidence")


def confusion_chart(names: Sequence[str], counts: NDArray[np.int64]) -> Chart:
    """Documents of each true class (rows) by the label they got (columns); where there is not room for all classes,
    those with most mistakes, in the order given."""
    mistakes = counts.sum(axis=0) + counts.sum(axis=1) - 2 * counts.diagonal()
    totals = np.maximum(counts.sum(axis=1), 1)

    def draw(width: float, words: Words) -> Figure:
        pixels = round(72 * width)
        chosen = np.sort(np.argsort(-mistakes, kind="stable")[: MOST_CELLS[pixels]])
        size = len(chosen)
        labels = [words.put(names[k], _NAME_COLUMNS[pixels] - 3) for k in chosen]
        left = (words.widest + 3) * _LETTER + 12
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
    """Text that ends so many pixels from the left (x = 0) or the right (x = 1) edge of a row."""
    where = ("axes fraction", "data")
    axes.annotate(text, (x, row), (offset, 0), where, "offset points", ha="right", va="center_baseline", **look)


def _cells(axes: Axes, counts: NDArray[np.int64], totals: NDArray[np.int64], numbered: bool) -> None:
    size = len(counts)
    axes.set_xlim(-0.5, size - 0.5)
    axes.set_ylim(size - 0.5, -0.5)
    axes.hlines(np.arange(size + 1) - 0.5, -0.5, size - 0.5, colors=LINE, linewidth=0.5)
    axes.vlines(np.arange(size + 1) - 0.5, -0.5, size - 0.5, colors=LINE, linewidth=0.5)
    axes.spines[:].set_visible(False)
    shares = np.sqrt(counts / totals)
    for row, column in np.argwhere(counts > 0):
        share = float(shares[row, column])
        axes.bar(column, 1, 1, row - 0.5, color=ACCENT, alpha=max(0.03, share), linewidth=0)
        if numbered:
            colour = PAPER if share > 0.7 else INK
            axes.text(
                column,
                row,
                thousands(counts[row, column]),
                ha="center",
                va="center_baseline",
                fontsize=10,
                color=colour,
            )


def _figure(width: float, inner: float, margins: tuple[float, float, float, float]) -> tuple[Figure, Axes]:
    """A figure of a width in inches, with axes of a height in pixels inside margins (left, right, bottom, top)."""
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
