"""Centring and scaling of dense rows as a scikit-learn transformer."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from transduce.arrays import Array
from transduce.contract import check_finite, check_matrix, texts_explained
from transduce.features.centering import center_and_scale, mean_of_rows


class CenteredNormalizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Subtract the mean of all rows, then scale each row to length 1.

    Fit it on all rows, labelled or not. Dense rows only; float32 and float64 are kept.

    Parameters
    ----------
    copy : bool, default=True
        False changes the rows in place where that is possible.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the rows that are not all zeros.
    n_features_in_ : int
        Number of columns seen during fit.

    Examples
    --------
    >>> from transduce.features import CenteredNormalizer
    >>> rows = CenteredNormalizer().fit_transform([[9.0, 1.0], [3.0, 1.0], [9.0, 9.0], [3.0, 9.0], [0.0, 0.0]])
    >>> rows.round(1).tolist()
    [[0.6, -0.8], [-0.6, -0.8], [0.6, 0.8], [-0.6, 0.8], [0.0, 0.0]]
    """

    def __init__(self, *, copy: bool = True) -> None:
        self.copy = copy

    def fit(self, X: Any, y: Any = None) -> "CenteredNormalizer":
        """Compute the mean.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Dense rows.
        y : object, default=None
            Ignored.

        Returns
        -------
        CenteredNormalizer
            Itself.
        """
        X = self._read(X)
        self.mean_ = mean_of_rows(X)
        return self

    def _read(self, X: Any, **options: Any) -> Array:
        """Return rows as an array of finite numbers."""
        check_matrix(X)
        with texts_explained(X):
            rows: Array = validate_data(self, X, dtype=(np.float64, np.float32), ensure_all_finite=False, **options)
        check_finite(rows)
        return rows

    def transform(self, X: Any) -> Array:
        """Centre and scale rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Dense rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Rows of length 1, or of zeros.
        """
        check_is_fitted(self)
        rows = self._read(X, reset=False, copy=self.copy, force_writeable=True)
        center_and_scale(rows, self.mean_)
        return rows
