"""Label switching, Algorithm 2 of the paper: rows of two classes exchange labels while that lowers the cost.

Every switch keeps the counts and lowers the cost, so switching ends; for two classes it ends at the optimum. With three
or more it can stall where only a longer cycle of moves would help: the gap then bounds the distance from the optimum.
Where counts are ranges, single moves within the bounds are listed too.
"""

from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar

import numpy as np

from transduce.label_step._kernels.switches import apply_in_order, list_moves, list_switches
from transduce.label_step.certificate import certify
from transduce.label_step.greedy import greedy_labels
from transduce.label_step.problem import FloatArray, IntArray, LabelProblem
from transduce.label_step.solution import LabelSolution, Status
from transduce.suggest import short_repr

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
        """Switch labels, from the greedy ones if there is no start; `prices` are ignored. See `LabelStep.solve`."""
        limit = self.max_rounds
        if limit is not None and (not isinstance(limit, Integral) or limit < 1):
            raise ValueError(f"max_rounds must be 1 or more, or None for no limit, but is {short_repr(limit)}.")
        return _switch(problem, start, self.max_rounds, Status.ROUNDS_SPENT)


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
        """Make the best switch, from the greedy labels if there is no start. See `LabelStep.solve`."""
        return _switch(problem, start, 1, Status.ONE_SWITCH)


def _switch(problem: LabelProblem, start: IntArray | None, max_rounds: int | None, at_limit: Status) -> LabelSolution:
    """Switch until nothing moves, or for `max_rounds` rounds."""
    problem.refuse_groups("Label switching")
    costs = np.ascontiguousarray(problem.costs, dtype=np.float64)
    labels = greedy_labels(problem) if start is None else start.copy()
    tolerance = ROUNDING * float(np.max(np.abs(costs), where=costs < np.inf, initial=0.0))
    n_moves, n_rounds, only_best = 0, 0, at_limit is Status.ONE_SWITCH
    while n_rounds != max_rounds and (moved := _switch_once(problem, costs, labels, tolerance, only_best)):
        n_moves, n_rounds = n_moves + moved, n_rounds + 1
    otherwise = at_limit if n_rounds == max_rounds else Status.SWITCHED_OUT
    return certify(problem, labels, n_moves=n_moves, n_rounds=n_rounds, otherwise=otherwise)


def _switch_once(problem: LabelProblem, costs: FloatArray, labels: IntArray, tolerance: float, only_best: bool) -> int:
    """One round of Algorithm 2, steps 2 to 12, on `labels` in place, or its best change; return how many rows moved."""
    tally = problem.tally(labels)
    members, first = np.argsort(labels, kind="stable"), np.append(0, np.cumsum(tally))
    switches = list_switches(costs, members, first, tolerance, only_best)
    moves = list_moves(costs, labels, tally, problem.low, problem.high, tolerance)
    gains, ones, others = (np.array([*some, *more]) for some, more in zip(switches, moves, strict=True))
    order = np.argsort(gains, kind="stable")[: 1 if only_best else None]
    changes = ones[order].astype(np.int64), others[order].astype(np.int64)
    return apply_in_order(*changes, labels, tally, problem.low, problem.high)
