"""Learning curves: how the score on hidden labels grows with the number of labels that are left.

All sizes of a repeat are scored on the same rows, those hidden at the largest size, so that only the number of labels
differs along the curve.
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from transduce.errors import PriorWarning
from transduce.labels.missing import AUTO
from transduce.model_selection.hidden_labels import class_codes, find_certain, fit_hidden, parameter
from transduce.model_selection.scorers import labeled_scorer, take

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Numbers of labels (n_sizes,), and the score of each in each repeat (n_sizes, n_repeats)."""

    sizes: Array
    scores: Array
    scoring: str

    @property
    def mean(self) -> Array:
        """Mean over the repeats."""
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
    """Score an estimator with all but so many labels hidden, for each size; each class keeps at least one.

    Hidden rows stay in training as unlabelled ones; counts in class_prior are scaled as in TransductiveClassifierCV.
    In each repeat the labels of a smaller size are among those of a larger one. The estimator may be a pipeline, and
    scoring is as in TransductiveClassifierCV.

    >>> from transduce import TransductiveClassifier
    >>> from transduce.testing import blobs
    >>> X, truth, _ = blobs()
    >>> clf = TransductiveClassifier(annealing="paper", random_state=0)
    >>> curve = learning_curve(clf, X, truth, [4, 60], n_repeats=3, random_state=0)
    >>> curve.sizes, curve.scores.shape, bool(curve.mean[1] > curve.mean[0])
    (array([ 4, 60]), (2, 3), True)
    """
    reading = parameter(estimator, "unlabeled", AUTO), parameter(estimator, "taxonomy", None)
    values, labeled = find_certain(y, *reading)
    rows, (names, codes) = np.flatnonzero(labeled), class_codes(values[labeled])
    numbers = _check_sizes(sizes, len(names), codes.size)
    scorer = scoring if callable(scoring) else labeled_scorer(scoring, *reading)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    scores = np.empty((len(numbers), n_repeats))
    for repeat in range(n_repeats):
        order = rows[_in_order(codes, rng)]
        test = order[max(numbers) :]
        for i, size in enumerate(numbers):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PriorWarning)  # it would come at every size
                model = fit_hidden(estimator, X, values, order[size:])
            scores[i, repeat] = scorer(model, take(X, test), values[test])
    return LearningCurve(np.array(numbers), scores, scoring if isinstance(scoring, str) else "score")


def _in_order(codes: Array, rng: np.random.Generator) -> Array:
    """Rows as they are labelled one after the other: one of each class, then at random."""
    order = rng.permutation(codes.size)
    first = np.sort(np.unique(codes[order], return_index=True)[1])
    return np.concatenate((order[first], np.delete(order, first)))


def _check_sizes(sizes: Iterable[int], n_classes: int, n_labeled: int) -> list[int]:
    numbers = list(sizes) if isinstance(sizes, Iterable) else [sizes]
    for size in numbers:
        if not isinstance(size, Integral) or not n_classes <= size < n_labeled:
            raise ValueError(
                f"sizes must be whole numbers from {n_classes}, the classes, to {n_labeled - 1}, one label fewer than "
                f"there are, but hold {size!r}. Correct it, or label more rows."
            )
    if not numbers:
        raise ValueError("sizes must hold at least one number of labels, but are empty. Name some.")
    return [int(size) for size in numbers]
