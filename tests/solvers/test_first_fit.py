"""Fits that estimate class sizes: the supervised counts against a fit of the labelled rows alone, and Ctrl-C."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.solver_problems import FLAT, N_LABELED, N, alternation, blobs, known_labels, stop_after

from transduce import TransductiveClassifier
from transduce.class_prior.resolve import ResolvedPrior
from transduce.engines.local import LocalEngine
from transduce.history import FitStatus
from transduce.io.checkpoint import Checkpoint
from transduce.losses import MaxEnt
from transduce.solvers.first_fit import FIRST_FIT, solve_with_estimate, supervised_counts
from transduce.solvers.loop import FitContext


def parts(on_round=lambda row: None):
    """An engine, the prior "estimate", settings and a context."""
    run = alternation(MaxEnt())
    engine = LocalEngine(run.problem, known_labels())
    prior = ResolvedPrior.create("estimate", np.arange(4), known_labels()[:N_LABELED], N - N_LABELED, None, FLAT, None)
    context = FitContext(np.random.default_rng(0), np.random.default_rng(1), on_round, Checkpoint())
    return engine, prior, run.settings, context


def test_supervised_counts_are_predictions_of_a_fit_to_the_labelled_rows():
    engine, _, settings, _ = parts()
    counts = supervised_counts(engine, replace(settings, tol=1e-6, early_tol=1e-6), np.random.default_rng(0))
    X, truth = blobs()
    supervised = TransductiveClassifier("maxent", alpha=1e-2, tol=1e-6, random_state=0)
    supervised.fit(X[:N_LABELED], truth[:N_LABELED])
    np.testing.assert_array_equal(counts, np.bincount(supervised.predict(X[N_LABELED:]), minlength=4))


def test_the_solver_gets_the_average_posterior_of_the_first_fit():
    rows, solved = [], []
    result, bounds = solve_with_estimate(*parts(rows.append), lambda estimated: solved.append(estimated) or "result")
    assert result == "result"
    assert solved == [bounds]
    assert {row.restart for row in rows} == {FIRST_FIT}
    assert bounds.low.sum() == bounds.high.sum() == N - N_LABELED
    truth = np.bincount(blobs()[1][N_LABELED:], minlength=4)
    labels = np.bincount(known_labels()[:N_LABELED], minlength=4) / N_LABELED * (N - N_LABELED)
    assert np.abs(bounds.low - truth).sum() < np.abs(labels - truth).sum()


def interrupted(*args):
    raise KeyboardInterrupt


@pytest.mark.parametrize("during", ["first fit", "second fit"])
def test_an_interruption_keeps_the_first_fit(during):
    on_round = stop_after(2) if during == "first fit" else lambda row: None
    first, bounds = solve_with_estimate(*parts(on_round), interrupted)
    assert first.status is FitStatus.INTERRUPTED
    assert {row.restart for row in first.history} == {FIRST_FIT}
    counts = np.bincount(first.labels[N_LABELED:], minlength=4)
    assert np.all((bounds.low <= counts) & (counts <= bounds.high))
