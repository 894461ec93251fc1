"""Rows in three classes and a classifier for them, quick enough to be fitted many times."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from transduce import TransductiveClassifier


def rows(n=120, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1, 2], [n // 2, n // 3, n - n // 2 - n // 3])
    X = 1.2 * np.eye(3, 30)[truth] + rng.normal(scale=0.4, size=(n, 30))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.full(n, "", dtype=object)
    for k, name in enumerate(("a/x", "a/y", "b")):
        y[np.flatnonzero(truth == k)[: 5 + k]] = name
    return sparse.csr_matrix(X), y


def model(folder=None, **parameters):
    return TransductiveClassifier(**{"random_state": 3, "n_jobs": 1, "checkpoint": folder, **parameters})


FITTED = ("coef_", "intercept_", "transduction_", "prices_", "objective_", "label_distributions_", "class_counts_")


@dataclass(frozen=True)
class SquaredDistance:
    """A user's smooth loss: the squared distance of the scores from `far` for the label and 0 for others."""

    far: float = 1.0

    def label_costs(self, scores):
        scores = np.asarray(scores)
        return (scores**2).sum(axis=1, keepdims=True) - 2.0 * self.far * scores + self.far**2

    def value(self, scores, labels):
        return self.label_costs(scores)[np.arange(len(labels)), labels]

    def gradient(self, scores, labels):
        return 2.0 * (scores - self.far * np.eye(scores.shape[1], dtype=scores.dtype)[labels])


def assert_same_fit(one, other):
    for name in FITTED:
        np.testing.assert_array_equal(getattr(one, name, None), getattr(other, name, None), err_msg=name)
    assert [row.objective for row in one.history_] == [row.objective for row in other.history_]
    assert [(row.restart, row.stage) for row in one.history_] == [(row.restart, row.stage) for row in other.history_]
