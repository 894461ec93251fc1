"""The first label step of Algorithm 1 by three methods: change of the cost from its initial value against time.

100 labelled rows; supervised weights, greedy labels (steps 3 to 9), weights at C = 1e-4, and then step 13 on the costs
at these weights, from these labels. ohscal has the paper's 5581 unlabelled rows. aut-avn was not available: instead,
the words of each document of gcat are divided at random into two halves, and 35 888 halves are drawn. The same again
from labels of the north-west corner rule, rows in random order. Fast methods are timed as the best of a few runs; the
simplex has a limit of 60 seconds.
"""

import time
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.preprocessing import normalize

from experiments.data import Rows, Source
from experiments.study import AGREES, DIFFERS, PARTLY, Row, Verdict, add_legend, panels_of, select, unique
from transduce import Taxonomy
from transduce.class_prior.bounds import Bounds
from transduce.design import Design
from transduce.engines.base import StepSettings
from transduce.engines.local import LocalEngine
from transduce.label_step import Exact, LabelProblem, LabelSolution, Simplex, Switching
from transduce.losses import LargeMargin
from transduce.problem import TrainingProblem
from transduce.solvers.alternating import Alternation, Settings
from transduce.solvers.loop import Loop

ALONE = True
KEYS = ("set", "start", "method")
RESULTS = ("n_rows", "n_classes", "seconds", "cost", "change", "n_steps", "gap", "is_done")
N_LABELED, ALPHA, FIRST_WEIGHT, TOL = 100, 1e-3, 1e-4, 1e-3
N_UNLABELED = {"ohscal": 5581, "gcat halves": 35_888}
LIMIT, REPEATS, POINTS = 60.0, 5, 80
PAPER = {"ohscal": ("simplex 100 s, switching well within 1 s", 1.0), "gcat halves": ("30 min and 0.1 s", 0.1)}
"""Of ohscal and of aut-avn, and the seconds that switching may take; section "Comparison of the algorithms"."""
PAPER_SHOWS = (
    "The change of the cost on ohscal against time (log scale), for the transportation simplex and for switching, with "
    "100 labelled and 5581 unlabelled rows, when Algorithm 1 first enters step 13. The text adds the times for "
    "aut-avn, with two classes and 35 888 unlabelled rows."
)
STARTS, COLORS = ("greedy", "corner"), {"simplex": "tab:red", "switching": "black", "exact": "tab:blue"}
LABELS = {"greedy": "greedy labels", "corner": "corner rule"}


def grid(smoke: bool) -> list[Row]:
    return [
        {"set": name, "start": start, "method": method} for name in N_UNLABELED for start in STARTS for method in COLORS
    ]


def run(source: Source, cell: Row) -> list[Row]:
    """Points of a curve; the last one is where the method ended, with its bound on the distance from the optimum."""
    problem, start = first_label_step(source, cell["set"])
    start = start if cell["start"] == "greedy" else np.repeat(np.arange(problem.n_classes), problem.low)
    limit = LIMIT if source.folder is not None else 1.0
    initial = float(problem.costs[np.arange(problem.n_rows), start].sum())
    few = LabelProblem.create(np.arange(12.0).reshape(6, 2) % 5, [3, 3])
    for method in (Exact(), Switching(), Simplex()):
        method.solve(few)  # compiled before the clock starts
    if cell["method"] == "simplex":
        answer = Simplex(limit).solve(problem, start=start)
        points = [(p.seconds, p.cost, p.n_steps) for p in answer.trace]
        keep = np.unique(np.geomspace(1, len(points), POINTS).astype(int) - 1)
        points = [points[i] for i in keep]
    elif cell["method"] == "switching":
        seconds, answer = timed(lambda: Switching().solve(problem, start=start))
        each = [timed(lambda n=n: Switching(n).solve(problem, start=start)) for n in range(1, answer.n_rounds)]
        each.append((seconds, answer))
        points = [(0.0, initial, 0), *((s, a.cost, a.n_rounds) for s, a in each)]
    else:
        seconds, answer = timed(lambda: Exact().solve(problem))
        points = [(0.0, initial, 0), (seconds, answer.cost, answer.n_rounds)]
    shape = {"n_rows": problem.n_rows, "n_classes": problem.n_classes}
    rows = [
        shape | {"seconds": round(s, 6), "cost": cost, "change": cost - initial, "n_steps": n, "gap": "", "is_done": 0}
        for s, cost, n in points
    ]
    rows[-1] |= {"gap": answer.gap, "is_done": int(cell["method"] != "simplex" or rows[-1]["seconds"] < limit)}
    return rows


def timed(run: Callable[[], LabelSolution]) -> tuple[float, LabelSolution]:
    """Best time of a few runs, and the answer."""
    best = np.inf
    for _ in range(REPEATS):
        begin = time.perf_counter()
        answer = run()
        best = min(best, time.perf_counter() - begin)
    return best, answer


class Recorder:
    """An exact label step that remembers the first problem and the labels to begin from."""

    def __init__(self) -> None:
        self.first: tuple[LabelProblem, np.ndarray] | None = None

    def solve(self, problem: LabelProblem, prices: np.ndarray | None, start: np.ndarray) -> LabelSolution:
        self.first = self.first or (problem, start.copy())
        return Exact().solve(problem, prices, start)


@lru_cache(maxsize=1)
def first_label_step(source: Source, name: str) -> tuple[LabelProblem, np.ndarray]:
    """Costs and counts of the first entry to step 13, and the greedy labels."""
    X, y = source.load("ohscal") if name == "ohscal" else halves(*source.load("rcv1_topics"))
    rows = np.random.default_rng(0).permutation(len(y))[: N_LABELED + N_UNLABELED[name]]
    X, y = X[rows], y[rows]
    counts = np.bincount(y[N_LABELED:], minlength=int(y.max()) + 1)
    design = Design.create(X, Taxonomy.flat(range(counts.size)))
    problem = TrainingProblem.create(design, LargeMargin(), ALPHA, N_LABELED)
    recorder, settings = Recorder(), Settings((FIRST_WEIGHT,), TOL, TOL, 1)
    steps = StepSettings(Bounds(counts, counts), recorder, 10_000)
    restart = LocalEngine(problem, y).new_restart(steps, np.random.default_rng(0))
    Loop().run(Alternation(restart, settings))
    return recorder.first


def halves(X: Rows, y: np.ndarray) -> tuple[Rows, np.ndarray]:
    """Two rows of length 1 from each, every feature in one of them; two classes."""
    one, other = X.copy(), X.copy()
    first = np.random.default_rng(0).random(X.nnz) < 0.5
    one.data[~first], other.data[first] = 0.0, 0.0
    return normalize(sparse.vstack((one, other), format="csr")), np.tile(y == 0, 2).astype(np.int64)


def plot(rows: list[Row]) -> Figure:
    """The lowest cost so far against time, in steps: no curve falls before the method has labels to show."""
    names = unique(rows, "set")
    figure, panels = panels_of(2 * len(names), sharex=True)
    begin = min(row["seconds"] for row in rows if row["seconds"] > 0) / 2
    for panel, (name, start) in zip(panels, [(name, start) for name in names for start in STARTS], strict=True):
        n, m = (select(rows, set=name)[0][key] for key in ("n_rows", "n_classes"))
        for method, color in COLORS.items():
            mine = [row for row in select(rows, set=name, start=start, method=method) if row["seconds"] > 0]
            x = [begin, *(row["seconds"] for row in mine)]
            y = np.minimum.accumulate([0.0, *(row["change"] for row in mine)])
            panel.plot(x, y, color=color, drawstyle="steps-post", label=method)
            panel.plot(x[-1:], y[-1:], color=color, marker="o", markersize=4)
        panel.set_xscale("log")
        panel.set_xlabel("seconds", fontsize=8)
        panel.set_ylabel("change of the cost", fontsize=8)
        panel.set_title(f"{name}, {n} × {m}, {LABELS[start]}", fontsize=8)
    add_legend(figure)
    return figure


def verdicts(rows: list[Row]) -> list[Verdict]:
    n_curves = {name: len({(r["start"], r["method"]) for r in select(rows, set=name)}) for name in unique(rows, "set")}
    whole = [name for name, n in n_curves.items() if n == len(STARTS) * len(COLORS)]
    return [verdict(rows, name) for name in whole for verdict in (_speed, _distance, _proof)]


def _last(rows: list[Row], name: str, start: str = "greedy") -> list[Row]:
    """Where the simplex, switching and the exact label step ended."""
    return [select(rows, set=name, start=start, method=method)[-1] for method in COLORS]


def _speed(rows: list[Row], name: str) -> Verdict:
    (simplex, switching, exact), corner = _last(rows, name), _last(rows, name, "corner")
    said, bound = PAPER[name]
    times = {row["method"]: row["seconds"] for row in (simplex, switching, exact)}
    is_quick, is_slow = switching["seconds"] < bound, simplex["seconds"] > 100 * switching["seconds"]
    ratio = corner[0]["seconds"] / corner[1]["seconds"]
    return Verdict(
        f"{name}, {exact['n_rows']} x {exact['n_classes']}: the simplex takes long, switching a moment",
        said,
        ", ".join(f"{method} {seconds:.2g} s" for method, seconds in times.items())
        + f"; {simplex['n_steps']} pivots" + ("" if simplex["is_done"] else ", not at the optimum yet"),
        AGREES if is_quick and is_slow else PARTLY if is_quick and ratio > 10 else DIFFERS,
        f"Compiled code: a pivot takes {simplex['seconds'] / max(simplex['n_steps'], 1) * 1e6:.2g} µs. "
        f"From the labels of the north-west corner the simplex needs {corner[0]['n_steps']} pivots and "
        f"{corner[0]['seconds']:.2g} s, {ratio:.0f} times as long as switching"
        + ("." if corner[0]["is_done"] else ", and is not at the optimum then."),
        "Compiled code makes the simplex fast too, though slower than switching",
    )  # fmt: skip


def _distance(rows: list[Row], name: str) -> Verdict:
    _, switching, exact = _last(rows, name)
    excess, fall = switching["cost"] - exact["cost"], -exact["change"]
    is_optimal, is_close = excess <= 1e-9 * exact["cost"], excess < 0.05 * fall
    is_binary = exact["n_classes"] == 2
    how_far = "the optimum, since there are two classes" if is_binary else "nearly the optimum"
    return Verdict(
        f"{name}: switching reaches {how_far}",
        "exact optimality" if is_binary else "close to optimal",
        f"{1 - excess / fall if fall > 0 else 1:.2%} of the fall from the initial cost, "
        f"{max(excess, 0.0) / exact['cost']:.1e} above the optimum, in {switching['n_steps']} rounds",
        AGREES if is_optimal or (is_close and not is_binary) else PARTLY if is_close else DIFFERS,
    )  # fmt: skip


def _proof(rows: list[Row], name: str) -> Verdict:
    _, switching, exact = _last(rows, name)
    return Verdict(
        f"{name}: the exact label step, with the proof that its labels are optimal",
        "not in the paper",
        f"{exact['seconds']:.2g} s, {switching['seconds'] / exact['seconds']:.2g} times the speed of switching; "
        f"gap {exact['gap']:.1e} of a cost of {exact['cost']:.6g}",
        AGREES if exact["gap"] <= 1e-9 * exact["cost"] else DIFFERS,
    )
