"""Problems whose labels say nothing about class sizes, and predictions for labels that were hidden."""

import numpy as np

from transduce.class_prior.estimation import HiddenLabels


def balanced_labels(rng, each=8):
    """Two overlapping classes of 40 and 400 rows with the same number of labels: rows, classes and labels."""
    y = np.repeat([0, 1], [40, 400])
    X = np.column_stack((2.0 * y - 1.0, np.ones(y.size))) + rng.normal(scale=0.7, size=(y.size, 2))
    marked = np.full(y.size, -1)
    for k in (0, 1):
        marked[rng.choice(np.flatnonzero(y == k), each, replace=False)] = k
    return X, y, marked


def simulated_predictions(rng, labels, sizes, right, n_unlabeled=2000):
    """Hidden labels as if by a classifier that finds this fraction of the classes and guesses the rest evenly.

    Also returns the class fractions of its unlabelled rows, which are drawn with these sizes.
    """
    truth = rng.choice(sizes.size, size=n_unlabeled, p=sizes)

    def predict(classes):
        guesses = np.where(rng.random(classes.size) < right, classes, rng.integers(sizes.size, size=classes.size))
        return 0.1 / sizes.size + 0.9 * np.eye(sizes.size)[guesses]

    predicted, unlabeled = predict(labels), predict(truth).mean(axis=0)
    hidden = HiddenLabels(labels, predicted, np.ones(labels.size, bool), unlabeled, n_unlabeled)
    return hidden, np.bincount(truth, minlength=sizes.size) / n_unlabeled
