"""The weight step for any smooth loss: L-BFGS on J, a pair of products X W and Xᵀ R each evaluation.

It serves losses that bring no dual of their own, hard or soft targets alike. It stops when the gradient has fallen to a
share of what it was at weights 0.
"""

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
        shape = state.W.shape
        at_zero = np.abs(self._gradient(problem, state, np.zeros(shape), 0.0)[1]).max()

        def value_and_gradient(flat: Array) -> tuple[float, Array]:
            value, gradient = self._gradient(problem, state, flat.reshape(shape), problem.alpha)
            return value, gradient.ravel()

        answer = minimize(
            value_and_gradient,
            state.W.ravel().astype(np.float64),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": self.max_iter, "gtol": 0.1 * tol * float(at_zero), "ftol": 1e-12, "maxcor": 10},
        )
        state.W[...] = answer.x.reshape(shape)
        scores = problem.design.scores(state.W)
        left = float(np.abs(answer.jac).max())
        converged = bool(left <= tol * at_zero)
        return WeightReport(float(answer.fun), scores, left, float(answer.nfev), converged)

    @staticmethod
    def _gradient(problem: TrainingProblem, state: WeightState, W: Array, alpha: float) -> tuple[float, Array]:
        """J and its gradient (d, M) at W."""
        W = W.astype(problem.design.dtype)
        live = state.kappa > 0
        scores = problem.design.scores(W)
        residual = np.zeros_like(scores)
        losses = problem.loss.value(scores[live], state.targets[live])
        residual[live] = problem.loss.gradient(scores[live], state.targets[live]) * state.kappa[live, None]
        value = 0.5 * alpha * float(np.vdot(W, W)) + float(np.dot(state.kappa[live], losses))
        return value, (problem.design.pullback(residual) + alpha * W).astype(np.float64)
