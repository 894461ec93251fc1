"""Dual coordinate ascent on rows of all kinds: empty, of weight 0, float32, dense, integers, with duplicate entries."""

import numpy as np
import pytest
from helpers.weight_problems import (
    N_ROWS,
    check_equation,
    dual_losses,
    fit,
    flat_and_tree,
    some_rows,
    training,
)
from scipy import sparse

from transduce.losses import LargeMargin, MaxEnt
from transduce.weight_step import weight_step_for


@dual_losses
@flat_and_tree
def test_rows_without_features_add_a_constant(taxonomy, loss):
    """Their scores are 0 at all weights, so the optimum is that of the other rows."""
    X, labels = some_rows(taxonomy.n_classes)
    empty = np.arange(N_ROWS) % 10 == 0
    X = sparse.csr_matrix(X.multiply(~empty[:, None]))
    problem, _ = training(taxonomy, loss, X=X, labels=labels)
    state, report = fit(problem, labels, 1e-9)
    assert report.converged
    check_equation(problem, state)
    kappa = problem.kappa(1.0)
    without = np.where(empty, 0.0, kappa)
    _, alone = fit(problem, labels, 1e-9, kappa=without)
    zero = problem.loss.value(np.zeros((N_ROWS, taxonomy.n_classes)), labels)
    assert report.objective == pytest.approx(alone.objective + kappa[empty] @ zero[empty], rel=1e-7)


@dual_losses
@flat_and_tree
def test_rows_of_weight_zero_are_ignored(taxonomy, loss):
    X, labels = some_rows(taxonomy.n_classes)
    problem, _ = training(taxonomy, loss, X=X, labels=labels)
    kappa = problem.kappa(1.0)
    kappa[100:] = 0.0
    state, report = fit(problem, labels, 1e-9, kappa=kappa)
    few, _ = training(taxonomy, loss, X=X[:100], labels=labels[:100])
    _, alone = fit(few, labels[:100], 1e-9, kappa=kappa[:100])
    assert report.objective == pytest.approx(alone.objective, rel=1e-8)
    check_equation(problem, state)
    untouched = weight_step_for(loss, 1).start(problem, labels).dual
    np.testing.assert_array_equal(state.dual[100:], untouched[100:])


@dual_losses
@flat_and_tree
def test_float32_is_kept_and_comes_close(taxonomy, loss):
    X, labels = some_rows(taxonomy.n_classes)
    problem, _ = training(taxonomy, loss, X=X, labels=labels)
    small, _ = training(taxonomy, loss, X=X.astype(np.float32), labels=labels)
    best = fit(problem, labels, 1e-6)[1].objective
    state, report = fit(small, labels, 1e-3)
    assert state.W.dtype == report.scores.dtype == np.float32
    assert report.converged
    assert report.objective == pytest.approx(best, rel=2e-3)
    check_equation(small, state, rtol=1e-4)


@dual_losses
@flat_and_tree
def test_any_matrix_format_gives_the_same_weights(taxonomy, loss):
    X, labels = some_rows(taxonomy.n_classes)
    plain, _ = training(taxonomy, loss, X=X, labels=labels)
    expected = fit(plain, labels, 1e-4)[0].W
    wide = X.copy()
    wide.indices, wide.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    for form in (X.tocsc(), X.tocoo(), sparse.csr_array(X), wide):
        problem, _ = training(taxonomy, loss, X=form, labels=labels)
        np.testing.assert_allclose(fit(problem, labels, 1e-4)[0].W, expected, atol=1e-12)
    assert training(X=wide)[0].design.indices.dtype == np.int64


@dual_losses
@flat_and_tree
def test_dense_rows_reach_the_optimum_of_the_same_rows_as_csr(taxonomy, loss):
    X, labels = some_rows(taxonomy.n_classes)
    (csr, _), (dense, _) = (training(taxonomy, loss, X=form, labels=labels) for form in (X, X.toarray()))
    expected, report = fit(csr, labels, 1e-9)
    state, found = fit(dense, labels, 1e-9)
    assert found.objective == pytest.approx(report.objective, rel=1e-8)
    np.testing.assert_allclose(state.W, expected.W, atol=1e-3)
    check_equation(dense, state)


def test_integers_and_booleans_are_converted():
    X, labels = some_rows(4)
    present = X.toarray() > 0
    expected = fit(training(X=present.astype(float), labels=labels)[0], labels, 1e-4)[0].W
    for form in (present, present.astype(np.int32), sparse.csr_matrix(present.astype(np.uint8))):
        problem, _ = training(X=form, labels=labels)
        np.testing.assert_allclose(fit(problem, labels, 1e-4)[0].W, expected, atol=1e-9)


@pytest.mark.parametrize(
    "loss",
    [LargeMargin(), MaxEnt()],
    ids=["large-margin", "maxent"],
)
def test_duplicate_entries_are_summed(loss):
    """CSR may hold an entry twice; scipy and scikit-learn read it as the sum."""
    X, labels = some_rows(4)
    parts = sparse.csr_matrix((np.repeat(X.data / 4, 4), np.repeat(X.indices, 4), 4 * X.indptr), X.shape)
    problem, _ = training(loss=loss, X=parts, labels=labels, alpha=1e-3)
    best = fit(training(loss=loss, X=X, labels=labels, alpha=1e-3)[0], labels, 1e-8)[1].objective
    step = type(weight_step_for(loss, 1))(max_sweeps=3000)
    assert fit(problem, labels, 1e-6, step)[1].objective == pytest.approx(best, rel=1e-5)


@dual_losses
def test_rows_are_not_modified(loss):
    X, labels = some_rows(4)
    copy = X.copy()
    fit(training(loss=loss, X=X, labels=labels)[0], labels, 1e-3)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(X, name), getattr(copy, name))
