"""Learning curves: the score on hidden rows against the number of labels."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from transduce.arrays import Array
from transduce.errors import PriorWarning
from transduce.labels.encode import find_full_labels
from transduce.model_selection.hidden_labels import class_codes, fit_hidden, label_parameters
from transduce.model_selection.scorers import labeled_scorer, take
from transduce.suggest import short_repr
from transduce.validation import has_methods, random_generator


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Result of `learning_curve`.

    Attributes
    ----------
    sizes : ndarray of shape (n_sizes,)
        Numbers of labels.
    scores : ndarray of shape (n_sizes, n_repeats)
        Score of each size in each repeat.
    scoring : str
        Name of the score.
    mean, std : ndarray of shape (n_sizes,)
        Mean and standard deviation over the repeats.
    """

    sizes: Array
    scores: Array
    scoring: str

    @property
    def mean(self) -> Array:
        """Mean score over the repeats."""
        return np.asarray(self.scores.mean(axis=1))

    @property
    def std(self) -> Array:
        """Standard deviation over the repeats."""
        return np.asarray(self.scores.std(axis=1))


def learning_curve(
    estimator: Any,
    X: Any,
    y: Any,
    sizes: Iterable[int],
    *,
    n_repeats: int = 5,
    scoring: Any = "f1_macro",
    random_state: object = None,
) -> LearningCurve:
    """Score an estimator trained with given numbers of labels, with the other labels hidden.

    Hidden rows stay in training as unlabelled rows; counts in class_prior are scaled as in TransductiveClassifierCV.
    Every class has at least one label. The labels of a smaller size are a subset of those of a larger one. All sizes
    of a repeat are scored on the same rows, those hidden at the largest size.

    Parameters
    ----------
    estimator : estimator
        Classifier of this package, or a pipeline that ends in one.
    X, y : array-like
        Rows and their labels, as in TransductiveClassifier; rows may be unlabelled.
    sizes : iterable of int
        Numbers of labels to train with, at least the number of classes and fewer than there are labels.
    n_repeats : int, default=5
        Number of random choices of the labels.
    scoring : {"f1_macro", "accuracy", "f1_micro"} or callable, default="f1_macro"
        As in TransductiveClassifierCV.
    random_state : int, RandomState or None, default=None
        Seed of the choices.

    Returns
    -------
    LearningCurve

    Examples
    --------
    >>> from transduce import TransductiveClassifier
    >>> from transduce.testing import blobs
    >>> X, truth, _ = blobs()
    >>> clf = TransductiveClassifier(annealing="paper", random_state=0)
    >>> curve = learning_curve(clf, X, truth, [4, 60], n_repeats=3, random_state=0)
    >>> curve.sizes, curve.scores.shape, bool(curve.mean[1] > curve.mean[0])
    (array([ 4, 60]), (2, 3), True)
    """
    if not has_methods(estimator, "fit", "get_params"):
        raise TypeError(f"estimator must be a classifier, but is {short_repr(estimator)}. Pass one that is not fitted.")
    if not isinstance(n_repeats, Integral) or n_repeats < 1:
        raise ValueError(f"n_repeats must be a whole number, 1 or more, but is {short_repr(n_repeats)}.")
    unlabeled, taxonomy = label_parameters(estimator)
    values, labeled = find_full_labels(y, unlabeled, taxonomy)
    rows, (names, codes) = np.flatnonzero(labeled), class_codes(values[labeled])
    numbers = _check_sizes(sizes, len(names), codes.size)
    scorer = scoring if callable(scoring) else labeled_scorer(scoring, unlabeled, taxonomy)
    rng = np.random.default_rng(random_generator(random_state).randint(2**31 - 1))
    scores = np.empty((len(numbers), n_repeats))
    for repeat in range(n_repeats):
        order = rows[_labeling_order(codes, rng)]
        test = order[max(numbers) :]
        for i, size in enumerate(numbers):
            with warnings.catch_warnings(action="ignore", category=PriorWarning):  # it would be repeated at every size
                model = fit_hidden(estimator, X, values, order[size:])
            scores[i, repeat] = scorer(model, take(X, test), values[test])
    return LearningCurve(np.array(numbers), scores, scoring if isinstance(scoring, str) else "score")


def _labeling_order(codes: Array, rng: np.random.Generator) -> Array:
    """Return a random order in which the first row of every class comes before all others."""
    order = rng.permutation(codes.size)
    first = np.sort(np.unique(codes[order], return_index=True)[1])
    return np.concatenate((order[first], np.delete(order, first)))


def _check_sizes(sizes: Iterable[int], n_classes: int, n_labeled: int) -> list[int]:
    numbers = list(sizes) if isinstance(sizes, Iterable) else [sizes]
    for size in numbers:
        if not isinstance(size, Integral) or not n_classes <= size < n_labeled:
            limits = f"{n_classes}, the number of classes, to {n_labeled - 1}, one fewer than the labels"
            found = f"contain {size!r}. Change it, or label more rows."
            raise ValueError(f"sizes must be integers from {limits}, but {found}")
    if not numbers:
        raise ValueError("sizes is empty. Pass at least one number of labels.")
    return [int(size) for size in numbers]
