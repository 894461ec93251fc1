"""The weights of the intercept: the optimum of rows that store the constant, with few and with heavy labelled rows."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.weight_problems import TAXONOMIES, dual_losses, fit, flat_and_tree, smooth_margin, soft_targets, some_rows
from scipy import sparse

from transduce.design import Design
from transduce.losses import LargeMargin, MaxEnt, SquaredLargeMargin
from transduce.problem import TrainingProblem
from transduce.weight_step import DualLargeMargin, DualMaxEnt, batches, weight_step_for

N, N_LABELED, CONSTANT, ALPHA, FLAT = 1500, 30, 1.3, 1e-3, TAXONOMIES["flat"]

moves_in_parts = pytest.mark.parametrize("few", [0, N], ids=["in parts", "at once"])
every_storage = pytest.mark.parametrize("storage", ["csr", "dense"])


def problems(taxonomy, loss, storage="csr", n_labeled=N_LABELED, seed=0):
    """The same problem with the constant apart and stored, and its labels; the first two classes are the largest."""
    X, labels = some_rows(taxonomy.n_classes, seed, N)
    X = X[(keep := np.where(labels < 2, True, np.random.default_rng(seed).random(N) < 0.2))]
    labels, stored = labels[keep], sparse.hstack((X, np.full((X.shape[0], 1), CONSTANT)), format="csr")
    apart = Design.create(X.toarray() if storage == "dense" else X, taxonomy, 1, constant=CONSTANT)
    designs = apart, Design.create(stored, taxonomy, 1)
    return *(TrainingProblem.create(design, loss, ALPHA, n_labeled) for design in designs), labels


def check_gap(problem, state, report, optimum):
    """J is that of the weights, and at most the gap above the optimum; the balance is what dual variables imply."""
    assert report.objective == pytest.approx(problem.objective(state.W, state.targets, state.kappa), rel=1e-9)
    assert report.objective - report.gap <= optimum + 1e-9
    step = weight_step_for(problem.loss, 1)
    R = step._contribution(step_targets(problem, state), state.dual) * (state.kappa / problem.alpha)[:, None]
    implied = problem.design.pullback(R)
    np.testing.assert_allclose(state.intercept.balance, implied[-1], atol=1e-8 * np.abs(implied).max())
    np.testing.assert_allclose(state.W[:-1], implied[:-1], atol=1e-8 * np.abs(implied).max())


def step_targets(problem, state):
    return np.eye(problem.n_classes)[state.targets] if state.targets.ndim == 1 else state.targets


@moves_in_parts
@every_storage
@flat_and_tree
@dual_losses
def test_the_optimum_is_that_of_rows_that_store_the_constant(loss, taxonomy, storage, few, monkeypatch):
    monkeypatch.setattr(batches, "FEW_ROWS", few)
    apart, stored, labels = problems(taxonomy, loss, storage)
    optimum = fit(stored, labels, 1e-6)[1].objective
    state, report = fit(apart, labels, 1e-4)
    assert report.converged
    assert optimum - 1e-9 <= report.objective <= (1 + 1e-4) * optimum
    check_gap(apart, state, report, optimum)


@pytest.mark.parametrize("weight", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("n_labeled", [6, 100, 400])
@dual_losses
def test_labelled_rows_of_any_weight_and_number_converge_in_few_sweeps(loss, n_labeled, weight, monkeypatch):
    monkeypatch.setattr(batches, "FEW_ROWS", 0)
    apart, stored, labels = problems(FLAT, loss, n_labeled=n_labeled)
    (state, report), (_, reference) = (fit(p, labels, 1e-3, kappa=p.kappa(weight)) for p in (apart, stored))
    assert report.converged
    assert report.n_sweeps <= max(2.0 * reference.n_sweeps, 10.0)
    check_gap(apart, state, report, reference.objective)


@moves_in_parts
def test_the_gap_is_true_after_labels_and_weights_have_changed(few, monkeypatch):
    monkeypatch.setattr(batches, "FEW_ROWS", few)
    apart, stored, labels = problems(FLAT, LargeMargin())
    step, rng, other = DualLargeMargin(1000), np.random.default_rng(0), labels.copy()
    other[::7] = (other[::7] + 1) % 4
    state = step.start(apart, labels)
    for targets, weight in ((labels, 0.01), (other, 0.01), (other, 1.0), (labels, 1.0)):
        step.retarget(apart, state, targets, apart.kappa(weight))
        report = step.solve(apart, state, 1e-2, rng)
        check_gap(apart, state, report, fit(stored, targets, 1e-7, kappa=stored.kappa(weight))[1].objective)
        assert report.converged


@moves_in_parts
@pytest.mark.parametrize("loss", [MaxEnt(), smooth_margin("unit", 4)], ids=["maxent", "smooth margin"])
def test_soft_labels_change_the_weights_and_leave_the_intercept(loss, few, monkeypatch):
    monkeypatch.setattr(batches, "FEW_ROWS", few)
    apart, stored, _ = problems(FLAT, loss)
    step, rng = DualMaxEnt(1000), np.random.default_rng(0)
    first, second = (soft_targets(4, seed, apart.n_rows) for seed in (0, 1))
    state = step.start(apart, first)
    for targets in (first, second):
        b = state.W[-1].copy()
        step.retarget(apart, state, targets, apart.kappa(1.0))
        np.testing.assert_array_equal(state.W[-1], b)
        report = step.solve(apart, state, 1e-3, rng)
        assert report.converged
        check_gap(apart, state, report, fit(stored, targets, 1e-7)[1].objective)


@every_storage
@flat_and_tree
@dual_losses
def test_threads_do_not_change_a_single_bit(loss, taxonomy, storage, monkeypatch):
    monkeypatch.setattr(batches, "MIN_PRODUCTS_PER_THREAD", 1)
    monkeypatch.setattr(batches, "FEW_ROWS", 0)
    problem, _, labels = problems(taxonomy, loss, storage)
    four = replace(problem, design=replace(problem.design, n_threads=4))
    (one, _), (many, _) = (fit(p, labels, 1e-3) for p in (problem, four))
    np.testing.assert_array_equal(one.W, many.W)
    np.testing.assert_array_equal(one.dual, many.dual)


def test_rows_that_weigh_much_are_visited_in_every_part(monkeypatch):
    monkeypatch.setattr(batches, "FEW_ROWS", 0)
    problem, _, labels = problems(FLAT, LargeMargin())
    step = DualLargeMargin(1)
    state = step.start(problem, labels)
    step.retarget(problem, state, labels, problem.kappa(1.0))
    sweeps = step.sweeps(problem, state)
    order, ends, moves = sweeps._batches(np.arange(problem.n_rows))
    assert np.bincount(order).tolist() == [batches.N_PARTS] * N_LABELED + [1] * (problem.n_rows - N_LABELED)
    assert np.diff(ends).min() >= 1
    assert (ends[0], ends[-1]) == (0, order.size)
    assert np.flatnonzero(moves).size == batches.N_PARTS
    assert moves[-1]


def with_lengths(apart, stored, lengths):
    """Both problems with rows so many times as long; the constant stays."""
    X = sparse.csr_matrix(sparse.diags(lengths) @ apart.design.matrix()[:, :-1])
    X.eliminate_zeros()
    with_constant = sparse.hstack((X, np.full((X.shape[0], 1), CONSTANT)), format="csr")
    taxonomy = apart.design.taxonomy
    designs = Design.create(X, taxonomy, 1, constant=CONSTANT), Design.create(with_constant, taxonomy, 1)
    return [replace(p, design=design) for p, design in zip((apart, stored), designs, strict=True)]


def short_rows(taxonomy, loss):
    """Rows that have little but the constant in common, half of them without a feature; see `problems`."""
    apart, stored, labels = problems(taxonomy, loss)
    return *with_lengths(apart, stored, 0.1 * (np.arange(apart.n_rows) % 2)), labels


@pytest.mark.parametrize(
    ("loss", "n_batches"), [(LargeMargin(), 16), (LargeMargin(), 400), (SquaredLargeMargin(), 400), (MaxEnt(), 400)]
)
@pytest.mark.parametrize("make", [problems, short_rows])
def test_weights_that_follow_at_once_are_those_of_a_stored_constant(loss, make, n_batches, monkeypatch):
    """The same visits and the same steps, also where large batches make steps shorter."""
    for name in ("N_BATCHES", "MIN_BATCHES"):
        monkeypatch.setattr(batches, name, n_batches)
    apart, stored, labels = make(FLAT, loss)
    (one, first), (other, second) = (fit(problem, labels, 1e-2) for problem in (apart, stored))
    assert one.sigma == other.sigma
    assert first.n_sweeps == pytest.approx(second.n_sweeps, rel=0.05)
    assert first.objective == pytest.approx(second.objective, rel=1e-3)
    assert n_batches > 16 or one.sigma > 1.0  # so the number of batches matters here


@pytest.mark.parametrize("fraction", [0.05, 0.3, 0.9])
@dual_losses
def test_rows_without_features_do_not_turn_with_every_move(loss, fraction, monkeypatch):
    monkeypatch.setattr(batches, "FEW_ROWS", 0)
    apart, stored, labels = problems(FLAT, loss)
    rng, lengths = np.random.default_rng(0), np.ones(apart.n_rows)
    lengths[rng.random(apart.n_rows) < fraction] = 0.0
    apart, stored = with_lengths(apart, stored, lengths)
    (state, report), (_, reference) = (fit(p, labels, 1e-3) for p in (apart, stored))
    assert report.converged
    assert report.n_sweeps <= 2.0 * reference.n_sweeps + 2.0 * batches.PATIENCE
    check_gap(apart, state, report, reference.objective)


@pytest.mark.parametrize("length", [0.01, 0.3, 3.0])
@dual_losses
def test_rows_of_any_length_converge(loss, length, monkeypatch):
    monkeypatch.setattr(batches, "FEW_ROWS", 0)
    apart, stored, labels = problems(FLAT, loss)
    apart, stored = with_lengths(apart, stored, np.full(apart.n_rows, length))
    (state, report), (_, reference) = (fit(p, labels, 1e-2) for p in (apart, stored))
    assert report.converged
    assert report.n_sweeps <= 2.0 * reference.n_sweeps + 2.0 * batches.PATIENCE
    check_gap(apart, state, report, reference.objective)


def test_with_many_dominant_rows_the_weights_follow_at_once(monkeypatch):
    monkeypatch.setattr(batches, "FEW_ROWS", 0)
    problem, _, labels = problems(FLAT, LargeMargin(), n_labeled=150)
    step = DualLargeMargin(1)
    for weight, follows in ((1.0, False), (0.01, True)):
        state = step.start(problem, labels)
        step.retarget(problem, state, labels, problem.kappa(weight))
        assert step.sweeps(problem, state).follows == follows
