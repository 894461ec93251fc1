"""Transport alone: probabilities of any classifier, moved to class sizes by one price for each class.

labels  = argmin_y Σ_i −log P[i, y_i]   with class sizes met,      new rows: argmax_k log P[k] + prices_k
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from transduce.arrays import Array
from transduce.class_prior.estimation import estimate_from_predictions
from transduce.class_prior.resolve import ResolvedPrior
from transduce.class_prior.spec import read_prior
from transduce.contract import LARGEST_FLOAT64, read_numbers
from transduce.label_step import Exact, LabelProblem
from transduce.labels.missing import is_missing
from transduce.suggest import name_list

SMALLEST = 1e-12
"""Probabilities below this count as this much, so that every label is possible."""


class MatchedLabels(NamedTuple):
    """Labels that meet the class sizes.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        Class of each row: its name, or its column if no names were given.
    prices : ndarray of shape (n_classes,)
        What to add to the log-probabilities of new rows, so that they are labelled as these were.
    gap : float
        Difference of the cost and its lower bound; 0 up to rounding, which proves that no labels are likelier.
    """

    labels: Array
    prices: Array
    gap: float


def match_class_sizes(proba: ArrayLike, class_prior: Any, classes: ArrayLike | None = None) -> MatchedLabels:
    """Find the likeliest labels that meet class sizes, given the probabilities of any classifier.

    Parameters
    ----------
    proba : array-like of shape (n_samples, n_classes)
        Probabilities of the classes, as `predict_proba` returns them.
    class_prior : array-like, dict or "equal"
        Class sizes, as in `TransductiveClassifier`: numbers of rows and "=20%" are met exactly, fractions roughly.
    classes : array-like of shape (n_classes,), default=None
        Names of the columns, usually `clf.classes_`; by default 0, 1, ...

    Returns
    -------
    MatchedLabels
        Labels, prices of the classes for new rows, and a certificate.

    Examples
    --------
    >>> proba = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]]
    >>> found = match_class_sizes(proba, {"ham": 2, "spam": 2}, classes=["ham", "spam"])
    >>> found.labels.tolist(), found.gap
    (['ham', 'ham', 'spam', 'spam'], 0.0)
    """
    P = read_numbers(proba, "proba", "a matrix of probabilities")
    if P.ndim != 2 or P.shape[1] < 2 or not len(P):
        raise ValueError(
            f"proba must have a row for each sample and a column for each class, at least two, but has shape {P.shape}."
        )
    if not np.all((P >= 0) & (P <= LARGEST_FLOAT64)) or not np.all(P.sum(axis=1) > 0):
        raise ValueError("proba must be 0 or more and finite, with a probability above 0 in each row. Correct it.")
    names = np.arange(P.shape[1]) if classes is None else np.asarray(classes)
    if names.shape != (P.shape[1],):
        raise ValueError(f"classes must name the {P.shape[1]} columns of proba, but have shape {names.shape}.")
    if len(set(names.tolist())) < names.size:
        raise ValueError(
            f"classes must have a name for each column, but some are the same: {name_list(names.tolist())}."
        )
    P = np.maximum(P / P.sum(axis=1, keepdims=True), SMALLEST)
    if class_prior is None or (isinstance(class_prior, str) and class_prior in ("estimate", "labeled")):
        raise ValueError(f"class_prior must state class sizes, but is {class_prior!r}. Pass sizes, or 'equal'.")
    prior = ResolvedPrior.create(read_prior(class_prior), names, np.zeros(0, np.int64), len(P))
    bounds = prior.bounds(estimate_from_predictions(P.sum(axis=0)))
    solution = Exact().solve(LabelProblem(-np.log(P), *bounds))
    return MatchedLabels(names[solution.labels], solution.prices, float(solution.gap))


class ClassSizeAdjuster(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Any classifier with probabilities, adjusted to class sizes, in the manner of `CalibratedClassifierCV`.

    Parameters
    ----------
    classifier : classifier or None, default=None
        Classifier with `predict_proba`, which `fit` clones; None for LogisticRegression.
    class_prior : array-like, dict or "equal", default="equal"
        Class sizes among the rows that will be predicted, as in `match_class_sizes`. Numbers of rows are those of
        `X_unlabeled`, or else of the training rows.

    Attributes
    ----------
    classifier_ : classifier
        Fitted clone of the classifier.
    classes_ : ndarray of shape (n_classes,)
        Names of the classes.
    prices_ : ndarray of shape (n_classes,)
        What is added to the log-probabilities.
    n_features_in_ : int
        Number of features, if the classifier knows it.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> model = ClassSizeAdjuster(LogisticRegression(), class_prior=[0.2, 0.8])
    >>> model = model.fit(X, y, X_unlabeled=[[0.9], [1.2]] * 50)
    >>> model.predict([[1.2]]).tolist(), model.classifier_.predict([[1.2]]).tolist()
    ([1], [0])
    """

    def __init__(self, classifier: Any = None, class_prior: Any = "equal") -> None:
        self.classifier = classifier
        self.class_prior = class_prior

    def fit(self, X: Any, y: Any, X_unlabeled: Any = None, **fit_params: Any) -> Self:
        """Fit the classifier, and find the prices at which its labels have the class sizes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Labelled rows.
        y : array-like of shape (n_samples,)
            Their labels.
        X_unlabeled : array-like of shape (n_unlabeled, n_features), default=None
            Rows whose classes have these sizes; the labelled rows if None.
        **fit_params : object
            Passed to `fit` of the classifier, such as `sample_weight`.

        Returns
        -------
        self : object
        """
        is_list = np.iterable(y) and getattr(y, "ndim", 1) == 1
        missing = [row for row, label in enumerate(y) if is_missing(label)] if is_list else []
        if missing:
            raise ValueError(
                f"y must have a label in every row, but row {missing[0]} has none. Pass such rows as X_unlabeled."
            )
        base = LogisticRegression() if self.classifier is None else self.classifier
        self.classifier_ = clone(base).fit(X, y, **fit_params)
        self.classes_ = self.classifier_.classes_
        if hasattr(self.classifier_, "n_features_in_"):
            self.n_features_in_ = self.classifier_.n_features_in_
        if hasattr(self.classifier_, "feature_names_in_"):
            self.feature_names_in_ = self.classifier_.feature_names_in_
        if len(self.classes_) < 2:
            raise ValueError("The number of classes has to be greater than one; got 1 class. Label another class.")
        proba = self.classifier_.predict_proba(X if X_unlabeled is None else X_unlabeled)
        self.prices_ = match_class_sizes(proba, self.class_prior, self.classes_).prices
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, with the prices added to their logarithms.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        logs = np.log(np.maximum(self.classifier_.predict_proba(X), SMALLEST)) + self.prices_
        shifted = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> Array:
        """Return the classes of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.classifier is None or get_tags(self.classifier).input_tags.sparse
        return tags
