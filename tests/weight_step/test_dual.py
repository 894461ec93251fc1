"""Dual coordinate ascent against scikit-learn, scipy, and the equation of weights and dual variables."""

import warnings

import numpy as np
import pytest
from helpers.weight_problems import (
    FLAT,
    N_ROWS,
    TREE,
    brute_force,
    check_equation,
    dense,
    dual_losses,
    fit,
    flat_and_tree,
    quadratic_programme,
    small_training,
    some_rows,
    training,
)
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from transduce.losses import LargeMargin, MaxEnt, SmoothMargin, SquaredLargeMargin
from transduce.taxonomy import Taxonomy
from transduce.weight_step import LBFGS, DualLargeMargin, DualMaxEnt, DualSquaredLargeMargin, weight_step_for


@pytest.mark.parametrize(("n_classes", "alpha", "seed"), [(3, 1e-2, 0), (4, 1e-3, 1), (6, 3e-2, 2), (6, 1e-3, 3)])
def test_large_margin_reaches_the_objective_of_linear_svc(n_classes, alpha, seed):
    problem, labels = training(FLAT[n_classes], LargeMargin(), alpha, seed)
    svc = LinearSVC(multi_class="crammer_singer", fit_intercept=False, C=1 / (N_ROWS * alpha), tol=1e-8, max_iter=10**6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        svc.fit(dense(problem), labels)
    theirs = problem.objective(np.ascontiguousarray(svc.coef_.T), labels, problem.kappa(1.0))
    _, report = fit(problem, labels, 1e-8)
    assert report.converged
    assert report.objective == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize(("n_classes", "alpha", "seed"), [(3, 1e-2, 0), (4, 1e-3, 1), (6, 3e-2, 2), (6, 1e-3, 3)])
def test_maxent_reaches_the_objective_of_logistic_regression(n_classes, alpha, seed):
    problem, labels = training(FLAT[n_classes], MaxEnt(), alpha, seed)
    peer = LogisticRegression(fit_intercept=False, C=1 / (N_ROWS * alpha), tol=1e-10, max_iter=10_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer.fit(dense(problem), labels)
    theirs = problem.objective(np.ascontiguousarray(peer.coef_.T), labels, problem.kappa(1.0))
    _, report = fit(problem, labels, 1e-9)
    assert report.converged
    assert report.objective == pytest.approx(theirs, rel=1e-7)


@flat_and_tree
@pytest.mark.parametrize("step", [DualMaxEnt(100_000), LBFGS(10_000)], ids=["dual", "lbfgs"])
def test_maxent_reaches_the_brute_force_optimum(taxonomy, step):
    problem, labels = training(taxonomy, MaxEnt())
    _, report = fit(problem, labels, 1e-6 if isinstance(step, LBFGS) else 1e-8, step)
    assert report.converged
    assert report.objective == pytest.approx(brute_force(problem, labels), rel=1e-8)


@flat_and_tree
@pytest.mark.parametrize("name", ["unit", "tree"])
def test_large_margin_reaches_the_optimum_of_a_quadratic_programme(taxonomy, name):
    problem, labels = small_training(taxonomy, LargeMargin(None if name == "unit" else taxonomy.margins()))
    _, report = fit(problem, labels, 1e-9)
    assert report.converged
    assert report.objective == pytest.approx(quadratic_programme(problem, labels), rel=1e-6)


@pytest.mark.parametrize(
    "taxonomy",
    [FLAT[2], FLAT[4], TREE],
    ids=["two", "flat", "tree"],
)
def test_squared_large_margin_reaches_the_optimum_of_a_quadratic_programme(taxonomy):
    problem, labels = small_training(taxonomy, SquaredLargeMargin())
    _, report = fit(problem, labels, 1e-6)
    assert report.objective == pytest.approx(quadratic_programme(problem, labels, squared=True), rel=1e-4)


@dual_losses
@flat_and_tree
def test_the_gap_bounds_the_distance_from_the_optimum(taxonomy, loss):
    problem, labels = training(taxonomy, loss)
    best = fit(problem, labels, 1e-9)[1].objective
    for tol in (0.5, 1e-1, 1e-2, 1e-4):
        state, report = fit(problem, labels, tol, seed=1)
        assert report.converged
        assert 0 <= report.gap <= tol * report.objective
        assert best * (1 - 1e-9) <= report.objective <= best + report.gap + 1e-9 * best
        assert report.objective == pytest.approx(problem.objective(state.W, labels, state.kappa), rel=1e-12)
        np.testing.assert_array_equal(report.scores, problem.design.scores(state.W))


@dual_losses
@flat_and_tree
def test_the_gap_is_a_bound_even_when_sweeps_run_out(taxonomy, loss):
    problem, labels = training(taxonomy, loss, 1e-3)
    best = fit(problem, labels, 1e-9)[1].objective
    state, report = fit(problem, labels, 1e-12, type(weight_step_for(loss, 1))(max_sweeps=1))
    assert not report.converged
    assert report.objective == pytest.approx(problem.objective(state.W, labels, state.kappa), rel=1e-12)
    assert report.objective - best <= report.gap * (1 + 1e-9)


@dual_losses
@flat_and_tree
def test_the_equation_of_weights_and_dual_holds_at_all_times(taxonomy, loss):
    problem, labels = training(taxonomy, loss)
    step, rng = weight_step_for(loss, 1000), np.random.default_rng(0)
    kappa = problem.kappa(1.0) * np.where(np.arange(N_ROWS) < 150, 1.0, 0.0)
    state = step.start(problem, labels)
    check_equation(problem, state)
    for growth in (1.0, 1.0, 3.0, 1.7, 1.0, 10.0):
        kappa = growth * kappa
        kappa[150:] = np.maximum(kappa[150:], 1e-4 * (growth > 1))
        changed = rng.random(N_ROWS) < 0.1
        labels = np.where(changed, rng.integers(problem.n_classes, size=N_ROWS), labels)
        step.retarget(problem, state, labels, kappa)
        check_equation(problem, state)
        np.testing.assert_array_equal(state.targets, labels)
        np.testing.assert_array_equal(state.kappa, kappa)
        step.solve(problem, state, 1e-3, rng)
        check_equation(problem, state)


def test_growing_row_weights_do_not_change_the_weights():
    problem, labels = training()
    step, kappa = DualLargeMargin(1000), problem.kappa(1.0)
    state, _ = fit(problem, labels, 1e-3)
    before = state.W.copy()
    step.retarget(problem, state, labels, 5.0 * kappa)
    np.testing.assert_array_equal(state.W, before)
    check_equation(problem, state)


@dual_losses
def test_targets_and_row_weights_are_copied(loss):
    problem, labels = training(loss=loss)
    kappa = problem.kappa(1.0)
    copies = labels.copy(), kappa.copy()
    state, _ = fit(problem, labels, 1e-3, kappa=kappa)
    np.testing.assert_array_equal(labels, copies[0])
    np.testing.assert_array_equal(kappa, copies[1])
    assert not np.shares_memory(state.targets, labels)
    assert not np.shares_memory(state.kappa, kappa)


@dual_losses
def test_a_tree_of_only_children_is_a_flat_problem_with_rows_times_root_two(loss):
    """Parent and child have equal weights, so the score of a class is twice that of each."""
    X, labels = some_rows(3)
    chains, _ = training(Taxonomy.create(["a/x", "b/y", "c/z"]), loss, X=X, labels=labels)
    flat, _ = training(FLAT[3], loss, X=X * np.sqrt(2.0), labels=labels)
    state, one = fit(chains, labels, 1e-10)
    _, other = fit(flat, labels, 1e-10)
    assert one.objective == pytest.approx(other.objective, rel=1e-8)
    np.testing.assert_allclose(state.W[:, 0::2], state.W[:, 1::2], atol=1e-10)
    np.testing.assert_allclose(one.scores, 2.0 * dense(chains) @ state.W[:, 1::2], atol=1e-9)


def test_any_margins_converge():
    rng = np.random.default_rng(0)
    random_margins = rng.random((5, 5)) * 3.0 * (1 - np.eye(5))
    for taxonomy in (TREE, Taxonomy.flat(range(5))):
        for margins in (TREE.margins(), random_margins):
            problem, labels = training(taxonomy, LargeMargin(margins))
            best = fit(problem, labels, 1e-8)[1]
            assert best.converged
            state, rough = fit(problem, labels, 1e-2, seed=3)
            assert rough.objective - best.objective <= rough.gap * (1 + 1e-6)
            assert rough.objective == pytest.approx(problem.objective(state.W, labels, state.kappa), rel=1e-12)


@dual_losses
@flat_and_tree
def test_a_warm_start_needs_fewer_sweeps_and_ends_at_the_same_objective(taxonomy, loss):
    problem, labels = training(taxonomy, loss, 1e-3)
    step, kappa, n_warm, n_cold = weight_step_for(loss, 100_000), problem.kappa(1.0), 0.0, 0.0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        other, changed = labels.copy(), rng.choice(N_ROWS, N_ROWS // 20, replace=False)
        other[changed] = (other[changed] + 1) % problem.n_classes
        state, _ = fit(problem, labels, 1e-2, seed=seed)
        step.retarget(problem, state, other, kappa)
        n_warm += step.solve(problem, state, 1e-2, rng).n_sweeps
        n_cold += fit(problem, other, 1e-2, seed=seed)[1].n_sweeps
    assert n_warm < n_cold
    best = fit(problem, other, 1e-5)[1].objective
    assert step.solve(problem, state, 1e-5, rng).objective == pytest.approx(best, rel=2e-5)


@dual_losses
@pytest.mark.parametrize("factor", [0.5, 1e-9, 0.0])
def test_shrinking_row_weights_raise(loss, factor):
    problem, labels = training(loss=loss)
    state, _ = fit(problem, labels, 1e-2)
    kappa = problem.kappa(1.0)
    kappa[7] *= factor
    with pytest.raises(ValueError, match="can only grow; start a new state"):
        weight_step_for(loss, 10).retarget(problem, state, labels, kappa)


@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        (LargeMargin(), DualLargeMargin),
        (MaxEnt(), DualMaxEnt),
        (SquaredLargeMargin(), DualSquaredLargeMargin),
        (SmoothMargin(), DualMaxEnt),
        (object(), LBFGS),
    ],
)
def test_each_loss_gets_its_weight_step(loss, kind):
    assert weight_step_for(loss, 3) == kind(3)


@dual_losses
@pytest.mark.parametrize("alpha", [1e-4, 1e3])
def test_very_weak_and_very_strong_regularization(loss, alpha):
    problem, labels = training(loss=loss, alpha=alpha)
    state, report = fit(problem, labels, 1e-3)
    assert report.converged
    check_equation(problem, state, 1e-9)
    at_zero = problem.objective(np.zeros_like(state.W), labels, state.kappa)
    assert report.objective <= at_zero * (1 + 1e-12)


@dual_losses
def test_the_same_seed_gives_the_same_weights(loss):
    problem, labels = training(TREE, loss)
    np.testing.assert_array_equal(fit(problem, labels, 1e-4, seed=5)[0].W, fit(problem, labels, 1e-4, seed=5)[0].W)


@dual_losses
def test_one_class_and_one_row(loss):
    one_class, labels = training(Taxonomy.flat(["only"]), loss, labels=np.zeros(N_ROWS, np.int64))
    state, report = fit(one_class, labels, 1e-6)
    assert report.objective == pytest.approx(0.0, abs=1e-12)
    assert not state.W.any()
    X, _ = some_rows(4)
    one_row, labels = training(loss=loss, X=X[:1], labels=np.array([2]))
    assert fit(one_row, labels, 1e-6)[1].converged
