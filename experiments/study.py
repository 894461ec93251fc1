"""Tools that studies share to present their rows: verdicts, means, tables and curves."""

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.methods import METHOD_NAMES

Row = dict[str, Any]
AGREES, PARTLY, DIFFERS = "agrees", "in part", "differs"
NOT_EVERYWHERE = "Not true at every number of labels"
"""The cause of claims about a whole curve that fail at some of its points."""
NOT_THEIRS = ("not in the paper", "our target", "not said of this set")
"""What a verdict says of the paper where the claim is our own."""
STYLES: dict[str, dict[str, Any]] = {
    "supervised": {"color": "black", "linestyle": "--"},
    "paper": {"color": "black", "linestyle": "-"},
    "default": {"color": "tab:blue", "linestyle": "-", "marker": "o", "markersize": 3.5},
    "no annealing": {"color": "tab:orange", "linestyle": "-"},
    "all labels": {"color": "tab:red", "linestyle": "--"},
}
"""As in the paper: supervised dashed, the method continuous, all labels known a red line; ours beside them in blue."""


class Verdict(NamedTuple):
    """A claim, what the paper says, what we see, and whether they agree: AGREES, PARTLY or DIFFERS, and why not.

    The cause is the reason in general terms, which several claims may share; the summary groups claims by it.
    """

    claim: str
    paper: str
    ours: str
    word: str
    reason: str = ""
    cause: str = ""

    @property
    def is_own(self) -> bool:
        """Whether the paper does not say so: a target or an addition of ours."""
        return any(words in self.paper for words in NOT_THEIRS)


class Summary(NamedTuple):
    """Mean and standard deviation of a result over the seeds."""

    mean: float
    deviation: float
    n: int


def select(rows: Iterable[Row], **values: Any) -> list[Row]:
    """Rows with these values."""
    return [row for row in rows if all(row[name] == value for name, value in values.items())]


def summary(rows: Iterable[Row], result: str = "macro_f", **values: Any) -> Summary:
    """Of a result in the rows with these values; NaN where there are none."""
    found = np.array([row[result] for row in select(rows, **values)], dtype=float)
    if not found.size:
        return Summary(float("nan"), float("nan"), 0)
    return Summary(float(found.mean()), float(found.std(ddof=1)) if found.size > 1 else 0.0, found.size)


def halves(values: Mapping[int, float]) -> tuple[float, float]:
    """Means over the smaller half of the sizes and over the larger one, the middle size in neither; NaN if only one."""
    sizes, n = sorted(values), len(values) // 2
    if not n:
        return float("nan"), float("nan")
    return tuple(float(np.mean([values[size] for size in part])) for part in (sizes[:n], sizes[-n:]))


def paired(rows: Sequence[Row], others: Sequence[Row]) -> np.ndarray:
    """Macro F of the first rows less that of the others, for each seed that both have."""
    one, other = ({row["seed"]: row["macro_f"] for row in part} for part in (rows, others))
    return np.array([one[seed] - other[seed] for seed in sorted(one.keys() & other.keys())], dtype=float)


def scatter(differences: np.ndarray) -> str:
    """Mean ± standard error of paired differences."""
    error = differences.std(ddof=1) / np.sqrt(differences.size) if differences.size > 1 else float("nan")
    return f"{differences.mean():+z.3f}" + (f" ± {number(error)}" if differences.size > 1 else "")


def number(value: float, digits: int = 3) -> str:
    """Without the zero before the point: .853."""
    if np.isnan(value):
        return ""
    text = f"{value:z.{digits}f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def spread(s: Summary) -> str:
    """Mean ± deviation."""
    return "" if not s.n else f"{number(s.mean)} ± {number(s.deviation)}"


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def unique(rows: Iterable[Row], name: str) -> list[Any]:
    """Values of a column, in the order in which they come."""
    return list(dict.fromkeys(row[name] for row in rows))


def curves_table(rows: Sequence[Row], x: str, text: str) -> str:
    """Mean ± deviation of each method and set against x."""
    lines = []
    for name in unique(rows, "set"):
        mine = select(rows, set=name)
        for method in unique(mine, "method"):
            sizes = sorted(set(unique(select(mine, method=method), x)))
            each = ", ".join(f"{size}: {spread(summary(mine, method=method, **{x: size}))}" for size in sizes)
            lines.append([name, METHOD_NAMES[method], each])
    return markdown(["set", "method", f"macro F against {text}"], lines)


def curves(rows: Sequence[Row], x: str, text: str) -> Figure:
    """Macro F against x: one panel per set, one line per method with its deviation; a level line for all labels."""
    names = unique(rows, "set")
    figure, panels = panels_of(len(names))
    for panel, name in zip(panels, names, strict=True):
        _panel(panel, select(rows, set=name), x)
        panel.set_title(name, fontsize=9)
        panel.set_xlabel(text, fontsize=8)
        panel.set_ylabel("macro F", fontsize=8)
    add_legend(figure)
    return figure


def panels_of(n: int, **settings: Any) -> tuple[Figure, list[Axes]]:
    """A figure with n panels in two columns, narrow enough to stand beside a column of text."""
    n_lines = -(-n // 2)
    figure = Figure(figsize=(2.9 * min(n, 2), 2.3 * n_lines + 0.4 * (n % 2 == 0)), layout="constrained")
    panels = figure.subplots(n_lines, min(n, 2), squeeze=False, **settings).ravel()
    for panel in panels[n:]:
        panel.remove()
    for panel in panels[:n]:
        panel.grid(alpha=0.3)
        panel.tick_params(labelsize=7)
    return figure, list(panels[:n])


def add_legend(figure: Figure) -> None:
    """One legend for all panels: in the free place of an odd number of panels, otherwise below them."""
    lines = {text: line for p in figure.axes for line, text in zip(*p.get_legend_handles_labels(), strict=True)}
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": 4 if len(lines) <= 4 else 3}
    if len(figure.axes) > 1 and len(figure.axes) % 2:
        place = {"loc": "center", "bbox_to_anchor": (0.77, 0.5 / -(-len(figure.axes) // 2))}
    figure.legend(lines.values(), lines.keys(), fontsize=8, **place)


def _panel(panel: Axes, rows: list[Row], x: str) -> None:
    for method in unique(rows, "method"):
        mine = select(rows, method=method)
        if method == "all labels":
            panel.axhline(summary(mine).mean, label=METHOD_NAMES[method], **STYLES[method])
            continue
        sizes = sorted(set(unique(mine, x)))
        found = [summary(mine, **{x: size}) for size in sizes]
        mean, deviation = np.array([s.mean for s in found]), np.array([s.deviation for s in found])
        panel.plot(sizes, mean, label=METHOD_NAMES[method], **STYLES[method])
        panel.fill_between(sizes, mean - deviation, mean + deviation, color=STYLES[method]["color"], alpha=0.12, lw=0)
    every = sorted({row[x] for row in rows if row["method"] != "all labels"} or {row[x] for row in rows})
    panel.set_xscale("log")
    shown = _apart(every)
    panel.set_xticks(shown, [str(size) for size in shown])
    panel.minorticks_off()


def _apart(sizes: Sequence[int]) -> list[int]:
    """Sizes whose labels do not touch on a log scale; the largest is among them."""
    found = [sizes[-1]]
    for size in reversed(sizes[:-1]):
        if np.log(found[0] / size) >= np.log(sizes[-1] / sizes[0]) / 8:
            found.insert(0, size)
    return found


def save(figure: Figure, path: Path) -> None:
    """An SVG that depends on nothing but what it shows."""
    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "transduce", "svg.fonttype": "none", "font.size": 9}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    path.write_text(text.getvalue(), encoding="utf-8", newline="\n")
