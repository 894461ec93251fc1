"""Dual ascent in batches: the same result with any number of threads, and as few sweeps as rows one after another."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.weight_problems import FLAT, check_equation, dual_losses, fit, flat_and_tree, some_rows, training
from scipy import sparse

from transduce.losses import LargeMargin
from transduce.weight_step import batches

ONE_AFTER_ANOTHER = 10**9


def in_threads(problem, n_threads):
    return replace(problem, design=replace(problem.design, n_threads=n_threads))


@pytest.mark.parametrize("storage", ["csr", "dense"])
@flat_and_tree
@dual_losses
def test_threads_do_not_change_a_single_bit(loss, taxonomy, storage, monkeypatch):
    monkeypatch.setattr(batches, "MIN_PRODUCTS_PER_THREAD", 1)
    monkeypatch.setattr(batches, "N_BATCHES", 12)
    X, labels = some_rows(taxonomy.n_classes)
    problem, _ = training(taxonomy, loss, X=X.toarray() if storage == "dense" else X)
    (one, _), (four, _) = (fit(in_threads(problem, n), labels, 1e-4) for n in (1, 4))
    np.testing.assert_array_equal(one.W, four.W)
    np.testing.assert_array_equal(one.dual, four.dual)
    check_equation(problem, four)


@dual_losses
def test_batches_need_about_as_many_sweeps_as_rows_one_after_another(loss, monkeypatch):
    X, labels = some_rows(4, n=4000)
    problem, _ = training(FLAT[4], loss, 1e-3, X=X)
    n_sweeps = []
    for n_batches in (ONE_AFTER_ANOTHER, 400, 2):
        monkeypatch.setattr(batches, "N_BATCHES", n_batches)
        _, report = fit(problem, labels, 1e-3)
        assert report.converged
        n_sweeps.append(report.n_sweeps)
    alone, many, few = n_sweeps
    assert many <= 1.5 * alone + 1.0
    assert few > alone  # so the number of batches matters here


@dual_losses
def test_copies_of_a_few_rows_need_smaller_steps_and_get_them(loss, monkeypatch):
    monkeypatch.setattr(batches, "N_BATCHES", 4)
    X, labels = some_rows(4, n=6)
    problem, _ = training(FLAT[4], loss, 1e-3, X=sparse.vstack([X] * 200, format="csr"), labels=np.tile(labels, 200))
    state, report = fit(problem, np.tile(labels, 200), 1e-3)
    single, _ = training(FLAT[4], loss, 1e-3, X=X, labels=labels)
    assert report.converged
    assert report.objective == pytest.approx(fit(single, labels, 1e-6)[1].objective, rel=2e-3)
    if isinstance(loss, LargeMargin):
        assert state.sigma > 1.0
