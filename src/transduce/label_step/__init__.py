"""Label steps: the cheapest labels for rows whose class sizes are known, each answer with a certificate.

A label step is a settings object with one verb, `solve(problem, prices, start) -> Assignment`. It sees costs and
counts, never features or weights, so any loss and any model can stand before it.
"""

import inspect
from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from transduce.class_prior.bounds import Groups
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
    """Anything that turns a label problem into an assignment; bring your own and pass it as `method`.

    One with an attribute `takes_groups` that is False is never given bounds on groups of classes by an estimator.
    """

    def solve(
        self, problem: LabelProblem, prices: FloatArray | None = None, start: IntArray | None = None
    ) -> LabelSolution:
        """Label every row so that the counts are met; neither argument is modified."""
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


def solve_labels(
    costs: ArrayLike,
    counts: ArrayLike | tuple[ArrayLike, ArrayLike],
    method: str | LabelStep = "exact",
    prices: ArrayLike | None = None,
    start: ArrayLike | None = None,
    groups: Groups | None = None,
) -> LabelSolution:
    """Find labels of least total cost that give each class its number of rows.

    costs   (n, K) cost of each label for each row; +inf forbids a label
    counts  (K,) rows that each class gets, or a pair (low, high) of such arrays
    method  "exact" (optimal, the default), "switching" (the paper's Algorithm 2), "multi_switch" (one pass of it),
            "single_switch" (its best switch only), "simplex" (optimal and slow), "greedy", or a LabelStep of your own
    prices  (K,) prices of an earlier answer: a warm start for "exact"
    start   (n,) labels that meet the counts, to begin from; "exact" keeps them if they are optimal, "greedy" ignores
            them
    groups  nested groups of classes with bounds on the rows of each, for "exact"; counts may then be wide ranges

    The answer holds labels, prices, cost, dual_value, gap, n_moves, n_rounds, status and group_prices; the inputs stay
    as they are.

    >>> import numpy as np
    >>> costs = np.array([[0.0, 2.0, 3.0], [0.0, 1.0, 3.0], [0.0, 3.0, 1.0], [0.0, 4.0, 4.0]])
    >>> answer = solve_labels(costs, counts=[2, 1, 1])
    >>> answer.labels
    array([0, 1, 2, 0])
    >>> answer.cost, answer.gap
    (2.0, 0.0)
    >>> solve_labels(costs, counts=([1, 0, 0], [3, 2, 1])).labels
    array([0, 1, 0, 0])

    Two or three rows for classes 1 and 2 together, whichever way they split: group 3, part of all rows, node 4.

    >>> from transduce.class_prior.bounds import Groups
    >>> answer = solve_labels(costs, ([0, 0, 0], [4, 4, 4]), groups=Groups(above=[4, 3, 3, 4], low=[2], high=[3]))
    >>> answer.labels, answer.group_prices
    (array([0, 1, 2, 0]), array([1.]))
    """
    problem = LabelProblem.create(costs, counts, groups)
    step, prices, start = _step(method), _checked_prices(problem, prices), _checked_start(problem, start)
    try:
        return step.solve(problem, prices=prices, start=start)
    except InfeasibleError as error:
        raise ValueError(str(error)) from None


def _step(method: str | LabelStep) -> LabelStep:
    if isinstance(method, str) and method in METHODS:
        return METHODS[method]
    if isinstance(method, str) or not is_label_step(method):
        raise ValueError(f"method must be one of {', '.join(METHODS)}, or a LabelStep object, but is {method!r}.")
    return method


def is_label_step(thing: object) -> bool:
    """Whether an object, not a class, has the verb solve(problem, prices, start).

    >>> from transduce.label_step.entropic import Entropic
    >>> is_label_step(Exact()), is_label_step(Exact), is_label_step(Entropic(1.0))  # distributions are no labels
    (True, False, False)
    """
    solve = getattr(thing, "solve", None)
    if isinstance(thing, type) or not callable(solve):
        return False
    try:
        inspect.signature(solve).bind(None, None, None)
    except TypeError:
        return False
    except ValueError:  # it has no signature to look at
        return True
    return True


def _checked_start(problem: LabelProblem, start: ArrayLike | None) -> IntArray | None:
    return None if start is None else problem.check_labels(start)


def _checked_prices(problem: LabelProblem, prices: ArrayLike | None) -> FloatArray | None:
    if prices is None:
        return None
    try:
        array = np.array(prices, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError("prices must be numbers, one a class. Pass those of an earlier answer, or none.") from error
    if array.shape != (problem.n_classes,):
        raise ValueError(
            f"prices must have one number for each of the {problem.n_classes} classes, but have shape {array.shape}. "
            "Pass those of an earlier answer, or none."
        )
    if not np.all(np.isfinite(array)):
        k = int(np.argmax(~np.isfinite(array)))
        raise ValueError(f"prices must be finite, but class {k} has {array[k]}. Leave prices out for a cold start.")
    return array
