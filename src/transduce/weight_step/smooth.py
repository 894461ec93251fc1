"""The weight step for any smooth loss: L-BFGS on J, a pair of products X W and Xᵀ R each evaluation.

It serves losses that bring no dual of their own, hard or soft targets alike. It stops when the gradient has fallen to a
share of what it was at weights 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from transduce.problem import TrainingProblem
from transduce.weight_step.state import WeightReport, WeightState

Array = NDArray[Any]


@dataclass(frozen=True)
class Smooth:
    """L-BFGS with at most `max_iter` iterations a call."""

    max_iter: int

    def start(self, problem: TrainingProblem, targets: Array) -> WeightState:
        """Weights 0."""
        nothing = np.zeros(0)
        return WeightState(problem.design.zeros(), targets.copy(), np.zeros(problem.n_rows), nothing, nothing)

    def retarget(self, problem: TrainingProblem, state: WeightState, targets: Array, kappa: Array) -> None:
        """Take note of new targets and row weights; the weights stay."""
        state.targets, state.kappa = targets.copy(), kappa.copy()

    def solve(self, problem: TrainingProblem, state: WeightState, tol: float, rng: np.random.Generator) -> WeightReport:
        """Minimise from the present weights until the gradient is `tol` of what it is at weights 0."""
        live = state.kappa > 0

        def loss_and_slope(scores: Array) -> tuple[float, Array]:
            slope = np.zeros_like(scores)
            losses = problem.loss.value(scores[live], state.targets[live])
            slope[live] = problem.loss.gradient(scores[live], state.targets[live]) * state.kappa[live, None]
            return float(np.dot(state.kappa[live], losses)), slope

        at_zero = steepness(problem, loss_and_slope)
        low = minimise(problem, loss_and_slope, state.W, 0.1 * tol * at_zero, self.max_iter)
        state.W[...] = low.W
        converged = low.left <= tol * at_zero
        return WeightReport(low.value, problem.design.scores(state.W), low.left, low.n_passes, converged)


def steepness(problem: TrainingProblem, loss_and_slope: Callable[[Array], tuple[float, Array]]) -> float:
    """Largest entry of the gradient at W = 0: what gradients of this problem are to be measured by."""
    at_rest = np.zeros((problem.n_rows, problem.n_classes), problem.design.dtype)
    slope = loss_and_slope(at_rest)[1].astype(problem.design.dtype, copy=False)
    return float(np.abs(problem.design.pullback(slope)).max())


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where a minimisation ended: weights, value, largest entry of the gradient, and passes over the rows."""

    W: Array
    value: float
    left: float
    n_passes: float


def minimise(
    problem: TrainingProblem,
    loss_and_slope: Callable[[Array], tuple[float, Array]],
    W: Array,
    gtol: float,
    max_iter: int,
) -> Minimum:
    """Minimise λ/2 ‖W‖² + loss(scores) from W by L-BFGS; the loss is any smooth function of all scores (n, K)."""
    design, shape = problem.design, W.shape

    def value_and_gradient(flat: Array) -> tuple[float, Array]:
        here = flat.reshape(shape).astype(design.dtype)
        value, slope = loss_and_slope(design.scores(here))
        gradient = design.pullback(slope.astype(design.dtype, copy=False)) + problem.alpha * here
        return value + 0.5 * problem.alpha * float(np.vdot(here, here)), gradient.ravel().astype(np.float64)

    answer = minimize(
        value_and_gradient,
        W.ravel().astype(np.float64),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "gtol": gtol, "ftol": 1e-12, "maxcor": 10},
    )
    left = float(np.abs(answer.jac).max())
    return Minimum(answer.x.reshape(shape), float(answer.fun), left, float(answer.nfev))
