"""Accelerated dual ascent finds the optimum of the weight step in memory, and its gap proves it."""

import numpy as np
import pytest
from helpers.device_arrays import libraries, strict, torch_csr, torch_dense
from helpers.weight_problems import check_equation, fit, flat_and_tree, smooth_margin, soft_targets, some_rows, training
from scipy import sparse

from transduce.engines.device import weights
from transduce.engines.device.arrays import to_host
from transduce.engines.device.rows import DeviceRows
from transduce.engines.device.weights import BatchDualStep
from transduce.losses import LargeMargin, MaxEnt, SquaredLargeMargin
from transduce.weight_step.base import WeightState

TOL = 3e-3
LOSSES = {"hinge": LargeMargin, "squared": SquaredLargeMargin, "maxent": MaxEnt}


def device_step(problem, on_device, max_iterations=1000, constant=0.0):
    X = some_rows(problem.n_classes)[0]
    rows = DeviceRows.create(on_device(X), problem.design.taxonomy, 1, np.arange(problem.n_rows), constant)
    return BatchDualStep.create(rows, problem.loss, problem.alpha, max_iterations)


def one_hot(step, labels):
    arrays = step.rows.arrays
    return step.rows.on_device(arrays.one_hot(arrays.ints(labels), step.rows.taxonomy.n_classes))


def solve(step, q, kappa, tol=TOL):
    state = step.start(q)
    step.retarget(state, q, step.rows.on_device(step.rows.arrays.floats(kappa)), soft=False)
    return state, step.solve(state, tol)


def in_memory(step, state):
    """The state as the weight steps in memory have it."""
    parts = (to_host(step.rows.in_problem_order(x)) for x in (state.targets, state.kappa, state.dual))
    return WeightState(to_host(state.W), *parts, np.zeros(0))


@libraries
@flat_and_tree
@pytest.mark.parametrize("name", LOSSES)
def test_optimum_with_a_certificate(on_device, taxonomy, name):
    problem, labels = training(taxonomy, LOSSES[name]())
    optimum = fit(problem, labels, tol=1e-7)[1].objective
    step = device_step(problem, on_device)
    state, report = solve(step, one_hot(step, labels), problem.kappa(1.0))
    assert report.converged
    assert report.gap <= TOL * report.objective
    assert -1e-6 <= report.objective - optimum <= report.gap + 1e-9
    assert report.objective == pytest.approx(problem.objective(to_host(state.W), labels, problem.kappa(1.0)))
    check_equation(problem, in_memory(step, state), 1e-9)


@pytest.mark.parametrize("factor", [2.0**-332, 2.0**332])
def test_iterations_do_not_depend_on_the_scale_of_the_rows(factor):
    """The scale of the curvature has no unit; where it had one, it fell to 0 for large rows, and steps ran away."""
    problem, labels = training()
    step = device_step(problem, strict)
    X, taxonomy, order = some_rows(problem.n_classes)[0] * factor, problem.design.taxonomy, np.arange(problem.n_rows)
    rows = DeviceRows.create(strict(X), taxonomy, 1, order, 0.0)
    scaled = BatchDualStep.create(rows, problem.loss, problem.alpha * factor**2, 1000)
    (one, expected), (other, found) = (
        solve(each, one_hot(each, labels), problem.kappa(1.0), tol=1e-6) for each in (step, scaled)
    )  # fmt: skip
    assert found.n_sweeps == expected.n_sweeps
    assert found.objective == pytest.approx(expected.objective)
    np.testing.assert_allclose(to_host(other.W) * factor, to_host(one.W), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", LOSSES)
def test_a_step_ends_where_the_optimum_is_above_a_limit(name):
    problem, labels = training(loss=LOSSES[name]())
    step = device_step(problem, torch_csr)
    whole, expected = solve(step, one_hot(step, labels), problem.kappa(1.0), tol=1e-6)
    assert step.solve(whole, 1e-6, limit=1.01 * expected.objective).converged
    state = step.start(one_hot(step, labels))
    step.retarget(state, state.targets, whole.kappa, soft=True)
    limit = 0.9 * expected.objective
    found = step.solve(state, 1e-6, limit)
    assert limit < found.objective - found.gap <= expected.objective
    assert not found.converged
    assert found.n_sweeps < expected.n_sweeps


def test_a_gap_that_no_longer_falls_ends_the_step():
    """Float32 cannot reach a gap of 1e-9: many iterations more would change nothing."""
    problem, labels = training()
    rows = DeviceRows.create(
        strict(some_rows(problem.n_classes)[0].astype(np.float32)),
        problem.design.taxonomy,
        1,
        np.arange(problem.n_rows),
        0.0,
    )
    step = BatchDualStep.create(rows, problem.loss, problem.alpha, 100_000)
    _, report = solve(step, one_hot(step, labels), problem.kappa(1.0), tol=1e-9)
    assert not report.converged
    assert report.n_sweeps < 2000
    assert report.gap < 1e-4 * report.objective


@pytest.mark.parametrize("on_device", [torch_csr, strict], ids=["torch-csr", "strict"])
@pytest.mark.parametrize("margins", ["unit", "random"])
def test_smooth_margin_and_soft_labels(on_device, margins):
    problem, _ = training(loss=smooth_margin(margins, 4))
    targets = soft_targets(4)
    optimum = fit(problem, targets, tol=1e-7)[1].objective
    step = device_step(problem, on_device)
    q = step.rows.on_device(step.rows.arrays.floats(targets))
    state = step.start(q)
    step.retarget(state, q, step.rows.on_device(step.rows.arrays.floats(problem.kappa(1.0))), soft=True)
    report = step.solve(state, TOL)
    assert -1e-6 <= report.objective - optimum <= report.gap <= TOL * report.objective


@flat_and_tree
@pytest.mark.parametrize("name", LOSSES)
def test_the_intercept_is_free_and_certified(taxonomy, name):
    """With a constant as large as many rows together, which would make steps very short."""
    X = sparse.hstack([some_rows(taxonomy.n_classes)[0], np.full((240, 1), 3.0)]).tocsr()
    problem, labels = training(taxonomy, LOSSES[name](), X=X, labels=some_rows(taxonomy.n_classes)[1])
    optimum = fit(problem, labels, tol=1e-7)[1].objective
    step = device_step(problem, torch_csr, max_iterations=400, constant=3.0)
    state, report = solve(step, one_hot(step, labels), problem.kappa(1.0))
    assert report.converged
    assert -1e-6 <= report.objective - optimum <= report.gap + 1e-9
    assert report.objective == pytest.approx(problem.objective(to_host(state.W), labels, problem.kappa(1.0)))


@pytest.mark.parametrize("name", LOSSES)
def test_new_labels_and_weights_keep_the_equation(name):
    """Rows that gain weight keep their part of W, and rows with a new label lose it."""
    problem, labels = training(loss=LOSSES[name]())
    step = device_step(problem, torch_csr)
    kappa = problem.kappa(1.0)
    state, _ = solve(step, one_hot(step, labels), 0.2 * kappa)
    before = to_host(state.W).copy()
    heavier = step.rows.on_device(step.rows.arrays.floats(kappa))
    step.retarget(state, one_hot(step, labels), heavier)
    np.testing.assert_allclose(to_host(state.W), before)
    assert state.is_current
    changed = labels.copy()
    changed[:7] = (changed[:7] + 1) % 4
    step.retarget(state, one_hot(step, changed), heavier)
    assert not state.is_current
    step.refresh(state)
    check_equation(problem, in_memory(step, state), 1e-9)


def test_rows_of_zeros_and_rows_without_weight():
    problem, labels = training()
    kappa = problem.kappa(1.0)
    kappa[::3] = 0.0
    step = device_step(problem, lambda X: torch_dense(np.where(np.arange(X.shape[0])[:, None] < 9, 0.0, X.toarray())))
    state, report = solve(step, one_hot(step, labels), kappa)
    assert report.converged
    assert np.all(np.isfinite(to_host(state.dual)))
    np.testing.assert_allclose(to_host(state.dual).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("loss", "most"), [(LargeMargin(), 66), (smooth_margin("unit", 4), 74), (MaxEnt(), 74)], ids=str
)
def test_operations_of_an_iteration(loss, most):
    """On a GPU an iteration over few rows takes as long as their number."""
    problem, labels = training(loss=loss)
    step = device_step(problem, torch_csr, constant=1.0)
    state, _ = solve(step, one_hot(step, labels), problem.kappa(1.0))
    from benchmarks.device_operations import Counts

    with Counts() as counts:
        step._iterate(state)
    assert counts.n_operations <= most


def test_blocks_of_rows_change_nothing(monkeypatch):
    """Dual steps that are computed again for each block, after the intercept has moved, are those it moved by."""
    problem, labels = training(loss=smooth_margin("unit", 4))
    states = []
    for n_cells in (weights.BLOCK_CELLS, 4 * 50):
        monkeypatch.setattr(weights, "BLOCK_CELLS", n_cells)
        step = device_step(problem, torch_csr, constant=1.0, max_iterations=10)
        states.append(solve(step, one_hot(step, labels), problem.kappa(1.0), tol=0.0)[0])
    np.testing.assert_allclose(to_host(states[1].W), to_host(states[0].W), rtol=1e-9, atol=1e-12)


def test_iterations_change_arrays_in_place():
    """So that a GPU can replay them: what an iteration reads and writes stays where it was recorded."""
    problem, labels = training()
    step = device_step(problem, torch_csr)
    state, _ = solve(step, one_hot(step, labels), 0.2 * problem.kappa(1.0))
    names = ("W", "targets", "kappa", "dual", "scores", "rates", "curvature", "last", "momentum")
    before = {name: getattr(state, name).data_ptr() for name in names}
    changed = one_hot(step, (labels + 1) % 4)
    step.retarget(state, changed, step.rows.on_device(step.rows.arrays.floats(problem.kappa(1.0))))
    step.retarget(state, changed, state.kappa, soft=True)
    step.solve(state, TOL)
    assert {name: getattr(state, name).data_ptr() for name in names} == before
