"""Label switching, Algorithm 2 of the paper: rows of two classes exchange labels while that lowers the cost.

Every switch keeps the counts and lowers the cost, so switching ends; for two classes it ends at the optimum. With three
or more it can stall where only a longer cycle of moves would help: the gap then bounds the distance from the optimum.
Where counts are ranges, single moves within the bounds are listed too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from transduce.label_step._kernels.switches import apply_in_order, best_switch, list_moves, list_switches
from transduce.label_step.certificate import certify
from transduce.label_step.greedy import greedy_labels
from transduce.label_step.prices import prices_of_labels
from transduce.label_step.problem import FloatArray, IntArray, LabelProblem
from transduce.label_step.solution import LabelSolution, Status

ROUNDING = 8 * float(np.finfo(np.float64).eps)
"""A switch must lower the cost by this fraction of the largest cost; otherwise rounding could switch forever."""


@dataclass(frozen=True)
class Switching:
    """Rounds of label switching, until no switch lowers the cost.

    Parameters
    ----------
    max_rounds : int or None, default=None
        Maximum number of rounds. 1 is the multiple switching of Sindhwani and Keerthi (2006).

    Examples
    --------
    >>> problem = LabelProblem.create([[0.0, 1.0], [0.0, 3.0], [2.0, 0.0]], counts=[1, 2])
    >>> answer = Switching().solve(problem, start=np.array([0, 1, 1]))
    >>> answer.labels, answer.cost, answer.n_moves
    (array([1, 0, 1]), 1.0, 2)
    """

    takes_groups: ClassVar[bool] = False
    max_rounds: int | None = None

    def solve(
        self, problem: LabelProblem, prices: FloatArray | None = None, start: IntArray | None = None
    ) -> LabelSolution:
        """Switch labels until nothing improves, or for `max_rounds` rounds.

        Parameters
        ----------
        problem : LabelProblem
            Costs and counts.
        prices : object
            Ignored.
        start : ndarray of shape (n,), default=None
            Labels that meet the counts, to start from; the greedy labels if None.

        Returns
        -------
        solution : LabelSolution
            Labels that meet the counts, with a certificate.
        """
        if self.max_rounds is not None and self.max_rounds < 1:
            raise ValueError(f"max_rounds must be 1 or more, or None for no limit, but is {self.max_rounds!r}.")
        return _switch(problem, start, _switch_once, self.max_rounds, Status.ROUNDS_SPENT)


@dataclass(frozen=True)
class SingleSwitch:
    """The best single switch, as in the TSVM of Joachims (1999).

    Examples
    --------
    >>> problem = LabelProblem.create([[0.0, 1.0], [0.0, 3.0], [2.0, 0.0]], counts=[1, 2])
    >>> SingleSwitch().solve(problem, start=np.array([0, 1, 1])).n_moves
    2
    """

    takes_groups: ClassVar[bool] = False

    def solve(
        self, problem: LabelProblem, prices: FloatArray | None = None, start: IntArray | None = None
    ) -> LabelSolution:
        """Make the best switch.

        Parameters
        ----------
        problem : LabelProblem
            Costs and counts.
        prices : object
            Ignored.
        start : ndarray of shape (n,), default=None
            Labels that meet the counts, to start from; the greedy labels if None.

        Returns
        -------
        solution : LabelSolution
            Labels that meet the counts, with a certificate.
        """
        return _switch(problem, start, _best_switch_or_move, 1, Status.ONE_SWITCH)


def _switch(
    problem: LabelProblem,
    start: IntArray | None,
    switch: Callable[[LabelProblem, FloatArray, IntArray, float], int],
    max_rounds: int | None,
    at_limit: Status,
) -> LabelSolution:
    """Switch until nothing moves, or for `max_rounds` rounds."""
    problem.refuse_groups("Label switching")
    costs = np.ascontiguousarray(problem.costs, dtype=np.float64)
    labels = greedy_labels(problem) if start is None else start.copy()
    tolerance = ROUNDING * float(np.max(np.abs(costs), where=costs < np.inf, initial=0.0))
    n_moves, n_rounds = 0, 0
    while n_rounds != max_rounds and (moved := switch(problem, costs, labels, tolerance)):
        n_moves, n_rounds = n_moves + moved, n_rounds + 1
    prices, otherwise = prices_of_labels(problem, labels), at_limit if n_rounds == max_rounds else Status.SWITCHED_OUT
    return certify(problem, labels, prices, n_moves=n_moves, n_rounds=n_rounds, otherwise=otherwise)


def _by_class(problem: LabelProblem, labels: IntArray) -> tuple[IntArray, IntArray]:
    """Rows sorted by class, and where each class begins among them."""
    first = np.concatenate(([0], np.cumsum(problem.tally(labels))))
    return np.argsort(labels, kind="stable").astype(np.int64), first.astype(np.int64)


def _switch_once(problem: LabelProblem, costs: FloatArray, labels: IntArray, tolerance: float) -> int:
    """One round of Algorithm 2, steps 2 to 12, on `labels` in place; return how many rows moved."""
    lists = [list_switches(costs, *_by_class(problem, labels), tolerance)]
    tally = problem.tally(labels)
    if not problem.exact_counts:
        lists.append(list_moves(costs, labels, tally, problem.low, problem.high, tolerance))
    gains = np.concatenate([np.asarray(one[0], np.float64) for one in lists])
    ones = np.concatenate([np.asarray(one[1], np.int64) for one in lists])
    last = np.concatenate([np.asarray(one[2], np.int64) for one in lists])
    is_switch = np.arange(gains.size) < len(lists[0][0])
    return apply_in_order(
        np.argsort(gains, kind="stable"),
        ones,
        np.where(is_switch, last, -1),
        last,
        labels,
        tally,
        problem.low,
        problem.high,
        np.zeros(problem.n_rows, bool),
    )


def _best_switch_or_move(problem: LabelProblem, costs: FloatArray, labels: IntArray, tolerance: float) -> int:
    """Make the change of `labels`, in place, that lowers the cost most; return how many rows moved."""
    gain, i, j = best_switch(costs, *_by_class(problem, labels))
    if not problem.exact_counts:
        tally = problem.tally(labels)
        gains, rows, targets = list_moves(costs, labels, tally, problem.low, problem.high, tolerance)
        if gains and min(gains) < gain:
            best = int(np.argmin(gains))
            labels[rows[best]] = targets[best]
            return 1
    if not gain < -tolerance:
        return 0
    labels[i], labels[j] = labels[j], labels[i]
    return 2
