"""A problem whose labels say nothing about class sizes."""

import numpy as np


def balanced_labels(rng, each=8):
    """Two overlapping classes of 40 and 400 rows with the same number of labels: rows, classes and labels."""
    y = np.repeat([0, 1], [40, 400])
    X = np.column_stack((2.0 * y - 1.0, np.ones(y.size))) + rng.normal(scale=0.7, size=(y.size, 2))
    marked = np.full(y.size, -1)
    for k in (0, 1):
        marked[rng.choice(np.flatnonzero(y == k), each, replace=False)] = k
    return X, y, marked
