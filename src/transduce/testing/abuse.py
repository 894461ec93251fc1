"""Checks with data that nobody expects: copies, constants, zeros, extreme scales and weights, and too few rows.

Whatever the data, a fit ends with a label for every row, finite scores and the given labels, or refuses the data with
one sentence. Each check runs on dense and sparse rows, in float32 and float64.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from transduce.arrays import Array
from transduce.testing.problems import N_ROWS, Trial, assert_value_error, true_counts

LARGE = {np.dtype(np.float32): 1e12, np.dtype(np.float64): 1e100}
"""Factors by which values and their squares stay within their type."""


def forms(X: Array) -> Iterator[Any]:
    """The same rows, dense and sparse, in float64 and float32."""
    for dtype in (np.float64, np.float32):
        yield X.astype(dtype)
        yield sparse.csr_matrix(X.astype(dtype))


def check_copies_of_a_few_rows(trial: Trial) -> None:
    """Copies of five rows are labelled, and the class counts are met."""
    for X in forms(trial.X[np.arange(N_ROWS) % 5]):
        model = _fit(trial, X, trial.y, class_prior=trial.counts)
        assert np.array_equal(true_counts(model.transduction_, trial.y), trial.counts)


def check_constant_rows(trial: Trial) -> None:
    """Rows that are all the same are labelled, and the class counts are met."""
    for X in forms(np.full(trial.X.shape, 0.25)):
        model = _fit(trial, X, trial.y, class_prior=trial.counts)
        assert np.array_equal(true_counts(model.transduction_, trial.y), trial.counts)


def check_zero_rows(trial: Trial) -> None:
    """Rows of zeros are labelled, and the class counts are met."""
    for X in forms(np.zeros(trial.X.shape)):
        model = _fit(trial, X, trial.y, class_prior=trial.counts)
        assert np.array_equal(true_counts(model.transduction_, trial.y), trial.counts)


def check_extreme_scales(trial: Trial) -> None:
    """Very large and very small values, also beside each other, give finite scores; at one scale, good labels."""
    for X in forms(trial.X):
        factor = LARGE[X.dtype]
        for scale in (factor, 1.0 / factor):
            model = _fit(trial, X * X.dtype.type(scale), trial.y, class_prior=trial.counts)
            assert np.mean(model.transduction_ == trial.truth) > 0.9
        columns = np.logspace(-np.log10(factor), np.log10(factor), trial.X.shape[1])
        rows = X.toarray() if sparse.issparse(X) else X
        _fit(trial, type(X)((rows * columns).astype(X.dtype)) if sparse.issparse(X) else rows * columns, trial.y)


def check_values_that_cannot_be_squared_are_refused(trial: Trial) -> None:
    """Values whose squares their type cannot hold raise ValueError with one line about X."""
    for X in forms(trial.X):
        for scale in (1e30, 1e-30) if X.dtype == np.float32 else (1e300, 1e-300):
            _assert_refused(trial, "X", X * X.dtype.type(scale), trial.y)


def check_places_of_values_that_are_not_finite(trial: Trial) -> None:
    """NaN and infinity in X raise ValueError with one line that has their place."""
    for value in (np.nan, np.inf, -np.inf):
        bad = trial.X.copy()
        bad[7, 3] = value
        for X in forms(bad):
            _assert_refused(trial, "[7, 3]", X, trial.y)


def check_weights_at_the_limits_of_floats(trial: Trial) -> None:
    """Equal weights of any size give the labels of none, mixed ones finite scores, and impossible ones ValueError."""
    for X in forms(trial.X):
        expected = _fit(trial, X, trial.y, class_prior=trial.counts)
        for weight in (1e300, 1e-300):
            model = _fit(trial, X, trial.y, np.full(N_ROWS, weight), class_prior=trial.counts)
            assert np.mean(model.transduction_ == expected.transduction_) > 0.97
        labeled = np.where(trial.y < 0, 1.0, np.logspace(-7, 7, N_ROWS))
        _fit(trial, X, trial.y, labeled, class_prior=trial.counts)
        for weights in (np.logspace(-300, 300, N_ROWS), np.full(N_ROWS, np.finfo(float).max)):
            _assert_refused(trial, "sample_weight", X, trial.y, weights)


def check_one_class(trial: Trial) -> None:
    """A single class gets all rows."""
    y = np.where(trial.y == 0, 0, -1)
    for X in forms(trial.X):
        assert not _fit(trial, X, y).transduction_.any()


def check_more_classes_than_rows(trial: Trial) -> None:
    """Classes without a labelled row, more than there are rows, leave every row with one of the classes."""
    y = np.full(6, -1)
    y[:2] = 0, 1
    names = dict.fromkeys(range(20))
    for X in forms(trial.X[:6]):
        model = _fit(trial, X, y, class_prior=names)
        assert model.classes_.tolist() == list(range(20))
        assert np.isin(model.transduction_, model.classes_).all()


def check_one_row(trial: Trial) -> None:
    """One labelled row is a fit of one class; one row without a label raises ValueError."""
    for X in forms(trial.X[:1]):
        assert _fit(trial, X, np.zeros(1, int)).transduction_.tolist() == [0]
        _assert_refused(trial, "label", X, np.full(1, -1))


def check_two_rows(trial: Trial) -> None:
    """Of two rows, one may be unlabelled, or each the only one of its class."""
    for X in forms(trial.X[:2]):
        assert _fit(trial, X, np.array([3, -1])).transduction_.tolist() == [3, 3]
        assert _fit(trial, X, np.array([3, 5])).transduction_.tolist() == [3, 5]


def _fit(trial: Trial, X: Any, y: Array, weights: Array | None = None, **parameters: Any) -> Any:
    """Fit a clone, and check what must hold whatever the data: scores are finite, and given labels are kept."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # hopeless data may take more rounds than there are
        model = trial.fit(X, y, weights, **parameters)
    scores = np.asarray(model.decision_function(X))
    assert scores.shape[0] == y.size
    assert np.isfinite(scores).all()
    assert np.array_equal(np.asarray(model.transduction_)[y >= 0], y[y >= 0])
    return model


def _assert_refused(trial: Trial, word: str, X: Any, y: Array, weights: Array | None = None) -> None:
    assert_value_error(trial, word, X=X, y=y, sample_weight=weights)
