"""Class sizes for the first fits: supervised classifiers, as many labels of each class, labels of mixed origin."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.solver_problems import N_LABELED, alternation, blobs, known_labels

from transduce import TransductiveClassifier
from transduce.engines.local import LocalEngine
from transduce.losses import MaxEnt
from transduce.solvers.first_sizes import balanced_counts, first_estimate, supervised_counts

SIZES = np.array([0.5, 0.3, 0.06, 0.04, 0.04, 0.03, 0.02, 0.01])


def documents(seed, n=1500, n_features=20, distance=4.0):
    """Rows of eight uneven classes that overlap a little, and their classes; the first 40 are five of each class."""
    rng = np.random.default_rng(seed)
    truth = np.concatenate((np.repeat(np.arange(8), 5), rng.choice(8, size=n - 40, p=SIZES)))
    X = distance * np.eye(8, n_features)[truth] + rng.normal(size=(n, n_features))
    return X / np.linalg.norm(X, axis=1, keepdims=True), truth


def prepared(X, y, sampled=None):
    """The engine, the resolved prior and the settings of a fit."""
    model = TransductiveClassifier(random_state=0)
    engine, prior, _ = model._prepare(model._local_data(X, y, None, sampled))
    return engine, prior, model._settings()


def test_supervised_counts_are_predictions_of_a_fit_to_the_labelled_rows():
    run = alternation(MaxEnt())
    engine, settings = LocalEngine(run.problem, known_labels()), replace(run.settings, tol=1e-6, early_tol=1e-6)
    counts = supervised_counts(engine, settings, np.random.default_rng(0))
    X, truth = blobs()
    supervised = TransductiveClassifier("maxent", alpha=1e-2, fit_intercept=False, tol=1e-6, random_state=0)
    supervised.fit(X[:N_LABELED], truth[:N_LABELED])
    np.testing.assert_array_equal(counts, np.bincount(supervised.predict(X[N_LABELED:]), minlength=4))


def test_with_as_many_labels_of_each_class_all_of_them_count():
    X, truth = documents(0)
    engine, _, settings = prepared(X, np.where(np.arange(truth.size) < 40, truth, -1))
    counts = supervised_counts(engine, settings, np.random.default_rng(0))
    np.testing.assert_array_equal(balanced_counts(engine, settings, np.random.default_rng(1)), counts)


def test_many_more_labels_of_a_small_class_hardly_change_the_counts():
    errors = []
    for seed in range(3):
        X, truth = documents(seed, 1000, 1000, 8.0)  # with as many features as texts have, many labels attract rows
        extra = np.isin(np.arange(truth.size), 40 + np.flatnonzero(truth[40:] == 2)[:40])
        y = np.where((np.arange(truth.size) < 40) | extra, truth, -1)
        engine, _, settings = prepared(X, y)
        true = np.bincount(truth[y < 0], minlength=8) / (y < 0).sum()
        counts = [count(engine, settings, np.random.default_rng(0)) for count in (balanced_counts, supervised_counts)]
        errors.append([np.abs(each / each.sum() - true).sum() for each in counts])
    balanced, all_labels = np.mean(errors, axis=0)
    assert balanced < 0.5 * all_labels


def test_labels_with_a_weight_of_zero_do_not_count():
    X, truth = documents(0)
    y = np.where(np.arange(truth.size) < 60, truth, -1)
    model = TransductiveClassifier(random_state=0)
    weights = ((np.arange(truth.size) < 40) | (y < 0)).astype(float)
    engine, _, _ = model._prepare(model._local_data(X, y, weights, None))
    counts = supervised_counts(engine, model._settings(), np.random.default_rng(0))
    np.testing.assert_array_equal(balanced_counts(engine, model._settings(), np.random.default_rng(1)), counts)


@pytest.mark.parametrize(("sampled", "is_refused"), [(None, True), (True, False)], ids=["not said", "said"])
def test_five_labels_of_each_class_and_random_ones_are_no_sample_unless_users_say_so(sampled, is_refused):
    for seed in range(3):
        X, truth = documents(seed)
        y = np.where(np.arange(truth.size) < 90, truth, -1)
        estimate, prior = first_estimate(*prepared(X, y, sampled))
        assert prior.sampled.any() != is_refused
        error, labeled = (
            np.abs(each - np.bincount(truth[90:], minlength=8) / truth[90:].size).sum()
            for each in (estimate.mean, np.bincount(truth[:90]) / 90)
        )
        assert (error < 0.5 * labeled) == is_refused


def test_two_classes_have_as_many_labels_in_a_subset():
    X, truth = documents(1, 1000, 1000, 8.0)
    truth = (truth == 2).astype(int)
    chosen = np.concatenate((np.flatnonzero(truth == 1)[:60], np.flatnonzero(truth == 0)[:12]))
    y = np.where(np.isin(np.arange(truth.size), chosen), truth, -1)
    engine, _, settings = prepared(X, y)
    found = [count(engine, settings, np.random.default_rng(0)) for count in (balanced_counts, supervised_counts)]
    true = np.bincount(truth[y < 0])
    balanced, all_labels = (abs(each[1] - true[1]) / true.sum() for each in found)
    assert balanced < 0.5 * all_labels


@pytest.mark.filterwarnings("ignore::transduce.errors.PriorWarning")  # says the same in words
@pytest.mark.parametrize(("sampled", "is_refused"), [(None, True), (True, False)])
def test_labels_that_contradict_exact_sizes_are_no_sample_unless_users_say_so(sampled, is_refused):
    X, truth = documents(0, 800)
    y = np.where(np.arange(truth.size) < 90, truth, -1)
    sizes = np.bincount(truth[y < 0], minlength=8)
    clf = TransductiveClassifier(annealing="paper", class_prior=sizes, estimate_accuracy=True, random_state=0)
    assert clf.fit(X, y, sampled=sampled)._contradicted == is_refused


def test_random_labels_are_a_sample():
    for seed in range(5):
        X, truth = documents(seed)
        X, truth = X[40:], truth[40:]
        _, prior = first_estimate(*prepared(X, np.where(np.arange(truth.size) < 90, truth, -1)))
        assert prior.sampled.all()


def test_labels_of_mixed_origin_are_fitted_as_if_users_said_that_they_are_no_sample():
    X, truth = documents(0, 800)
    y = np.where(np.arange(truth.size) < 90, truth, -1)
    models = [
        TransductiveClassifier(annealing="paper", random_state=0).fit(X, y, sampled=each) for each in (None, False)
    ]
    assert [model._contradicted for model in models] == [True, False]
    np.testing.assert_array_equal(models[0].size_estimate_.mean, models[1].size_estimate_.mean)
    np.testing.assert_array_equal(models[0].transduction_, models[1].transduction_)
