"""The public checks can fail: an estimator that gets everything wrong passes none of them."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin

from transduce.testing import ABUSE_CHECKS, SEMI_SUPERVISED_CHECKS, blobs, labels_as, true_counts

RNG = np.random.default_rng(0)


class Wrong(ClassifierMixin, BaseEstimator):
    """Random labels, weights and scores, at each call others; the data are modified, and nothing is refused."""

    coef_ = None

    def __init__(self, class_prior=None, taxonomy=None, random_state=None, unlabeled=-1, tol=1e-3, max_iter=10):
        self.class_prior, self.taxonomy, self.random_state = class_prior, taxonomy, random_state
        self.unlabeled, self.tol, self.max_iter = unlabeled, tol, max_iter

    def fit(self, X, y, sample_weight=None):
        if sparse.issparse(X):
            X.data += 1.0
        self.classes_ = np.array([9])
        self.transduction_ = RNG.choice(3, len(y), p=[0.05, 0.05, 0.9])
        self.coef_ = RNG.normal(size=(3, X.shape[1]))
        self.history_ = [SimpleNamespace(restart=-number) for number in range(3)]
        return self

    def decision_function(self, X):
        scores = RNG.normal(size=(X.shape[0], 3))
        scores[0, 0] = np.inf
        return scores

    def predict(self, X):
        return np.zeros(1)


EVERY_CHECK = [*SEMI_SUPERVISED_CHECKS, *ABUSE_CHECKS]


@pytest.mark.parametrize("check", EVERY_CHECK, ids=lambda check: check.__name__)
def test_a_wrong_estimator_fails(check):
    with pytest.raises(AssertionError):
        check(Wrong())


def test_every_check_has_a_name_of_its_own_and_a_description():
    names = [check.__name__ for check in EVERY_CHECK]
    assert len(set(names)) == len(names)
    assert all(check.__doc__ for check in EVERY_CHECK)


def test_the_problem_has_four_labels_of_each_class_and_known_counts():
    X, truth, y = blobs()
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0)
    assert np.bincount(y[y >= 0]).tolist() == [4, 4, 4]
    assert np.array_equal(y[y >= 0], truth[y >= 0])
    assert (true_counts(truth, y) + 4).tolist() == np.bincount(truth).tolist() == [60, 40, 20]
    names = labels_as(y, None)
    assert [name is None for name in names] == (y < 0).tolist()
