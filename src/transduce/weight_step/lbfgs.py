"""L-BFGS on J: the weight step for any smooth loss, with one pair of products X W and Xᵀ R per evaluation.

It stops when the gradient is small compared with the gradient at W = 0.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy.optimize import minimize

from transduce.arrays import Array
from transduce.design import Design
from transduce.losses import value_and_gradient
from transduce.problem import TrainingProblem
from transduce.weight_step.base import WeightReport, WeightState

ValueAndGradient: TypeAlias = Callable[[Array], tuple[float, Array]]


@dataclass(frozen=True)
class LBFGS:
    """L-BFGS with at most `max_iter` iterations per weight step."""

    max_iter: int

    def start(self, problem: TrainingProblem, targets: Array) -> WeightState:
        """Return a state with weights 0."""
        empty = np.zeros(0)
        return WeightState(problem.design.zeros(), targets.copy(), np.zeros(problem.n_rows), empty, empty)

    def retarget(self, problem: TrainingProblem, state: WeightState, targets: Array, kappa: Array) -> None:
        """Set new targets and row weights; W stays the same."""
        state.targets, state.kappa = targets.copy(), kappa.copy()

    def solve(self, problem: TrainingProblem, state: WeightState, tol: float, rng: np.random.Generator) -> WeightReport:
        """Minimise J from the current weights until the gradient is at most `tol` of that at W = 0."""
        design, targets, kappa = problem.design, state.targets, state.kappa
        live = kappa > 0
        if not live.all():
            design, targets, kappa = design.select_rows(live), targets[live], kappa[live]

        def of_scores(S: Array) -> tuple[float, Array]:
            return value_and_gradient(problem.loss, S, targets, kappa, design.n_threads)

        minimum = minimize_regularized(in_weights(design, of_scores), state.W, problem.alpha, tol, self.max_iter)
        state.W[...] = minimum.W
        scores = problem.design.scores(state.W)
        return WeightReport(minimum.value, scores, minimum.gradient, minimum.n_evaluations, minimum.converged)


@dataclass(frozen=True, eq=False)
class Minimum:
    """The end of a minimisation; `gradient` is the largest absolute entry of the gradient."""

    W: Array
    value: float
    gradient: float
    n_evaluations: float
    converged: bool = False


def minimize_regularized(
    loss_and_gradient: ValueAndGradient, W: Array, alpha: float, tol: float, max_iter: int
) -> Minimum:
    """Minimise λ/2 ‖W‖² + loss(W) from W until the gradient is at most `tol` of that at W = 0."""
    at_zero = gradient_at_zero(loss_and_gradient, W)
    minimum = run_lbfgs(loss_and_gradient, W, alpha, 0.1 * tol * at_zero, max_iter)
    return replace(minimum, converged=minimum.gradient <= tol * at_zero)


def gradient_at_zero(loss_and_gradient: ValueAndGradient, W: Array) -> float:
    """The largest absolute entry of the gradient at W = 0, the scale of tolerances."""
    return _largest(loss_and_gradient(np.zeros_like(W))[1])


def in_weights(design: Design, of_scores: ValueAndGradient) -> ValueAndGradient:
    """Turn a function of the scores (n, K) of all rows into one of weights."""

    def loss_and_gradient(W: Array) -> tuple[float, Array]:
        value, gradient = of_scores(design.scores(W))
        return value, design.pullback(gradient.astype(design.dtype, copy=False))

    return loss_and_gradient


def run_lbfgs(loss_and_gradient: ValueAndGradient, W: Array, alpha: float, gtol: float, max_iter: int) -> Minimum:
    """Run L-BFGS in float64 until the gradient is at most `gtol`; the loss is called with weights of the type of W."""

    def value_and_gradient(flat: Array) -> tuple[float, Array]:
        here = flat.reshape(W.shape).astype(W.dtype, copy=False)
        value, gradient = loss_and_gradient(here)
        total = here.astype(np.float64)
        total *= alpha
        total += gradient
        return value + 0.5 * alpha * float(np.vdot(here, here)), total.ravel()

    options = {"maxiter": max_iter, "gtol": gtol, "ftol": 1e-12, "maxcor": 10}
    found = minimize(value_and_gradient, W.ravel().astype(np.float64), jac=True, method="L-BFGS-B", options=options)
    return Minimum(found.x.reshape(W.shape), float(found.fun), _largest(found.jac), float(found.nfev))


def _largest(gradient: Array) -> float:
    return float(max(gradient.max(initial=0.0), -gradient.min(initial=0.0)))
