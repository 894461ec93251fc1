"""The interface of a weight step: its methods, the state it keeps between calls, and its report."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from transduce.arrays import Array
from transduce.problem import TrainingProblem


@dataclass
class Intercept:
    """What moves the weights b of the constant feature, the last row of W; see `_kernels.intercept`.

    balance (M,)         b(p), the weights that the dual variables imply
    rates, residual (M,) factors of the last steps, and b(p) − b before them
    """

    balance: Array
    rates: Array
    residual: Array

    @classmethod
    def at_zero(cls, n_nodes: int) -> "Intercept":
        """Those of weights 0."""
        return cls(np.zeros(n_nodes), np.ones(n_nodes), np.zeros(n_nodes))

    def squared_residual(self, W: Array) -> float:
        """‖b − b(p)‖²."""
        return float(np.sum((W[-1] - self.balance) ** 2))


@dataclass
class WeightState:
    """Weights and everything that belongs to them; weight steps change the arrays in place.

    W (d, M)        weights
    targets         labels (n,), or distributions (n, K)
    kappa (n,)      row weights
    dual (n, K)     dual variables; empty for L-BFGS
    gaps (n,)       estimated gap of each row, inf if its target or weight changed; empty for L-BFGS
    objective       J when it was last computed
    scores (n, K)   scores at W, or None if W changed since they were computed
    sigma           factor of the curvature of a row, for rows that are updated at once; see `batches`
    intercept       what moves the weights of the constant, or None without one
    """

    W: Array
    targets: Array
    kappa: Array
    dual: Array
    gaps: Array
    objective: float = np.inf
    scores: Array | None = None
    sigma: float = 1.0
    intercept: Intercept | None = None


@dataclass(frozen=True, eq=False)
class WeightReport:
    """J and scores (n, K) at the new weights, the gap and the passes over the rows, which may be fractions.

    The gap is an upper bound on J − J*, the duality gap; or for L-BFGS the largest entry of the gradient.
    """

    objective: float
    scores: Array
    gap: float
    n_sweeps: float
    converged: bool


class WeightStep(Protocol):
    """Minimises J in W for fixed targets and row weights; settings live on the step, everything else in the state."""

    def start(self, problem: TrainingProblem, targets: Array) -> WeightState:
        """Return a state with weights 0."""

    def retarget(self, problem: TrainingProblem, state: WeightState, targets: Array, kappa: Array) -> None:
        """Set new targets and row weights in place, and keep the weights as warm as possible."""

    def solve(self, problem: TrainingProblem, state: WeightState, tol: float, rng: np.random.Generator) -> WeightReport:
        """Improve the state in place until it is within `tol`, relative, of the optimum."""
