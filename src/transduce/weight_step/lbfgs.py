"""The weight step for any smooth loss: L-BFGS on J, a pair of products X W and Xᵀ R each evaluation.

It serves losses that bring no dual of their own, hard or soft targets alike. It stops when the gradient has fallen to a
share of what it was at weights 0. Only rows that have a weight are looked at on the way.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from transduce.losses import value_and_slope
from transduce.problem import TrainingProblem
from transduce.weight_step.base import WeightReport, WeightState

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
        design, targets, kappa = problem.design, state.targets, state.kappa
        live = kappa > 0
        if not live.all():
            design, targets, kappa = design.select_rows(live), targets[live], kappa[live]

        def loss_and_gradient(W: Array) -> tuple[float, Array]:
            value, slope = value_and_slope(problem.loss, design.scores(W), targets, kappa, design.n_threads)
            return value, design.pullback(slope)

        low = lowest(loss_and_gradient, state.W, problem.alpha, tol, self.max_iter)
        state.W[...] = low.W
        return WeightReport(low.value, problem.design.scores(state.W), low.left, low.n_passes, low.converged)


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where a minimisation ended: weights, value, largest entry of the gradient, passes over the rows, and success."""

    W: Array
    value: float
    left: float
    n_passes: float
    converged: bool = False


def lowest(
    loss_and_gradient: Callable[[Array], tuple[float, Array]], W: Array, alpha: float, tol: float, max_iter: int
) -> Minimum:
    """Minimise λ/2 ‖W‖² + loss(W) from W until the gradient is `tol` of what it is at weights 0.

    >>> low = lowest(lambda W: (float(W.sum()), np.ones_like(W)), np.zeros((1, 2)), 0.5, 1e-6, 100)
    >>> low.W.round(3).tolist(), low.converged
    ([[-2.0, -2.0]], True)
    """
    at_zero = _largest(loss_and_gradient(np.zeros_like(W))[1])
    low = _minimise(loss_and_gradient, W, alpha, 0.1 * tol * at_zero, max_iter)
    return replace(low, converged=low.left <= tol * at_zero)


def steepness(problem: TrainingProblem, loss_and_slope: Callable[[Array], tuple[float, Array]]) -> float:
    """Largest entry of the gradient at W = 0: what gradients of this problem are to be measured by."""
    return _largest(_through_scores(problem, loss_and_slope)(problem.design.zeros())[1])


def minimise(
    problem: TrainingProblem,
    loss_and_slope: Callable[[Array], tuple[float, Array]],
    W: Array,
    gtol: float,
    max_iter: int,
) -> Minimum:
    """Minimise λ/2 ‖W‖² + loss(scores) from W by L-BFGS; the loss is any smooth function of all scores (n, K)."""
    return _minimise(_through_scores(problem, loss_and_slope), W, problem.alpha, gtol, max_iter)


def _through_scores(
    problem: TrainingProblem, loss_and_slope: Callable[[Array], tuple[float, Array]]
) -> Callable[[Array], tuple[float, Array]]:
    """A function of scores as one of weights."""
    design = problem.design

    def loss_and_gradient(W: Array) -> tuple[float, Array]:
        value, slope = loss_and_slope(design.scores(W))
        return value, design.pullback(slope.astype(design.dtype, copy=False))

    return loss_and_gradient


def _minimise(
    loss_and_gradient: Callable[[Array], tuple[float, Array]], W: Array, alpha: float, gtol: float, max_iter: int
) -> Minimum:
    """L-BFGS in float64, whatever the type of the weights that the loss is asked for."""

    def value_and_gradient(flat: Array) -> tuple[float, Array]:
        here = flat.reshape(W.shape).astype(W.dtype, copy=False)
        value, gradient = loss_and_gradient(here)
        total = here.astype(np.float64)
        total *= alpha
        total += gradient
        return value + 0.5 * alpha * float(np.vdot(here, here)), total.ravel()

    answer = minimize(
        value_and_gradient,
        W.ravel().astype(np.float64),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": max_iter, "gtol": gtol, "ftol": 1e-12, "maxcor": 10},
    )
    return Minimum(answer.x.reshape(W.shape), float(answer.fun), _largest(answer.jac), float(answer.nfev))


def _largest(gradient: Array) -> float:
    """The largest entry, whatever its sign."""
    return float(max(gradient.max(initial=0.0), -gradient.min(initial=0.0)))
