"""Estimated class sizes: closer than the labels, and independent of how many labels each class has."""

import warnings

import numpy as np
import pytest
from helpers.class_sizes import balanced_labels

from transduce import TransductiveClassifier
from transduce.class_prior.proportions import labeled_proportions
from transduce.errors import PriorWarning
from transduce.solvers import first_fit


def test_estimated_sizes_are_closer_than_labelled_proportions():
    errors = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        truth = rng.choice(3, 600, p=[0.6, 0.3, 0.1])
        X = 2.5 * np.eye(3)[truth] + rng.normal(0, 1, (600, 3))
        y = np.where(np.arange(600) < 25, truth, -1)
        if np.unique(y[:25]).size < 3:
            continue
        fractions = np.bincount(truth[25:], minlength=3) / 575
        model = TransductiveClassifier(class_prior="estimate", annealing="paper", random_state=0).fit(X, y)
        labeled = labeled_proportions(np.bincount(truth[:25], minlength=3)).mean
        errors.append([np.abs(each - fractions).sum() for each in (model.class_counts_ / 575, labeled)])
    estimated, labeled = np.mean(errors, axis=0)
    assert estimated < 0.9 * labeled


def test_equal_numbers_of_labels_do_not_decide_class_sizes():
    X, y, marked = balanced_labels(np.random.default_rng(1))
    counts = TransductiveClassifier(annealing="paper", random_state=0).fit(X, marked).class_counts_
    with pytest.warns(PriorWarning, match=r"class_prior='labeled' treats the labels.*Use class_prior='estimate'"):
        labeled = (
            TransductiveClassifier(class_prior="labeled", annealing="paper", random_state=0)
            .fit(X, marked)
            .class_counts_
        )
    truth = np.bincount(y[marked < 0])
    assert abs(counts[0] - truth[0]) < 40 < abs(labeled[0] - truth[0])


def test_the_default_prior_causes_no_warning_about_equal_numbers_of_labels():
    X, _, marked = balanced_labels(np.random.default_rng(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (
            TransductiveClassifier(annealing="paper", random_state=0).fit(X, marked).prior_diagnostics_.balanced_labels
        )


def test_estimates_from_balanced_labels_respect_partial_labels():
    X, y, marked = balanced_labels(np.random.default_rng(2))
    partial = [{0, 1} if k < 0 and row % 3 == 0 else k for row, k in enumerate(marked.tolist())]
    partial = [{1} if y[row] == 1 and row % 5 == 0 and k == -1 else k for row, k in enumerate(partial)]
    model = TransductiveClassifier(annealing="paper", random_state=0).fit(X, partial)
    assert model.class_counts_.sum() == sum(k == -1 or k == {0, 1} for k in partial)


def test_sample_weights_do_not_hide_balanced_labels(monkeypatch):
    X, _, marked = balanced_labels(np.random.default_rng(1))
    weights = np.where(marked == 0, 3.0, 1.0)
    model = TransductiveClassifier(annealing="paper", random_state=0).fit(X, marked, weights)
    assert model.prior_diagnostics_.balanced_labels
    first, bounds_from_supervised = [], first_fit.bounds_from_supervised

    def record(*args):
        first.append(bounds_from_supervised(*args).low)
        return bounds_from_supervised(*args)

    monkeypatch.setattr(first_fit, "bounds_from_supervised", record)
    TransductiveClassifier(annealing="paper", random_state=0).fit(X, marked, weights)
    supervised = TransductiveClassifier(random_state=0, price_shift=False)
    supervised.fit(X[marked >= 0], marked[marked >= 0], weights[marked >= 0])
    counts = np.bincount(supervised.predict(X[marked < 0]))
    assert np.abs(first[0] - counts).max() <= 0.02 * counts.sum()
