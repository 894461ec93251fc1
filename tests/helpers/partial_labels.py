"""Rows of drinks in a tree of classes, and of three domains, some with partial labels."""

import numpy as np

from transduce import TransductiveClassifier

NAMES = ["hot/coffee", "hot/tea", "cold/juice", "cold/milk"]


def rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(4), n)
    return np.eye(4)[truth] + rng.normal(0, 0.4, (4 * n, 4)), truth


def labels(truth, entry):
    y = np.empty(truth.size, dtype=object)
    y[:] = ""
    for k in range(4):
        y[k * 40], y[k * 40 + 1] = NAMES[k], NAMES[k]
    y[5] = entry
    return y


TRIPS = np.array(["banking", "travel", "work"], dtype=object)


def trips(entry=None, n=30):
    truth = np.arange(n) % 3
    y = np.where(np.arange(n) < 7, TRIPS[truth], "").astype(object)
    if entry is not None:
        y[20:21] = np.fromiter([entry], dtype=object)
    return 2 * np.eye(3)[truth] + 0.2 * np.random.default_rng(0).normal(size=(n, 3)), y


def fit_trips(entry=None, **parameters):
    """Fit them; one cluster may be two classes, which takes many sweeps to a small tolerance."""
    return TransductiveClassifier(annealing="paper", tol=0.05, random_state=0, **parameters).fit(*trips(entry))
