"""The textbook transportation simplex, against which the paper measures label switching.

Rows supply one unit each and classes demand their high counts. One more column, the pool, demands the rows that no low
count needs. One more row per class, its filler, supplies high − low units to its class or to the pool: what it gives to
the class is capacity that stays unused. Other cells of pool and fillers are forbidden.

The problem is degenerate, so it is solved at N times the supplies plus 1, N times the demands, and as many more units
for the pool as there are rows: then no tree flow is 0, each pivot lowers the cost, and rounding flow / N gives the
labels (N exceeds twice the number of rows). Each pivot reads all n × K cells, so it is slow.
"""

import time
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np

from transduce.label_step._kernels.pivots import pivot
from transduce.label_step.certificate import certify
from transduce.label_step.greedy import greedy_labels
from transduce.label_step.problem import FloatArray, IntArray, LabelProblem
from transduce.label_step.solution import LabelSolution, Status, TracePoint
from transduce.suggest import short_repr

ROUNDING = 32 * float(np.finfo(np.float64).eps)
"""Reduced costs above minus this fraction of the largest cost count as 0."""
PIVOTS_PER_POINT = 64
"""Pivots between two points of the trace, and between two checks of the time limit."""


@dataclass(frozen=True)
class Simplex:
    """Optimal labels by pivots of the transportation simplex, with a trace of cost against time.

    Parameters
    ----------
    max_seconds : float or None, default=None
        Time limit.

    Examples
    --------
    >>> problem = LabelProblem.create([[0.0, 1.0], [0.0, 3.0], [2.0, 0.0]], counts=[1, 2])
    >>> answer = Simplex().solve(problem)
    >>> answer.labels, answer.cost, [point.cost for point in answer.trace]
    (array([1, 0, 1]), 1.0, [3.0, 1.0])
    """

    takes_groups: ClassVar[bool] = False
    max_seconds: float | None = None

    def solve(
        self, problem: LabelProblem, prices: FloatArray | None = None, start: IntArray | None = None
    ) -> LabelSolution:
        """Pivot, from the greedy labels if there is no start; `prices` are ignored. See `LabelStep.solve`."""
        limit = self.max_seconds
        if limit is not None and (not isinstance(limit, Real) or not limit >= 0):
            raise ValueError(f"max_seconds must be 0 or more, or None for no limit, but is {short_repr(limit)}.")
        problem.refuse_groups("The simplex label step")
        begin = time.perf_counter()
        start = greedy_labels(problem) if start is None else start.copy()
        if problem.n_rows == 0:
            return certify(problem, start, n_moves=0, n_rounds=0)
        basis = _Basis.from_labels(problem, start)
        trace = [TracePoint(time.perf_counter() - begin, 0, basis.cost(problem))]
        n_pivots, optimal = 0, False
        while not optimal and (self.max_seconds is None or trace[-1].seconds < self.max_seconds):
            made, optimal = basis.pivot(PIVOTS_PER_POINT)
            n_pivots += made
            trace.append(TracePoint(time.perf_counter() - begin, n_pivots, basis.cost(problem)))
        labels = basis.labels(problem)
        n_moves, otherwise = int(np.count_nonzero(labels != start)), Status.ROUNDED if optimal else Status.OUT_OF_TIME
        return certify(problem, labels, n_moves=n_moves, n_rounds=n_pivots, otherwise=otherwise, trace=tuple(trace))


@dataclass(frozen=True, eq=False)
class _Basis:
    """A spanning tree of rows and columns with its flows; pivots change the arrays in place."""

    costs: FloatArray  # rows, then fillers, against classes with a count, then the pool
    classes: IntArray  # the class behind each column but the last
    unit: int  # the flow of one row
    cells: IntArray  # (2, m) row and column of each, as nodes of the tree
    flow: IntArray

    @classmethod
    def from_labels(cls, problem: LabelProblem, labels: IntArray) -> "_Basis":
        """Link every column to the pool by its filler, or by one of its rows where the filler gives it nothing."""
        classes = np.flatnonzero(problem.high)
        high, spare = problem.high[classes], (problem.high - problem.low)[classes]
        tally = problem.tally(labels)[classes]
        fillers = np.flatnonzero(spare)
        n, pool = problem.n_rows, classes.size
        columns = np.searchsorted(classes, labels)
        linked_by = np.full(pool, -1, np.int64)
        linked_by[columns] = np.arange(n)
        by_filler = tally[fillers] < high[fillers]
        linked_by[fillers[by_filler]] = n + np.flatnonzero(by_filler)

        unit = 2 * (n + fillers.size) + 2
        supply = unit * np.append(np.ones(n, np.int64), spare[fillers]) + 1
        rows = np.concatenate((np.arange(n + fillers.size), linked_by))
        columns = np.concatenate((columns, np.where(by_filler, fillers, pool), np.full(pool, pool)))
        flow = np.append(supply, np.zeros(pool, np.int64))
        over = np.bincount(columns, weights=flow, minlength=pool + 1)[:pool].astype(np.int64) - unit * high
        flow[linked_by] -= over
        flow[n + fillers.size :] += over
        cells = np.stack((rows, n + fillers.size + columns))
        return cls(_finite_costs(problem, classes, fillers), classes, unit, cells, flow)

    def pivot(self, max_pivots: int) -> tuple[int, bool]:
        """Improve the basis; returns the pivots made and whether it is optimal."""
        tolerance = ROUNDING * float(np.abs(self.costs).max())
        return pivot(self.costs, self.cells, self.flow, tolerance, max_pivots)

    def labels(self, problem: LabelProblem) -> IntArray:
        """The class whose cell carries the whole unit of a row, the perturbation rounded away."""
        rows, columns = self.cells[:, (self.cells[0] < problem.n_rows) & (2 * self.flow > self.unit)]
        labels = np.empty(problem.n_rows, np.int64)
        labels[rows] = self.classes[columns - len(self.costs)]
        return labels

    def cost(self, problem: LabelProblem) -> float:
        return float(problem.costs[np.arange(problem.n_rows), self.labels(problem)].sum(dtype=np.float64))


def _finite_costs(problem: LabelProblem, classes: IntArray, fillers: IntArray) -> FloatArray:
    """Costs of all cells, with forbidden ones at more than any cycle of exchanges could gain.

    Constants of a row, or of a column with a fixed count, are subtracted: they decide nothing and cost digits.
    """
    costs = problem.costs[:, classes].astype(np.float64)
    allowed = costs < np.inf
    if problem.exact_counts:
        least = np.min(costs, axis=0, where=allowed, initial=np.inf)
        costs -= np.where(least < np.inf, least, 0.0)
    costs -= costs.min(axis=1, keepdims=True)
    span = float(np.max(costs, where=allowed, initial=0.0))
    forbidden = 2.0 * (classes.size + 1) * (span if span > 0 else 1.0)
    table = np.full((problem.n_rows + fillers.size, classes.size + 1), forbidden)
    table[: problem.n_rows, :-1] = np.where(allowed, costs, forbidden)
    table[problem.n_rows :, -1] = 0.0
    table[problem.n_rows + np.arange(fillers.size), fillers] = 0.0
    return table
