"""The small problem that the checks use, and helpers to fit it."""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone

from transduce.arrays import Array
from transduce.errors import PriorWarning

Check: TypeAlias = Callable[[Any], None]

N_ROWS, N_CLASSES = 120, 3


def blobs(seed: int = 0) -> tuple[Array, Array, Array]:
    """Generate an easy problem: 120 rows around three centres, of which four rows of each class are labelled.

    Parameters
    ----------
    seed : int, default=0
        Seed of the rows and of their order.

    Returns
    -------
    X, truth, y : ndarrays of shape (120, 8), (120,) and (120,)
        Rows of unit length, their classes 0 to 2 (60, 40 and 20 rows), and their labels, -1 for unlabelled rows.
    """
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat(np.arange(N_CLASSES), [60, 40, 20]))
    X = 1.2 * np.eye(N_CLASSES, 8)[truth] + rng.normal(scale=0.35, size=(N_ROWS, 8))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.full(N_ROWS, -1)
    for k in range(N_CLASSES):
        y[np.flatnonzero(truth == k)[:4]] = k
    return X, truth, y


def true_counts(truth: Array, y: Array) -> Array:
    """Return the class counts of the unlabelled rows.

    Parameters
    ----------
    truth, y : ndarray of shape (n_rows,)
        Classes of the rows, and labels with -1 for unlabelled rows, as from `blobs`.

    Returns
    -------
    ndarray of shape (3,)
    """
    return np.bincount(truth[y < 0], minlength=N_CLASSES)


def labels_as(y: Array, missing: object) -> Array:
    """Return y as objects: "class 0", "class 1", ...

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        Labels, -1 for unlabelled rows.
    missing : object
        Entry of unlabelled rows.

    Returns
    -------
    ndarray of objects, shape (n_rows,)
    """
    values = np.empty(y.size, dtype=object)
    values[:] = [missing if label < 0 else f"class {label}" for label in y]
    return values


def fitted(estimator: Any, X: Any, y: Any, sample_weight: Any = None, **parameters: Any) -> Any:
    """Fit a clone with `random_state=0`, ignoring warnings about the class prior.

    Parameters
    ----------
    estimator : estimator
        Classifier, which stays as it is.
    X, y : array-like
        Rows and labels.
    sample_weight : array-like, default=None
        Weights of the rows.
    **parameters : object
        Other parameters to set.

    Returns
    -------
    estimator
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return clone(estimator).set_params(random_state=0, **parameters).fit(X, y, **weights)


class Trial:
    """An estimator to be checked, the small problem, and the class counts of its unlabelled rows."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self.X, self.truth, self.y = blobs()
        self.counts = true_counts(self.truth, self.y)

    def clone(self, **parameters: Any) -> Any:
        """Clone the estimator, with `random_state=0` and these parameters."""
        return clone(self.estimator).set_params(random_state=0, **parameters)

    def fit(self, X: Any = None, y: Any = None, sample_weight: Any = None, **parameters: Any) -> Any:
        """Fit a clone to the problem, or to other rows or labels, with or without weights."""
        X, y = self.X if X is None else X, self.y if y is None else y
        return fitted(self.estimator, X, y, sample_weight, **parameters)

    def fit_with_counts(self) -> Any:
        """Fit a clone to the problem with the true class counts, which costs less than estimating them."""
        return self.fit(class_prior=self.counts)


def as_check(function: Callable[[Trial], None]) -> Check:
    """Make a check of estimators from one of trials."""

    @wraps(function)
    def check(estimator: Any) -> None:
        function(Trial(estimator))

    return check


def assert_same_labels(one: Any, other: Any) -> None:
    """Assert that two models gave the training rows the same labels."""
    assert np.array_equal(one.transduction_, other.transduction_)


def assert_value_error(trial: Trial, word: str, **arguments: Any) -> None:
    """Assert that a fit raises ValueError with a message of one line that contains a word."""
    try:
        trial.fit(**arguments)
    except ValueError as error:
        message = str(error)
    else:
        raise AssertionError(f"expected a ValueError about {word}")
    assert word in message, f"expected {word!r} in {message!r}"
    assert "\n" not in message
