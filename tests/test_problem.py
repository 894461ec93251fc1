"""The training problem: row weights and the objective."""

import numpy as np
import pytest
from helpers.weight_problems import N_FEATURES, N_ROWS, dense, flat_and_tree, training

from transduce.losses import LargeMargin
from transduce.problem import TrainingProblem


def test_row_weights_sum_to_one_over_labelled_and_over_unlabelled_rows():
    design = training()[0].design
    rng = np.random.default_rng(0)
    weights = rng.random(N_ROWS) * (rng.random(N_ROWS) < 0.8)
    copy = weights.copy()
    problem = TrainingProblem.create(design, LargeMargin(), 1e-3, 30, weights)
    np.testing.assert_array_equal(weights, copy)
    kappa = problem.kappa(0.25)
    assert kappa[:30].sum() == pytest.approx(1.0)
    assert kappa[30:].sum() == pytest.approx(0.25)
    np.testing.assert_allclose(kappa[:30], weights[:30] / weights[:30].sum())
    np.testing.assert_allclose(kappa[30:], 0.25 * weights[30:] / weights[30:].sum())
    even = TrainingProblem.create(design, LargeMargin(), 1e-3, 30).kappa(0.25)
    np.testing.assert_allclose(even, np.where(np.arange(N_ROWS) < 30, 1 / 30, 0.25 / (N_ROWS - 30)))


def test_row_weights_of_zero_stay_zero():
    design = training()[0].design
    weights = np.where(np.arange(N_ROWS) < 30, 1.0, 0.0)
    assert not TrainingProblem.create(design, LargeMargin(), 1e-3, 30, weights).row_weights[30:].any()
    everything = TrainingProblem.create(design, LargeMargin(), 1e-3, N_ROWS)
    np.testing.assert_allclose(everything.kappa(5.0), 1 / N_ROWS)


def test_a_part_of_the_unlabelled_rows_is_a_problem_of_its_own():
    problem, rng = training()[0], np.random.default_rng(0)
    n_labeled, n_partial, weights = 10, 5, rng.random(N_ROWS)
    forbidden = rng.random((N_ROWS - n_labeled, problem.n_classes)) < 0.3
    whole = TrainingProblem.create(problem.design, LargeMargin(), 1e-3, n_labeled, weights, n_partial, forbidden)
    chosen = np.array([1, 4, 6, 20])  # the first two have partial labels
    part, rows = whole.with_unlabeled(chosen)
    assert rows.tolist() == [*range(n_labeled), 11, 14, 16, 30]
    assert (part.n_labeled, part.n_partial, part.alpha) == (n_labeled, 2, 1e-3)
    np.testing.assert_array_equal(dense(part), dense(whole)[rows])
    np.testing.assert_array_equal(part.forbidden, forbidden[chosen])
    expected = weights[rows] / np.where(np.arange(rows.size) < 12, weights[rows[:12]].sum(), weights[rows[12:]].sum())
    np.testing.assert_allclose(part.row_weights, expected)


@flat_and_tree
def test_the_objective_follows_its_definition(taxonomy):
    problem, labels = training(taxonomy)
    rng = np.random.default_rng(0)
    W = rng.normal(size=(N_FEATURES, taxonomy.n_nodes))
    kappa = rng.random(N_ROWS) * (rng.random(N_ROWS) < 0.7)
    scores = dense(problem) @ W @ taxonomy.paths.T.astype(float)
    rivals = scores + 1.0 - np.eye(taxonomy.n_classes)[labels]
    losses = rivals.max(axis=1) - scores[np.arange(N_ROWS), labels]
    expected = 0.5 * problem.alpha * (W**2).sum() + kappa @ losses
    assert problem.objective(W, labels, kappa) == pytest.approx(expected, rel=1e-12)
