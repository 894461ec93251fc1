"""Prediction with fitted weights, which all estimators share: scores, probabilities, classes and the accuracy."""

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from transduce.arrays import Array
from transduce.contract import check_labeled_weight, check_sample_weight, read_rows
from transduce.engines.common import Calibration, best_scores
from transduce.engines.device.arrays import Arrays, is_on_device, to_host
from transduce.engines.device.engine import linear_scores, predict_probabilities
from transduce.errors import LabelError, LabelErrorKind
from transduce.labels.classes import as_objects, with_none
from transduce.labels.encode import find_full_labels
from transduce.losses import Loss
from transduce.taxonomy import Taxonomy


class LinearPredictor(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose scores are X @ coef_.T + intercept_, and whose loss may turn scores into probabilities."""

    taxonomy: object
    unlabeled: object
    classes_: Array
    taxonomy_: Taxonomy
    n_features_in_: int
    coef_: Array
    intercept_: Array
    calibration_: Calibration
    outlier_score_: float | None
    transduction_: Any

    @abstractmethod
    def _loss(self) -> Loss:
        """Return the loss."""

    def _set_weights(self, W: Array, constant: float) -> None:
        """Set `coef_` and `intercept_` from weights of the nodes; unless it is 0, the last row is for this constant."""
        if not self.taxonomy_.is_flat:
            W = np.asarray(sparse.csr_matrix(self.taxonomy_.paths, dtype=W.dtype) @ W.T).T
        if W.shape[1] == 2:
            W = W[:, 1:] - W[:, :1]
        self.coef_ = np.ascontiguousarray(W[: self.n_features_in_].T)
        self.intercept_ = constant * W[-1] if constant else np.zeros(W.shape[1], W.dtype)

    def decision_function(self, X: Any) -> Array:
        """Return the scores of the classes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        scores : array of shape (n_samples, n_classes), or (n_samples,) for two classes
            For two classes, scores in favour of the second.
        """
        check_is_fitted(self)
        if is_on_device(self.coef_):
            found = linear_scores(X, self.coef_, self.intercept_)
            return found[:, 0] if len(self.classes_) == 2 else found  # type: ignore[no-any-return]
        X = read_rows(X, self, reset=False)
        scores: Array = np.asarray(X @ self.coef_.T) + self.intercept_
        return scores.ravel() if len(self.classes_) == 2 else scores

    @available_if(lambda self: hasattr(self._loss(), "posterior"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes; only for losses that have them, such as maxent.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
        """
        scores = self.decision_function(X)
        if is_on_device(scores):
            return predict_probabilities(self._loss(), scores, self.calibration_)  # type: ignore[no-any-return]
        if scores.ndim == 1:
            scores = np.column_stack((np.zeros_like(scores), scores))
        return np.asarray(self.calibration_.probabilities(self._loss(), scores))

    def predict(self, X: Any) -> Array:
        """Return the class with the best score for each row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        labels : array of shape (n_samples,)
            With `outlier_fraction`, rows whose best score is below `outlier_score_` have none, marked as in y.
        """
        scores = to_host(self.decision_function(X))
        best = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        if self.outlier_score_ is None:
            found = np.asarray(self.classes_[best])
            return Arrays.of(self.coef_).copied(found) if is_on_device(getattr(self, "transduction_", None)) else found
        fits = best_scores(scores) >= self.outlier_score_
        return np.asarray(with_none(self.classes_)[np.where(fits, best, len(self.classes_))])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on the rows of y with a full label; other rows are ignored.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            True labels, as in `fit`.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        accuracy : float
        """
        labels, weights = (to_host(values) if is_on_device(values) else values for values in (y, sample_weight))
        return self._accuracy(to_host(self.predict(X)), labels, weights)

    def _accuracy(self, predicted: Array, y: Any, sample_weight: Any) -> float:
        values, labeled = find_full_labels(y, self.unlabeled, self.taxonomy, self.classes_.tolist())
        if values.size != len(predicted):
            raise LabelError(LabelErrorKind.LENGTH, n_rows=len(predicted), n_labels=values.size)
        if not labeled.any():
            raise ValueError("y must label at least one row to be scored, but every row is unlabelled. Pass the truth.")
        pairs = zip(predicted[labeled].tolist(), as_objects(values[labeled]), strict=True)
        correct = np.array([guess == truth for guess, truth in pairs], dtype=np.float64)
        weights = check_sample_weight(sample_weight, values.size)
        weights = None if weights is None else weights[labeled]
        check_labeled_weight(weights)
        return float(np.average(correct, weights=weights))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
