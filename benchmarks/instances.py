"""Label problems of realistic shape: hinge costs of a linear classifier, counts a fifth off what it would give."""

from dataclasses import dataclass

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from transduce.class_prior.rounding import apportion
from transduce.datasets import load_clinc150
from transduce.losses import LargeMargin

UNIT = 1e-6
"""Costs are whole multiples of this, so that solvers for integers solve the very same problem."""


@dataclass(frozen=True, eq=False)
class Instance:
    """Costs and exact counts."""

    costs: np.ndarray
    counts: np.ndarray

    @property
    def shape(self) -> str:
        return f"{self.costs.shape[0]:>9,} x {self.costs.shape[1]:<4}"


def disturbed_counts(costs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Counts off the histogram of the cheapest labels by a fifth: half of the classes up, half of them down."""
    histogram = np.bincount(costs.argmin(axis=1), minlength=costs.shape[1])
    signs = rng.permutation(np.resize([-0.2, 0.2], histogram.size))
    return apportion((histogram + 1) * np.exp(signs), len(costs))


def synthetic(n: int, n_classes: int, seed: int = 0, dim: int = 64) -> Instance:
    """Gaussian classes of unequal size, scored by a least-squares classifier that saw few of the rows."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes, dim))
    sizes = rng.dirichlet(np.full(n_classes, 5.0))
    n_train = 40 * n_classes
    truth = rng.choice(n_classes, p=sizes, size=n)
    train = rng.choice(n_classes, size=n_train)
    X = 0.35 * centres[train] + rng.normal(size=(n_train, dim))
    W = np.linalg.solve(X.T @ X + np.eye(dim), X.T @ (2.0 * np.eye(n_classes)[train] - 1.0))
    costs = np.empty((n, n_classes))
    for begin in range(0, n, 50_000):
        part = slice(begin, begin + 50_000)
        features = 0.35 * centres[truth[part]] + rng.normal(size=(len(truth[part]), dim))
        costs[part] = np.rint(LargeMargin().label_costs(features @ W * 2.0) / UNIT) * UNIT
    return Instance(costs, disturbed_counts(costs, rng))


def corpus(level: int, n_labeled: int, seed: int = 0) -> Instance:
    """The built-in corpus: a LinearSVC trained on a few requests scores the others; level 1 domains, 2 intents."""
    texts, labels, _ = load_clinc150()
    _, y = np.unique(["/".join(label.split("/")[:level]) for label in labels], return_inverse=True)
    X = TfidfVectorizer(sublinear_tf=True).fit_transform(texts)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))
    one_of_each = rows[np.unique(y[rows], return_index=True)[1]]
    labeled = np.union1d(one_of_each, rows[:n_labeled])
    unlabeled = np.setdiff1d(rows, labeled)
    scores = LinearSVC(random_state=seed).fit(X[labeled], y[labeled]).decision_function(X[unlabeled])
    costs = np.rint(LargeMargin().label_costs(scores) / UNIT) * UNIT
    return Instance(costs, np.bincount(y[unlabeled], minlength=scores.shape[1]))
