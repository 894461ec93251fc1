"""Functions of a training problem that the local engine and the workers of a cluster share."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import Bounds
from transduce.losses import Loss, costs_of
from transduce.problem import TrainingProblem
from transduce.weight_step import WeightState

Array = NDArray[Any]

STEP_LENGTHS = (0.6, 0.2)
"""Step lengths to try between the accepted weights and new ones at which J is higher."""
FIRST_TOL, FIRST_SWEEPS = 1e-2, 1000
"""Relative accuracy and most sweeps of the supervised weights that soft labels start from."""
SOFT_SWEEPS, SOFT_ITERATIONS = 1, 10
"""Work of one weight step with soft labels: sweeps of a dual step, or iterations of L-BFGS."""
_STATE = ("W", "targets", "kappa", "dual", "gaps")


def packed_state(state: WeightState) -> dict[str, Array]:
    """Return the state of a weight step as arrays; scores are computed again from the weights."""
    scalars = np.array([state.objective, state.scores is not None], dtype=np.float64)
    return {f"state_{name}": getattr(state, name) for name in _STATE} | {"state_scalars": scalars}


def unpacked_state(problem: TrainingProblem, saved: dict[str, Array]) -> WeightState:
    """Rebuild the state of a weight step from its arrays."""
    W, targets, kappa, dual, gaps = (saved[f"state_{name}"] for name in _STATE)
    objective, with_scores = saved["state_scalars"].tolist()
    scores = problem.design.scores(W) if with_scores else None
    return WeightState(W, targets, kappa, dual, gaps, objective, scores)


def finite_costs(loss: Loss, scores: Array, n_threads: int = 1) -> Array:
    """Costs of every label at these scores; raise if a user's loss returns NaN or infinity."""
    costs = costs_of(loss, scores, n_threads)
    if not np.isfinite(costs.sum()):
        raise ValueError("the loss must give finite label costs, but label_costs returned NaN or infinity. Correct it.")
    return costs


def predicted_counts(problem: TrainingProblem, scores: Array) -> Array:
    """Count rows by the class of their best allowed score (K,); scores are those of the rows without a full label."""
    if problem.forbidden is not None:
        scores = np.where(problem.forbidden, -np.inf, scores)
    return np.bincount(scores.argmax(axis=1), minlength=problem.n_classes)


def model_posterior(problem: TrainingProblem, scores: Array) -> Array:
    """Posterior (n, K) of the rows without a full label, 0 where a label is forbidden; one-hot without a posterior."""
    if hasattr(problem.loss, "posterior"):
        posterior = np.asarray(problem.loss.posterior(scores))
    else:
        posterior = np.eye(problem.n_classes)[scores.argmax(axis=1)]
    return posterior if problem.forbidden is None else _allowed(problem.forbidden, posterior)


def first_targets(problem: TrainingProblem, labels: Array, bounds: Bounds, n_unlabeled: int) -> Array:
    """One-hot targets of the labelled rows, and the class proportions for all others.

    `n_unlabeled` are the rows that the bounds count, which may be more than those of this problem.
    """
    targets = np.zeros((problem.n_rows, problem.n_classes), problem.design.dtype)
    targets[np.arange(problem.n_labeled), labels[: problem.n_labeled]] = 1.0
    proportions = bounds.center(n_unlabeled)
    targets[problem.n_labeled :] = (
        proportions if problem.forbidden is None else _allowed(problem.forbidden, proportions)
    )
    return targets


def _allowed(forbidden: Array, distributions: Array) -> Array:
    """Set forbidden labels to 0 and normalise; a row whose allowed labels all had 0 gets them evenly."""
    allowed = np.where(forbidden, 0.0, np.maximum(distributions, np.finfo(np.float64).tiny))
    return np.asarray(allowed / allowed.sum(axis=1, keepdims=True))
