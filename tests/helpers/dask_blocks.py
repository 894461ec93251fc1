"""Rows in blocks, and comparisons of fits over them."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy import sparse


def make_rows(seed=0, n=240, n_classes=4, dtype=np.float64):
    """Rows of overlapping classes, and their true labels."""
    rng = np.random.default_rng(seed)
    truth = np.concatenate((np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)))
    X = 1.3 * rng.normal(size=(n_classes, 12))[truth] + rng.normal(size=(n, 12))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X[rng.random(X.shape) < 0.3] = 0.0
    order = rng.permutation(n)
    return sparse.csr_matrix(X[order].astype(dtype)), truth[order]


def hide_most(truth, n_labeled=24, seed=0):
    """Labels of a few rows, some of each class; -1 for the others."""
    rng = np.random.default_rng(seed)
    known = np.concatenate([np.flatnonzero(truth == k)[:2] for k in np.unique(truth)])
    known = np.union1d(known, rng.choice(truth.size, n_labeled, replace=False))
    y = np.full(truth.size, -1)
    y[known] = truth[known]
    return y


def split(things, ends):
    """Blocks that end at these rows."""
    bounds = [0, *ends, things.shape[0]]
    return [things[a:b] for a, b in pairwise(bounds)]


def history_without_times(clf):
    return [replace(row, seconds=0.0) for row in clf.history_]


def fetch(blocks):
    return [block.result() if hasattr(block, "result") else block for block in blocks]


def assert_equal_fits(clf, expected):
    """The same result, bit for bit."""
    assert np.array_equal(clf.coef_, expected.coef_)
    assert np.array_equal(clf.prices_, expected.prices_)
    assert clf.objective_ == expected.objective_
    assert history_without_times(clf) == history_without_times(expected)
    assert all(map(np.array_equal, fetch(clf.transduction_), fetch(expected.transduction_)))
    assert all(map(np.array_equal, fetch(clf.label_distributions_), fetch(expected.label_distributions_)))


X, TRUTH = make_rows()
Y = hide_most(TRUTH)
ENDS = (60, 99, 170)
BLOCKS = split(X, ENDS), split(Y, ENDS)
"""Four blocks of rows and of labels."""
QUICK = {"alpha": 1e-2, "tol": 1e-2, "annealing": "paper", "class_prior": "labeled", "random_state": 3}
"""A fit of these blocks that takes few rounds."""


def row_block(b):
    return BLOCKS[0][b]


def label_block(b):
    return BLOCKS[1][b]
