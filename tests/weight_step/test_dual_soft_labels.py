"""Dual coordinate ascent for the smooth margin, and for soft labels that change."""

import numpy as np
import pytest
from helpers.weight_problems import (
    N_ROWS,
    brute_force,
    check_equation,
    fit,
    flat_and_tree,
    smooth_margin,
    soft_targets,
    some_rows,
    training,
)

from transduce.losses import MaxEnt, SmoothMargin
from transduce.weight_step import LBFGS, DualMaxEnt

any_margins = pytest.mark.parametrize("name", ["unit", "any"])
hard_and_soft = pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])


@flat_and_tree
def test_soft_targets_of_maxent_reach_the_optimum(taxonomy):
    problem, _ = training(taxonomy, MaxEnt())
    rng = np.random.default_rng(0)
    soft = rng.dirichlet(np.full(taxonomy.n_classes, 0.4), size=N_ROWS)
    state, dual = fit(problem, soft, 1e-9)
    check_equation(problem, state)
    _, smooth = fit(problem, soft, 1e-7, LBFGS(10_000))
    assert dual.converged
    assert dual.objective == pytest.approx(smooth.objective, rel=1e-8)
    assert dual.objective == pytest.approx(brute_force(problem, soft), rel=1e-8)
    assert dual.objective == pytest.approx(problem.objective(state.W, soft, state.kappa), rel=1e-10)
    other = np.where((rng.random(N_ROWS) < 0.1)[:, None], np.roll(soft, 1, axis=1), soft)
    step = DualMaxEnt(1000)
    step.retarget(problem, state, other, 2.0 * problem.kappa(1.0))
    check_equation(problem, state)
    report = step.solve(problem, state, 1e-9, rng)
    assert report.objective == pytest.approx(brute_force(problem, other, 2.0 * problem.kappa(1.0)), rel=1e-8)


@flat_and_tree
@any_margins
@hard_and_soft
def test_the_smooth_margin_reaches_the_optimum_of_lbfgs(taxonomy, name, soft):
    problem, targets = training(taxonomy, smooth_margin(name, taxonomy.n_classes))
    targets = soft_targets(taxonomy.n_classes) if soft else targets
    state, dual = fit(problem, targets, 1e-8)
    assert dual.converged
    check_equation(problem, state)
    _, smooth = fit(problem, targets, 1e-7, LBFGS(10_000))
    assert dual.objective == pytest.approx(smooth.objective, rel=1e-7)
    assert dual.objective == pytest.approx(problem.objective(state.W, targets, state.kappa), rel=1e-10)


@flat_and_tree
@any_margins
@hard_and_soft
def test_the_gap_of_the_smooth_margin_bounds_the_distance_from_the_optimum(taxonomy, name, soft):
    problem, targets = training(taxonomy, smooth_margin(name, taxonomy.n_classes), 1e-3)
    targets = soft_targets(taxonomy.n_classes) if soft else targets
    best = fit(problem, targets, 1e-9)[1].objective
    for max_sweeps, tol in ((1, 1e-12), (4, 1e-12), (10_000, 1e-1), (10_000, 1e-3)):
        state, report = fit(problem, targets, tol, DualMaxEnt(max_sweeps), seed=1)
        assert report.converged == (max_sweeps > 4)
        assert report.gap >= 0
        assert best * (1 - 1e-8) <= report.objective <= best + report.gap * (1 + 1e-9) + 1e-8 * best
        assert report.objective == pytest.approx(problem.objective(state.W, targets, state.kappa), rel=1e-10)


def test_a_smooth_margin_without_margins_is_solved_as_maxent():
    problem, labels = training(loss=MaxEnt())
    same, _ = training(loss=SmoothMargin(1.0, np.zeros((4, 4))))
    for targets in (labels, soft_targets(4)):
        one, other = fit(problem, targets, 1e-9)[1], fit(same, targets, 1e-9)[1]
        assert other.objective == pytest.approx(one.objective, rel=1e-8)


@flat_and_tree
@pytest.mark.parametrize("name", ["maxent", "unit", "any"])
def test_the_equation_holds_while_soft_targets_and_row_weights_change(taxonomy, name):
    """Row weights may fall, and rows may get a weight later."""
    k = taxonomy.n_classes
    problem, labels = training(taxonomy, MaxEnt() if name == "maxent" else smooth_margin(name, k))
    step, rng, kappa = DualMaxEnt(3), np.random.default_rng(0), problem.kappa(1.0)
    late = np.arange(N_ROWS) >= 150
    targets = np.where(late[:, None], np.full(k, 1.0 / k), np.eye(k)[labels])
    state = step.start(problem, targets)
    step.retarget(problem, state, targets, np.where(late, 0.0, kappa))
    check_equation(problem, state)
    step.solve(problem, state, 1e-3, rng)
    check_equation(problem, state)
    for round_, weight in enumerate((0.03, 0.2, 1.0, 0.4)):
        before, fresh = state.W.copy(), (state.kappa == 0).any()
        targets = np.where(late[:, None], soft_targets(k, round_), targets)
        now = np.where(late, weight * kappa, kappa)
        step.retarget(problem, state, targets, now)
        np.testing.assert_array_equal(state.targets, targets)
        np.testing.assert_array_equal(state.kappa, now)
        check_equation(problem, state)
        if fresh:  # rows that had no weight before contribute nothing yet
            np.testing.assert_allclose(state.W, before, atol=1e-11)
        report = step.solve(problem, state, 0.0, rng)
        check_equation(problem, state)
        assert report.objective == pytest.approx(problem.objective(state.W, targets, now), rel=1e-10)
    best = fit(problem, targets, 1e-9, kappa=now)[1].objective
    assert DualMaxEnt(10_000).solve(problem, state, 1e-9, rng).objective == pytest.approx(best, rel=1e-8)


@any_margins
def test_soft_targets_that_become_hard_end_at_the_optimum_of_the_labels(name):
    problem, labels = training(loss=smooth_margin(name, 4))
    step, kappa, rng = DualMaxEnt(10_000), problem.kappa(1.0), np.random.default_rng(0)
    state, _ = fit(problem, soft_targets(4), 1e-2)
    step.retarget(problem, state, np.eye(4)[labels], kappa)
    report = step.solve(problem, state, 1e-9, rng)
    assert report.objective == pytest.approx(fit(problem, labels, 1e-9)[1].objective, rel=1e-8)


@flat_and_tree
@hard_and_soft
def test_the_smooth_margin_in_float32_comes_close(taxonomy, soft):
    X, targets = some_rows(taxonomy.n_classes)
    targets = soft_targets(taxonomy.n_classes) if soft else targets
    loss = smooth_margin("any", taxonomy.n_classes)
    best = fit(training(taxonomy, loss, X=X)[0], targets, 1e-6)[1].objective
    small, _ = training(taxonomy, loss, X=X.astype(np.float32))
    state, report = fit(small, targets, 1e-3)
    assert state.W.dtype == state.dual.dtype == report.scores.dtype == np.float32
    assert report.converged
    assert report.objective == pytest.approx(best, rel=2e-3)
    check_equation(small, state, rtol=1e-4)


def test_soft_targets_are_copied():
    problem, _ = training(loss=SmoothMargin())
    targets, kappa = soft_targets(4), problem.kappa(1.0)
    copies = targets.copy(), kappa.copy()
    state, _ = fit(problem, targets, 1e-3, kappa=kappa)
    np.testing.assert_array_equal(targets, copies[0])
    np.testing.assert_array_equal(kappa, copies[1])
    assert not any(np.shares_memory(targets, array) for array in (state.targets, state.dual))
    assert not np.shares_memory(state.kappa, kappa)
