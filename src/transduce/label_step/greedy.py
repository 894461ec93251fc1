"""Greedy labels, steps 3 to 9 of Algorithm 1: sure rows choose first, full classes close, the rest choose again.

Scores are read off the costs as their negatives: the row with the least cost is the surest. The labels always meet the
counts; where forbidden labels leave greedy rows without a place, the fewest possible rows are labelled anew.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from transduce.label_step._kernels.allocate import allocate
from transduce.label_step._kernels.passes import best_open
from transduce.label_step.exact import Exact
from transduce.label_step.prices import prices_of_labels
from transduce.label_step.problem import FloatArray, IntArray, LabelProblem
from transduce.label_step.solution import LabelSolution, Status, certify


@dataclass(frozen=True)
class Greedy:
    """Labels by the paper's initialisation: feasible, quick, and not far off.

    >>> problem = LabelProblem.create([[0.0, 1.0], [0.5, 3.0], [2.0, 0.0]], counts=[1, 2])
    >>> Greedy().solve(problem).labels
    array([0, 1, 1])
    """

    takes_groups: ClassVar[bool] = False

    def solve(
        self, problem: LabelProblem, prices: FloatArray | None = None, start: IntArray | None = None
    ) -> LabelSolution:
        """Label from nothing: neither prices nor start play a part."""
        problem.refuse_groups("The greedy label step")
        labels = greedy_labels(problem)
        return certify(
            problem,
            labels,
            prices_of_labels(problem, labels),
            n_moves=0,
            n_rounds=1,
            otherwise=Status.GREEDY,
        )


def greedy_labels(problem: LabelProblem) -> IntArray:
    """Labels that meet the counts, by greedy allocation and, where labels are forbidden, the least repair.

    >>> greedy_labels(LabelProblem.create([[0.0, 1.0], [0.0, np.inf]], counts=[1, 1]))
    array([1, 0])
    """
    labels = np.full(problem.n_rows, -1, np.int64)
    tally = np.zeros(problem.n_classes, np.int64)
    free = problem.n_rows - int(problem.low.sum())
    left = np.arange(problem.n_rows)
    while left.size:
        is_open = (tally < problem.low) | ((tally < problem.high) & (free > 0))
        surest, favourites = _favourites(problem, left, is_open)
        order = np.argsort(surest, kind="stable")
        free = allocate(left[order], favourites[order], problem.low, problem.high, tally, free, labels)
        placed = labels[left] >= 0
        if not placed.any():
            return _repair(problem, labels)
        left = left[~placed]
    return labels


def _favourites(problem: LabelProblem, rows: IntArray, is_open: np.ndarray) -> tuple[FloatArray, IntArray]:
    """Cost and label of the cheapest open class of each row."""
    best = np.empty(rows.size)
    labels = np.empty(rows.size, np.int64)
    step = problem.rows_per_block
    for begin in range(0, rows.size, step):
        part = slice(begin, begin + step)
        best_open(problem.take(rows[part]), is_open, best[part], labels[part])
    return best, labels


def _repair(problem: LabelProblem, labels: IntArray) -> IntArray:
    """Meet the counts by relabelling as few rows as possible: an exact label step with a cost of 1 for every change."""
    changes = np.where(problem.costs < np.inf, 1.0, np.inf)
    kept = np.flatnonzero(labels >= 0)
    changes[kept, labels[kept]] = 0.0
    return Exact().solve(LabelProblem(changes, problem.low, problem.high)).labels
