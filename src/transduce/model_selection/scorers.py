"""Scorers that ignore unlabelled rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import f1_score
from sklearn.utils import _safe_indexing, indexable

from transduce.arrays import Array
from transduce.labels.classes import as_objects, warn_inner_nodes
from transduce.labels.encode import find_full_labels
from transduce.labels.missing import AUTO
from transduce.model_selection.hidden_labels import class_codes

Metric = Callable[[Any, Any], float]


def labeled_scorer(
    metric: str | Metric = "accuracy", unlabeled: object = AUTO, taxonomy: object = None
) -> "LabeledScorer":
    """Make a scorer that ignores unlabelled rows and partial labels.

    Parameters
    ----------
    metric : {"accuracy", "f1_macro", "f1_micro"} or callable, default="accuracy"
        Score; "f1_macro" is the mean over the classes of the labelled rows. A callable gets true and predicted labels.
    unlabeled : object, default="auto"
        As in TransductiveClassifier.
    taxonomy : object, default=None
        As in TransductiveClassifier.

    Returns
    -------
    LabeledScorer
        Scorer called as scorer(estimator, X, y).

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> X, y = np.eye(4), ["tea", "coffee", "", "coffee"]
    >>> model = DummyClassifier(strategy="constant", constant="coffee").fit(X, y)
    >>> round(labeled_scorer("accuracy")(model, X, y), 3), model.score(X, y)  # model.score counts "" as a class
    (0.667, 0.5)
    """
    if not callable(metric) and (not isinstance(metric, str) or metric not in METRICS):
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, or a function of two arrays, but is {metric!r}.")
    return LabeledScorer(metric, unlabeled, taxonomy)


@dataclass(frozen=True)
class LabeledScorer:
    """Scorer made by `labeled_scorer`, called as scorer(estimator, X, y).

    Parameters
    ----------
    metric, unlabeled, taxonomy
        See `labeled_scorer`.
    """

    metric: str | Metric
    unlabeled: object = AUTO
    taxonomy: object = None

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Return the score of the predictions for the labelled rows."""
        values, labeled = find_full_labels(y, self.unlabeled, self.taxonomy)
        if not labeled.any():
            raise ValueError("y has no labelled row to score. Pass the true labels.")
        if self.taxonomy is None:
            warn_inner_nodes(as_objects(values[labeled]))
        predicted = np.asarray(estimator.predict(take(X, labeled)))
        if callable(self.metric):
            return float(self.metric(values[labeled], predicted))
        truth, predicted = np.split(class_codes(values[labeled], predicted)[1], 2)
        return METRICS[self.metric](truth, predicted)


def take(X: Any, rows: Array) -> Any:
    """Select rows of an array, a sparse matrix, a data frame or a list by a mask or by indices."""
    return _safe_indexing(indexable(X)[0], rows)


def _accuracy(truth: Array, predicted: Array) -> float:
    return float(np.mean(truth == predicted))


def _f1_macro(truth: Array, predicted: Array) -> float:
    return float(f1_score(truth, predicted, labels=np.unique(truth), average="macro", zero_division=0.0))


METRICS: dict[str, Metric] = {"accuracy": _accuracy, "f1_macro": _f1_macro, "f1_micro": _accuracy}
"""Where every row has one label, the micro F is the accuracy."""
