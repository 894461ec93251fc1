"""Dual ascent in batches: the same result with any number of threads, and as few sweeps as rows one after another."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.weight_problems import FLAT, check_equation, dual_losses, fit, flat_and_tree, some_rows, training
from scipy import sparse

from transduce.losses import LargeMargin
from transduce.weight_step import batches

ONE_AFTER_ANOTHER = 10**9


def set_batches(monkeypatch, n_batches):
    """In a sweep over all rows and in any other."""
    for name in ("N_BATCHES", "MIN_BATCHES"):
        monkeypatch.setattr(batches, name, n_batches)


def in_threads(problem, n_threads):
    return replace(problem, design=replace(problem.design, n_threads=n_threads))


@pytest.mark.parametrize("storage", ["csr", "dense"])
@flat_and_tree
@dual_losses
def test_threads_do_not_change_a_single_bit(loss, taxonomy, storage, monkeypatch):
    monkeypatch.setattr(batches, "MIN_PRODUCTS_PER_THREAD", 1)
    set_batches(monkeypatch, 12)
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
        set_batches(monkeypatch, n_batches)
        _, report = fit(problem, labels, 1e-3)
        assert report.converged
        n_sweeps.append(report.n_sweeps)
    alone, many, few = n_sweeps
    assert many <= 1.5 * alone + 1.0
    assert few > alone  # so the number of batches matters here


def test_sweeps_over_few_rows_have_batches_of_few_rows(monkeypatch):
    X, labels = some_rows(4, n=3000)
    problem, _ = training(FLAT[4], LargeMargin(), X=X)
    sizes, run = [], batches.BatchSweeps._run

    def run_and_note(self, order, ends, moves):
        sizes.append((order.size, np.diff(ends).max()))
        return run(self, order, ends, moves)

    monkeypatch.setattr(batches.BatchSweeps, "_run", run_and_note)
    fit(problem, labels, 1e-4)
    assert max(size for _, size in sizes) == 3  # a batch has a 1024th of all rows
    assert all(size <= max(n // batches.MIN_BATCHES, 1) for n, size in sizes)
    assert any(n < 3000 for n, _ in sizes)


@dual_losses
def test_copies_of_a_few_rows_need_smaller_steps_and_get_them(loss, monkeypatch):
    set_batches(monkeypatch, 4)
    X, labels = some_rows(4, n=6)
    problem, _ = training(FLAT[4], loss, 1e-3, X=sparse.vstack([X] * 200, format="csr"), labels=np.tile(labels, 200))
    state, report = fit(problem, np.tile(labels, 200), 1e-3)
    single, _ = training(FLAT[4], loss, 1e-3, X=X, labels=labels)
    assert report.converged
    assert report.objective == pytest.approx(fit(single, labels, 1e-6)[1].objective, rel=2e-3)
    if isinstance(loss, LargeMargin):
        assert state.sigma > 1.0
