"""Scores on the labelled rows: an unlabelled row has no truth to compare with, and is never taken for a class."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score

from transduce.labels.missing import AUTO
from transduce.labels.similar_names import warn_inner_nodes
from transduce.model_selection.hidden_labels import class_codes, find_certain

Array = NDArray[Any]
Metric = Callable[[Any, Any], float]


def labeled_scorer(
    metric: str | Metric = "accuracy", unlabeled: object = AUTO, taxonomy: object = None
) -> "LabeledScorer":
    """Make a scorer, called as scorer(estimator, X, y), that looks at the labelled rows of y only.

    metric is "accuracy", "f1_macro" (the mean over the classes of the labelled rows), "f1_micro", or a function of the
    true and the predicted labels. unlabeled and taxonomy say how y is to be read, as for TransductiveClassifier.

    >>> from sklearn.dummy import DummyClassifier
    >>> X, y = np.eye(4), ["tea", "coffee", "", "coffee"]
    >>> model = DummyClassifier(strategy="constant", constant="coffee").fit(X, y)
    >>> round(labeled_scorer("accuracy")(model, X, y), 3), model.score(X, y)  # the latter counts "" as a class
    (0.667, 0.5)
    """
    if not callable(metric) and (not isinstance(metric, str) or metric not in METRICS):
        raise ValueError(
            f"metric must be one of {', '.join(METRICS)}, or a function of truth and prediction, but is {metric!r}."
        )
    return LabeledScorer(metric, unlabeled, taxonomy)


@dataclass(frozen=True)
class LabeledScorer:
    """What `labeled_scorer` returns."""

    metric: str | Metric
    unlabeled: object = AUTO
    taxonomy: object = None

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Score the estimator's predictions for the labelled rows."""
        values, labeled = find_certain(y, self.unlabeled, self.taxonomy)
        if not labeled.any():
            raise ValueError("y must label at least one row to be scored, but every row is unlabelled. Pass the truth.")
        if self.taxonomy is None:
            warn_inner_nodes(class_codes(values[labeled])[0])
        predicted = np.asarray(estimator.predict(take(X, labeled)))
        if callable(self.metric):
            return float(self.metric(values[labeled], predicted))
        truth, guesses = np.split(class_codes(values[labeled], predicted)[1], 2)
        return METRICS[self.metric](truth, guesses)


def take(X: Any, rows: Array) -> Any:
    """Rows of X (a mask or indices), be it an array, a sparse matrix, a data frame or a list.

    >>> take(["one text", "another"], np.array([1]))
    ['another']
    """
    picked = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
    if hasattr(X, "iloc"):
        return X.iloc[picked]
    if hasattr(X, "tocsr"):
        return X.tocsr()[picked]
    if hasattr(X, "__array__"):
        return np.asarray(X)[picked]
    return [X[row] for row in picked]


def _accuracy(truth: Array, predicted: Array) -> float:
    return float(np.mean(truth == predicted))


def _f1_macro(truth: Array, predicted: Array) -> float:
    return float(f1_score(truth, predicted, labels=np.unique(truth), average="macro", zero_division=0.0))


METRICS: Mapping[str, Callable[[Array, Array], float]] = {
    "accuracy": _accuracy,
    "f1_macro": _f1_macro,
    "f1_micro": _accuracy,  # the same number when every row has one label
}
