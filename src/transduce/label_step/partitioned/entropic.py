"""The entropic label step over rows in many places: the search of one place, with sums that are added up over parts.

To a part go prices, back come K sums, and K × K of them where the next step asks for its curvature. One visit looks at
the costs, one more goes to each point that the search looks at, and the last leaves the distributions where the rows
are: in notes["posterior"].
"""

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from transduce.class_prior.bounds import Bounds, Groups
from transduce.label_step.cost_statistics import BoolArray, CostStatistics
from transduce.label_step.dual_newton import closed_nodes
from transduce.label_step.partitioned.certificate import SpreadAnswer
from transduce.label_step.partitioned.exact import solve_spread
from transduce.label_step.partitioned.partitions import FloatArray, IntArray, Part, Parts
from transduce.label_step.problem import LabelProblem
from transduce.label_step.row_blocks import Threads
from transduce.label_step.softmax_sums import FEW, SoftRows, Sums
from transduce.label_step.temperature_search import MAX_STEPS, SoftStatus, Tempered, temper, temper_to_entropy

SpreadSoft: TypeAlias = Tempered
"""What is known about distributions that stay in their parts, as notes["posterior"]."""


def soften_spread(
    parts: Parts,
    bounds: Bounds,
    share: float,
    temperature: float | None,
    prices: FloatArray | None,
    tol: float = 1e-3,
    n_threads: int = 1,
) -> SpreadSoft:
    """Leave distributions whose mean entropy is a share of the greatest in notes["posterior"] of every part.

    This is `solve_at_entropy` over parts; each has `n_threads` threads to itself.

    >>> from transduce.label_step.partitioned.partitions import Here
    >>> costs, labels = np.array([[0.0, 1.0], [0.0, 3.0], [2.0, 0.0]]), np.full(3, -1)
    >>> parts = Here([Part(costs[:1], labels[:1]), Part(costs[1:], labels[1:])])
    >>> soft = soften_spread(parts, Bounds(np.array([1, 2]), np.array([1, 2])), 0.5, None, None)
    >>> bool(abs(soft.entropy - 0.5 * 0.6365) < 0.04)
    True
    """
    rows = _SpreadRows.of(parts, *bounds, n_threads)
    return rows.leave(temper_to_entropy(rows.problem, rows, share, temperature, prices, tol))


def distribute_spread(
    parts: Parts,
    low: IntArray,
    high: IntArray,
    groups: Groups | None,
    temperature: float,
    prices: FloatArray | None,
    tol: float = 1e-6,
    n_threads: int = 1,
) -> SpreadSoft:
    """Leave distributions at a temperature in notes["posterior"] of every part: `Entropic` over parts.

    >>> from transduce.label_step.partitioned.partitions import Here
    >>> costs, labels = np.array([[0.0, 1.0], [0.0, 3.0], [2.0, 0.0]]), np.full(3, -1)
    >>> parts = Here([Part(costs[:1], labels[:1]), Part(costs[1:], labels[1:])])
    >>> soft = distribute_spread(parts, np.array([1, 2]), np.array([1, 2]), None, 0.5, None)
    >>> parts.each(lambda part: part.notes["posterior"].round(2).tolist())
    [[[0.12, 0.88]], [[0.88, 0.12], [0.0, 1.0]]]
    """
    rows = _SpreadRows.of(parts, low, high, groups, n_threads)
    return rows.leave(temper(rows.problem, rows, temperature, prices, tol, MAX_STEPS))


@dataclass(eq=False)
class _SpreadRows:
    """The rows of all parts; of the problem there are bounds and a size, but no costs."""

    parts: Parts
    problem: LabelProblem
    closed: BoolArray
    facts: CostStatistics
    n_threads: int
    exact: SpreadAnswer | None = None

    products_at_once = True

    @classmethod
    def of(cls, parts: Parts, low: IntArray, high: IntArray, groups: Groups | None, n_threads: int) -> "_SpreadRows":
        closed = closed_nodes(_without_costs(1, low, high, groups))[: low.size]
        facts = reduce(CostStatistics.__add__, parts.each(_look, closed, n_threads), CostStatistics())
        return cls(parts, _without_costs(facts.n_rows, low, high, groups), closed, facts, n_threads)

    def at(self, v: FloatArray, T: float, columns: IntArray | None) -> Sums:
        return Sums.of(self.parts.each(_sums, self.closed, v, T, columns, self.n_threads), v.size, columns)

    def label(self) -> SpreadAnswer:
        if self.exact is None:
            self.exact = solve_spread(self.parts, self.problem.low, self.problem.high, self.problem.groups, None)
        return self.exact

    def leave(self, found: Tempered) -> Tempered:
        """Leave the distributions in the parts, and nothing else."""
        if found.status is SoftStatus.AS_EXACT:
            self.parts.each(_harden)
        else:
            self.parts.each(_write, self.closed, found.v, found.temperature, self.n_threads)
        return found


def _without_costs(n_rows: int, low: IntArray, high: IntArray, groups: Groups | None) -> LabelProblem:
    return LabelProblem(np.broadcast_to(0.0, (n_rows, low.size)), low, high, groups)


# ---- what goes to the parts


def _look(part: Part, closed: BoolArray, n_threads: int) -> CostStatistics:
    """Facts of the costs, looked at afresh."""
    part.notes.clear()
    with Threads(n_threads) as threads:
        return _rows(part, closed, threads).facts


def _sums(part: Part, closed: BoolArray, v: FloatArray, T: float, columns: IntArray | None, n_threads: int) -> Sums:
    """Sums at these prices; products of many classes travel in the precision that they are made in."""
    with Threads(n_threads) as threads:
        sums = _rows(part, closed, threads).at(v, T, columns, threads)
    if sums.products is None or v.size <= FEW:
        return sums
    return replace(sums, products=sums.products.astype(np.float32))


def _write(part: Part, closed: BoolArray, v: FloatArray, T: float, n_threads: int) -> None:
    """Leave the distributions at these prices."""
    posterior = np.empty(part.costs.shape, _precision(part))
    with Threads(n_threads) as threads:
        _rows(part, closed, threads).write(v, T, posterior, threads)
    part.notes.clear()
    part.notes["posterior"] = posterior


def _harden(part: Part) -> None:
    """Leave distributions that are as good as the labels of the exact step."""
    posterior = np.zeros(part.costs.shape, _precision(part))
    posterior[np.arange(part.n_rows), part.notes["labels"]] = 1.0
    part.notes.clear()
    part.notes["posterior"] = posterior


def _rows(part: Part, closed: BoolArray, threads: Threads) -> SoftRows:
    """Rows as they were looked at; again, where the exact step has been here since."""
    if "rows" not in part.notes:
        part.notes["rows"] = SoftRows.of(part.costs, closed, threads)
    rows: SoftRows = part.notes["rows"]
    return rows


def _precision(part: Part) -> type[np.floating[Any]]:
    return np.float32 if part.costs.dtype == np.float32 else np.float64
