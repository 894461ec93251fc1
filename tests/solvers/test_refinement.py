"""Very many rows: a sample of them is annealed, and all rows go on from there."""

import numpy as np
import pytest

from transduce import TransductiveClassifier
from transduce.history import FitStatus
from transduce.solvers import annealing
from transduce.solvers.schedule import N_STAGES, PAPER

N_SAMPLE = 300


@pytest.fixture(autouse=True)
def small_sample(monkeypatch):
    monkeypatch.setattr(annealing, "SAMPLE_ROWS", N_SAMPLE)
    monkeypatch.setattr(annealing, "SAMPLE_ROWS_PER_CLASS", 1)


def problem():
    rng = np.random.default_rng(0)
    truth = rng.choice(3, 1500, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(3, 8))[truth] + 0.8 * rng.normal(size=(1500, 8))
    y = np.where(np.arange(1500) < 30, truth, -1)
    counts = np.bincount(truth[y < 0])
    return X, truth, y, counts


def sizes_of(labels, y):
    return np.bincount(labels[y < 0])


both = pytest.mark.parametrize("how", ["soft", "paper"])


@both
def test_labels_of_all_rows_meet_the_counts_and_j_is_about_as_low_as_without_a_sample(how, monkeypatch):
    X, truth, y, counts = problem()
    model = TransductiveClassifier(class_prior=counts, annealing=how, random_state=0).fit(X, y)
    np.testing.assert_array_equal(sizes_of(model.transduction_, y), counts)
    monkeypatch.setattr(annealing, "SAMPLE_ROWS", len(X))
    whole = TransductiveClassifier(class_prior=counts, annealing=how, random_state=0).fit(X, y)
    assert model.termination_condition_ == FitStatus.CONVERGED.value
    assert model.objective_ <= 1.06 * whole.objective_  # the class sizes of a small sample vary
    assert np.mean(model.transduction_ == truth) > np.mean(whole.transduction_ == truth) - 0.01
    assert max(row.restart for row in model.history_) > max(row.restart for row in whole.history_)


@both
@pytest.mark.parametrize("n_rounds", [1, 4, 15])
def test_an_interrupted_fit_of_the_sample_labels_all_rows(how, n_rounds):
    X, truth, y, counts = problem()
    rounds = []

    def stop(row):
        rounds.append(row)
        if len(rounds) == n_rounds:
            raise KeyboardInterrupt

    model = TransductiveClassifier(class_prior=counts, annealing=how, random_state=0, verbose=stop).fit(X, y)
    assert model.termination_condition_ == FitStatus.INTERRUPTED.value
    np.testing.assert_array_equal(sizes_of(model.transduction_, y), counts)
    assert np.mean(model.transduction_ == truth) > 0.6


@pytest.mark.parametrize("restart", [0, pytest.param(2, marks=pytest.mark.slow), 3])
def test_a_stopped_fit_continues_from_its_checkpoint(restart, tmp_path):
    X, _, y, counts = problem()
    how = {"class_prior": counts, "annealing": "soft", "random_state": 0, "n_jobs": 1}
    undisturbed = TransductiveClassifier(**how).fit(X, y)

    def stop(row):
        if row.restart == restart:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        TransductiveClassifier(checkpoint=tmp_path, verbose=stop, **how).fit(X, y)
    rows = []
    resumed = TransductiveClassifier(checkpoint=tmp_path, verbose=rows.append, **how).fit(X, y)
    last_stages = {0: len(PAPER), 1: N_STAGES + 1, 2: N_STAGES + 1}
    assert all(row.stage >= last_stages[row.restart] for row in rows if row.restart < restart)
    assert restart in {row.restart for row in rows}
    np.testing.assert_array_equal(resumed.coef_, undisturbed.coef_)
    assert len(resumed.history_) == len(undisturbed.history_)


@pytest.mark.filterwarnings("ignore::transduce.PriorWarning")
def test_partial_labels_that_a_sample_has_too_many_of_are_no_error():
    X, truth, y, _ = problem()
    truth[0] = 3  # one labelled row of a fourth class
    rest = np.flatnonzero(y < 0)
    given = [{0, 1} if y[i] < 0 and truth[i] < 2 else {2, 3} if y[i] < 0 else int(truth[i]) for i in range(len(X))]
    counts = dict(enumerate(np.bincount(truth[rest], minlength=4).tolist()))
    model = TransductiveClassifier(class_prior=counts, annealing="paper", random_state=0).fit(X, given)
    found = np.bincount(model.transduction_[rest].astype(int), minlength=4)
    np.testing.assert_array_equal(found, list(counts.values()))
