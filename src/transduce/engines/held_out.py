"""Scores of the unlabelled rows by weights that they took no part in, as if they were new rows.

A row takes part in the weights through its label: about κ_i ‖x_i‖² / λ of its best score comes from itself. With a few
hundred rows that is most of the score, so scores of training rows say little about those of new rows.
"""

import numpy as np

from transduce.arrays import Array
from transduce.engines.common import FIRST_SWEEPS
from transduce.problem import TrainingProblem
from transduce.weight_step import weight_step_for

N_FOLDS, TOL = 10, 1e-2
"""Parts of the unlabelled rows that are left out in turn, and the relative accuracy of the weights of the others."""


def held_out_scores(problem: TrainingProblem, labels: Array, unlabeled_weight: float, n_folds: int = N_FOLDS) -> Array:
    """Scores (n_unlabeled, K) by weight steps without these rows; all others keep their labels (n,).

    In each weight step the unlabelled rows weigh `unlabeled_weight` together.
    """
    n_unlabeled = problem.n_rows - problem.n_labeled
    rng, step = np.random.default_rng(0), weight_step_for(problem.loss, FIRST_SWEEPS)
    fold = rng.permutation(n_unlabeled) % n_folds
    scores = np.empty((n_unlabeled, problem.n_classes), problem.design.dtype)
    for number in range(min(n_folds, n_unlabeled)):
        part, rows = problem.with_unlabeled(np.flatnonzero(fold != number))
        state = step.start(part, labels[rows])
        step.retarget(part, state, labels[rows], part.kappa(unlabeled_weight))
        step.solve(part, state, TOL, rng)
        left_out = problem.design.select_rows(problem.n_labeled + np.flatnonzero(fold == number))
        scores[fold == number] = left_out.scores(state.W)
    return scores
