"""Held-out scores: those of weights that the row took no part in."""

import numpy as np
import pytest
from scipy import sparse

from transduce.design import Design
from transduce.engines import held_out
from transduce.losses import LargeMargin, MaxEnt
from transduce.problem import TrainingProblem
from transduce.taxonomy import Taxonomy
from transduce.weight_step import LBFGS


def problem_of(X: np.ndarray, loss, n_labeled: int, n_partial: int = 0) -> TrainingProblem:
    design = Design.create(sparse.csr_matrix(X), Taxonomy.flat(range(3)), 1)
    return TrainingProblem.create(design, loss, 0.01, n_labeled, n_partial=n_partial)


@pytest.mark.parametrize("n_unlabeled", [1, 3, 40])
@pytest.mark.parametrize("loss", [LargeMargin(), MaxEnt()], ids=["hinge", "maxent"])
def test_a_row_with_features_of_its_own_has_no_score(loss, n_unlabeled):
    """Without the row, nothing is known of its features; among the training rows its score is all its own work."""
    labels = np.arange(6 + n_unlabeled) % 3
    problem = problem_of(np.eye(labels.size), loss, 6)
    scores = held_out.held_out_scores(problem, labels, 1.0)
    assert scores.shape == (n_unlabeled, 3)
    assert np.all(scores == 0.0)


@pytest.mark.parametrize("n_partial", [0, 10])
def test_scores_are_those_of_a_fit_to_the_other_rows(monkeypatch, n_partial):
    monkeypatch.setattr(held_out, "TOL", 1e-9)
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(46, 8)), rng.integers(3, size=46)
    found = held_out.held_out_scores(problem_of(X, MaxEnt(), 6, n_partial), labels, 0.5)
    fold = np.random.default_rng(0).permutation(40) % held_out.N_FOLDS
    for number in range(held_out.N_FOLDS):
        rows = np.concatenate((np.arange(6), 6 + np.flatnonzero(fold != number)))
        part = problem_of(X[rows], MaxEnt(), 6, int((fold[:n_partial] != number).sum()))
        step = LBFGS(1000)
        state = step.start(part, labels[rows])
        step.retarget(part, state, labels[rows], part.kappa(0.5))
        step.solve(part, state, 1e-9, rng)
        assert found[fold == number] == pytest.approx(X[6:][fold == number] @ state.W, abs=1e-3)
