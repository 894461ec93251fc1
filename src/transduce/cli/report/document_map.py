"""The map of documents: a point for each, placed by its class scores (`placement`) and coloured by its label."""

import numpy as np
import polars as pl
from markupsafe import Markup
from numpy.typing import ArrayLike

from transduce.arrays import Array
from transduce.cli.messages import NO_CLASS
from transduce.cli.report import plots
from transduce.cli.report.data import ReportData, Section
from transduce.cli.report.svg import element, label, shorten
from transduce.placement import place_points as place_points

MAX_POINTS, MAX_COLORS = 3000, 12
"""Documents that are drawn, labelled ones first, and classes with a colour of their own, which the style sheet has."""
_ROW = 20
_SIDE, _LEGEND = {plots.WIDE: 480, plots.NARROW: 328}, {plots.WIDE: (510, 24), plots.NARROW: (12, 348)}
_NAME_WIDTH = 26
OTHERS = "line"
"""Colour of the other classes, and of documents without a class."""


def document_map(data: ReportData) -> Section | None:
    """The chart, with the number of documents in it; None without feature rows, or with one class only."""
    if data.X is None or len(data.model.classes) < 2:
        return None
    chosen = sample_rows(data.rows["given"].to_numpy())
    rows, X = data.rows[chosen], data.X[chosen]
    points = place_points(data.model.scores(X) - data.model.shift, X)
    return {"n": rows.height, "n_rows": data.rows.height, "chart": map_chart(points, rows, list(data.new_counts))}


def sample_rows(given: Array) -> Array:
    """Return row numbers in ascending order: labelled rows, up to half of the points, and a random sample of others."""
    rng, labeled, others = np.random.default_rng(0), np.flatnonzero(given), np.flatnonzero(~given)
    n_labeled = min(labeled.size, max(MAX_POINTS // 2, MAX_POINTS - others.size))
    n_others = min(others.size, MAX_POINTS - n_labeled)
    return np.sort(np.concatenate((rng.permutation(labeled)[:n_labeled], rng.permutation(others)[:n_others])))


def map_chart(points: Array, rows: pl.DataFrame, names: list[str]) -> plots.Chart:
    """Draw points (n, 2) between -1 and 1; the first of the names have colours, the legend lists those that occur."""
    kinds = np.where(rows["given"], "given", np.where(rows["overruled"], "overruled", "new"))
    color_of = {name: f"map-{k}" for k, name in enumerate(names[:MAX_COLORS])}
    colors = np.array([color_of.get(name, OTHERS) for name in rows["label"]], dtype=object)
    legend = [(name, color, "class") for name, color in color_of.items() if color in colors]
    others = {name for name in rows["label"] if name not in color_of}
    legend += [(NO_CLASS if others == {""} else "other classes", OTHERS, "class")] if others else []
    marks = ("given", "labelled by you"), ("overruled", "decided by the class sizes")
    legend += [(text, "muted", kind) for kind, text in marks if kind in kinds]
    layers = [(color, kind) for kind in ("new", "overruled", "given") for color in (OTHERS, *color_of.values())]

    def draw(width: int) -> plots.Drawing:
        half, (left, top), elements = _SIDE[width] / 2, _LEGEND[width], []
        places = half + (half - 8) * points
        for color, kind in layers:
            elements += _marks(places[(kinds == kind) & (colors == color)], color, kind)
        for row, (text, color, kind) in enumerate(legend):
            y = top + row * _ROW
            elements += [*_marks([[left, y - 4]], color, kind), label(left + 12, y, shorten(text, _NAME_WIDTH)[0])]
        return max(_SIDE[width], top + len(legend) * _ROW), elements

    return plots.make_chart(draw, "Map of documents: a point for each, coloured by class")


def _marks(points: ArrayLike, color: str, kind: str) -> list[Markup]:
    """Draw points (n, 2) as dots, crosses, or dots with a border, in as few elements as possible."""
    dots = {"new": [(color, 3.6)], "class": [(color, 8.0)], "given": [("ink", 9.0), (color, 6.0)]}
    if color == OTHERS:
        dots["given"] = [("muted", 6.0), (color, 4.0)]
    forms = [("m-3 -3l6 6m0 -6l-6 6", color, 1.8)] if kind == "overruled" else [("h0", *dot) for dot in dots[kind]]
    style = {"fill": "none", "stroke_linecap": "round"}
    starts = [f"M{x:.1f} {y:.1f}" for x, y in np.asarray(points).tolist()]
    return [
        element(
            "path", d="".join(start + form for start in starts), class_=f"stroke-{name}", stroke_width=size, **style
        )
        for form, name, size in forms
        if starts
    ]
