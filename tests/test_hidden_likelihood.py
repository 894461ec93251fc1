"""The likelihood of hidden labels: a score of features and parameters that needs no further labels."""

import numpy as np
import pytest

from transduce import TransductiveClassifier
from transduce.baselines import EntropyRegularizedClassifier


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    truth = np.arange(120) % 2
    X = np.column_stack((2.0 * truth - 1, np.zeros(120))) + 0.4 * rng.normal(size=(120, 2))
    return X, truth, np.where(np.arange(120) < 30, truth, -1)


@pytest.mark.parametrize(
    "estimator", [TransductiveClassifier(random_state=0), EntropyRegularizedClassifier(random_state=0)]
)
def test_better_features_are_likelier_and_nothing_is_fitted(rows, estimator):
    X, _, y = rows
    noise = np.random.default_rng(2).normal(size=X.shape)
    before = dict(vars(estimator))
    good, bad = (estimator.hidden_log_likelihood(features, y) for features in (X, noise))
    assert bad < good < 0
    assert good > np.log(0.6) > bad
    assert vars(estimator) == before
    assert estimator.hidden_log_likelihood(X, y) == good


def test_it_is_that_of_the_hidden_labels_of_a_fit(rows):
    X, _, y = rows
    clf = TransductiveClassifier(random_state=0).fit(X, y)
    hidden = clf._hidden
    chosen = hidden.predicted[np.arange(hidden.labels.size), hidden.labels][hidden.was_hidden]
    assert clf.hidden_log_likelihood(X, y) == pytest.approx(np.log(chosen).mean())


def test_without_two_labels_of_a_class_there_is_none(rows):
    X, truth, _ = rows
    assert np.isnan(TransductiveClassifier().hidden_log_likelihood(X, np.where(np.arange(120) < 2, truth, -1)))


def test_without_unlabelled_rows_there_is_none(rows):
    X, truth, _ = rows
    assert np.isnan(TransductiveClassifier().hidden_log_likelihood(X, truth))
