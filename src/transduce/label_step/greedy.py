"""Greedy labels, steps 3 to 9 of Algorithm 1: the surest rows choose first, full classes close, the rest choose again.

Scores are read off the costs as their negatives: the row with the least cost is the surest. The labels always meet the
counts; where forbidden labels leave greedy rows without a class, the fewest possible rows are relabelled. With a belief
about the counts, the labels meet the whole numbers on both sides of the believed ones.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from transduce.label_step._kernels.passes import allocate, best_open
from transduce.label_step.certificate import certify
from transduce.label_step.exact import Exact
from transduce.label_step.infeasible import InfeasibleError
from transduce.label_step.problem import FloatArray, IntArray, LabelProblem
from transduce.label_step.row_blocks import BoolArray, CostRows
from transduce.label_step.solution import LabelSolution, Status


@dataclass(frozen=True)
class Greedy:
    """Labels by the paper's initialisation: feasible, fast and not far from optimal.

    Examples
    --------
    >>> problem = LabelProblem.create([[0.0, 1.0], [0.5, 3.0], [2.0, 0.0]], counts=[1, 2])
    >>> Greedy().solve(problem).labels
    array([0, 1, 1])
    """

    takes_groups: ClassVar[bool] = False
    takes_beliefs: ClassVar[bool] = True

    def solve(
        self, problem: LabelProblem, prices: FloatArray | None = None, start: IntArray | None = None
    ) -> LabelSolution:
        """Label from scratch; `prices` and `start` are ignored. See `LabelStep.solve`."""
        replace(problem, belief=None).refuse_groups("The greedy label step")
        return certify(problem, greedy_labels(problem), n_moves=0, n_rounds=1, otherwise=Status.GREEDY)


def greedy_labels(problem: LabelProblem) -> IntArray:
    """Labels that meet the counts, by greedy allocation and, where labels are forbidden, the least repair."""
    if problem.belief is not None:
        try:
            return greedy_labels(LabelProblem(problem.costs, *problem.bounds.without_belief(problem.n_rows)))
        except InfeasibleError:
            return Exact().solve(problem).labels
    labels = np.full(problem.n_rows, -1, np.int64)
    tally = np.zeros(problem.n_classes, np.int64)
    free = problem.n_rows - int(problem.low.sum())
    left = np.arange(problem.n_rows)
    while left.size:
        is_open = (tally < problem.low) | ((tally < problem.high) & (free > 0))
        costs, favourites = _favourites(problem, left, is_open)
        order = np.argsort(costs, kind="stable")
        free = allocate(left[order], favourites[order], problem.low, problem.high, tally, free, labels)
        placed = labels[left] >= 0
        if not placed.any():
            return Exact().solve(LabelProblem(_change_costs(problem, labels), problem.low, problem.high)).labels
        left = left[~placed]
    return labels


def _favourites(costs: CostRows, rows: IntArray, is_open: BoolArray) -> tuple[FloatArray, IntArray]:
    """Cost and label of the cheapest open class of each row."""
    best, labels = np.empty(rows.size), np.empty(rows.size, np.int64)
    for some, block in costs.blocks(rows):
        best_open(block, is_open, best[some], labels[some])
    return best, labels


def _change_costs(rows: CostRows, labels: IntArray) -> FloatArray:
    """Costs of a repair: 0 for the label of a row, 1 for others that are allowed, +inf for forbidden ones."""
    costs = np.where(np.asarray(rows.costs) < np.inf, 1.0, np.inf)
    kept = np.flatnonzero(labels >= 0)
    costs[kept, labels[kept]] = 0.0
    return costs
