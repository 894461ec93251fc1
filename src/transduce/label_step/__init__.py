"""Label steps: the cheapest labels that give each class its number of rows, with a certificate of optimality.

A label step is a settings object with one method, `solve(problem, prices, start) -> LabelSolution`. It sees costs and
counts, never features or weights, so it works with any loss and any model.
"""

import inspect
from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol, TypeGuard

from numpy.typing import ArrayLike

from transduce.class_prior.belief import Belief
from transduce.class_prior.groups import Groups
from transduce.label_step.exact import Exact
from transduce.label_step.greedy import Greedy
from transduce.label_step.infeasible import InfeasibleError
from transduce.label_step.problem import FloatArray, IntArray, LabelProblem
from transduce.label_step.simplex import Simplex
from transduce.label_step.solution import LabelSolution, Status, TracePoint
from transduce.label_step.switching import SingleSwitch, Switching

__all__ = [
    "METHODS",
    "Exact",
    "Greedy",
    "InfeasibleError",
    "LabelProblem",
    "LabelSolution",
    "LabelStep",
    "Simplex",
    "SingleSwitch",
    "Status",
    "Switching",
    "TracePoint",
    "is_label_step",
    "solve_labels",
]


class LabelStep(Protocol):
    """Interface of a label step; pass your own as `method` or `label_step`.

    An attribute `takes_groups = False` tells estimators that it does not support bounds on groups of classes, and
    `takes_beliefs = True` that it supports beliefs. Without it, whole numbers on both sides of believed counts are met.
    """

    def solve(
        self, problem: LabelProblem, prices: FloatArray | None = None, start: IntArray | None = None
    ) -> LabelSolution:
        """Label every row so that the counts are met; no argument is modified.

        Parameters
        ----------
        problem : LabelProblem
            Costs and counts.
        prices : ndarray of shape (K,), default=None
            Prices of an earlier solution of similar costs, to start from.
        start : ndarray of shape (n,), default=None
            Labels that meet the counts, to start from.

        Returns
        -------
        LabelSolution
            Labels that meet the counts, with a certificate.
        """
        ...


METHODS: Mapping[str, LabelStep] = MappingProxyType(
    {
        "exact": Exact(),
        "switching": Switching(),
        "multi_switch": Switching(max_rounds=1),
        "single_switch": SingleSwitch(),
        "simplex": Simplex(),
        "greedy": Greedy(),
    }
)
"""Label steps by the names that `solve_labels` and the parameter `label_step` take."""


def solve_labels(
    costs: ArrayLike,
    counts: ArrayLike | tuple[ArrayLike, ArrayLike] | None,
    method: str | LabelStep = "exact",
    prices: ArrayLike | None = None,
    start: ArrayLike | None = None,
    groups: Groups | None = None,
    belief: Belief | None = None,
) -> LabelSolution:
    """Find labels of least total cost that give each class its number of rows.

    Parameters
    ----------
    costs : array-like of shape (n, K)
        Cost of each label for each row; +inf forbids a label.
    counts : array-like of shape (K,), tuple of two, or None
        Rows that each class gets, or a pair (low, high) of bounds; None for any.
    method : str or LabelStep, default="exact"
        "exact" (optimal), "switching" (Algorithm 2 of the paper), "multi_switch" (one pass of it), "single_switch" (its
        best switch only), "simplex" (optimal and slow), "greedy", or a label step of your own.
    prices : array-like of shape (K,), default=None
        Prices of an earlier solution: a warm start for "exact".
    start : array-like of shape (n,), default=None
        Labels that meet the counts, to start from. "exact" keeps them if they are optimal; "greedy" ignores them.
    groups : Groups, default=None
        Nested groups of classes with bounds on the rows of each, for "exact". Counts may then be wide ranges.
    belief : Belief, default=None
        Cost of the counts within their bounds, for "exact" and "greedy"; it is part of the cost of the solution.

    Returns
    -------
    LabelSolution
        Labels, prices, cost, dual value, gap and status.

    Examples
    --------
    >>> import numpy as np
    >>> costs = np.array([[0.0, 2.0, 3.0], [0.0, 1.0, 3.0], [0.0, 3.0, 1.0], [0.0, 4.0, 4.0]])
    >>> answer = solve_labels(costs, counts=[2, 1, 1])
    >>> answer.labels, answer.cost, answer.gap
    (array([0, 1, 2, 0]), 2.0, 0.0)
    >>> solve_labels(costs, counts=([1, 0, 0], [3, 2, 1])).labels
    array([0, 1, 0, 0])

    A belief pulls towards counts without forcing them:

    >>> belief = Belief.create(mean=[2, 1, 1], strength=0.8)
    >>> answer = solve_labels(costs, counts=None, belief=belief)
    >>> answer.labels, round(answer.cost, 3), answer.gap
    (array([0, 0, 2, 0]), 1.973, 0.0)
    """
    problem = LabelProblem.create(costs, counts, groups, belief)
    step = METHODS.get(method) if isinstance(method, str) else method
    if step is None or (step is method and not is_label_step(step)):
        raise ValueError(f"method must be one of {', '.join(METHODS)}, or a LabelStep object, but is {method!r}.")
    warm = None if prices is None else problem.check_prices(prices)
    return step.solve(problem, prices=warm, start=None if start is None else problem.check_labels(start))


def is_label_step(thing: object) -> TypeGuard[LabelStep]:
    """Return whether an object, not a class, has a method solve(problem, prices, start).

    Parameters
    ----------
    thing : object
        What may be a label step.

    Examples
    --------
    >>> from transduce.label_step.entropic import Entropic
    >>> is_label_step(Exact()), is_label_step(Exact), is_label_step(Entropic(1.0))  # soft labels
    (True, False, False)
    """
    solve = getattr(thing, "solve", None)
    if isinstance(thing, type) or not callable(solve):
        return False
    try:
        inspect.signature(solve).bind(None, None, None)
    except TypeError:
        return False
    except ValueError:  # it has no signature to inspect
        return True
    return True
