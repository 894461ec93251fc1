"""Weight steps: the best weights for given labels, warm from the last ones, with the gap or gradient left over.

A weight step is a settings object with three verbs: `start(problem, labels)` makes a state, `retarget(problem, state,
labels, kappa)` hands it new labels and row weights, `solve(problem, state, ...)` improves it in place and reports. It
sees rows, losses and weights, never counts.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from transduce.losses import LargeMargin, Loss, MaxEnt, SmoothMargin, SquaredLargeMargin
from transduce.problem import TrainingProblem
from transduce.weight_step.base import WeightReport, WeightState
from transduce.weight_step.dual import DualLargeMargin, DualMaxEnt, DualSquaredLargeMargin
from transduce.weight_step.lbfgs import Smooth

__all__ = [
    "DualLargeMargin",
    "DualMaxEnt",
    "DualSquaredLargeMargin",
    "Smooth",
    "WeightReport",
    "WeightState",
    "WeightStep",
    "weight_step_for",
]

Array = NDArray[Any]


class WeightStep(Protocol):
    """What every weight step can do; see the package's docstring."""

    def start(self, problem: TrainingProblem, targets: Array) -> WeightState:
        """A state at weights 0."""
        ...

    def retarget(self, problem: TrainingProblem, state: WeightState, targets: Array, kappa: Array) -> None:
        """Hand the state new targets and row weights, in place, keeping as much of its work as possible."""
        ...

    def solve(self, problem: TrainingProblem, state: WeightState, tol: float, rng: np.random.Generator) -> WeightReport:
        """Improve the state in place until it is within `tol`, relative, of the optimum."""
        ...


def weight_step_for(loss: Loss, max_iter: int) -> WeightStep:
    """The best weight step for a loss: dual for margins and maxent, smooth for any other.

    >>> weight_step_for(LargeMargin(), max_iter=100)
    DualLargeMargin(max_sweeps=100)
    """
    if isinstance(loss, LargeMargin):
        return DualLargeMargin(max_iter)
    if isinstance(loss, SquaredLargeMargin):
        return DualSquaredLargeMargin(max_iter)
    if isinstance(loss, (MaxEnt, SmoothMargin)):
        return DualMaxEnt(max_iter)
    return Smooth(max_iter)
