"""From a class prior and the labels to bounds on the class counts of the rows to label."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import Bounds
from transduce.class_prior.proportions import labeled_proportions
from transduce.class_prior.stated_sizes import read_statement
from transduce.class_prior.statement import Statement
from transduce.taxonomy import Taxonomy

Array: TypeAlias = NDArray[Any]
IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]

SPREAD = 0.5
"""Half-width of ranges around labelled proportions, in standard deviations: narrow ranges label better."""


class ResolvedPrior(NamedTuple):
    """A class prior for the rows to label.

    stated          the class prior as the user wrote it
    bounds          bounds on the counts
    labeled_rows    (K,) labelled rows of each class
    labeled_weight  (K,) the same by weight
    statement       what is stated, in rows; None for "labeled" and "estimate"
    """

    stated: object
    bounds: Bounds
    labeled_rows: IntArray
    labeled_weight: FloatArray
    statement: Statement | None = None

    @classmethod
    def create(
        cls,
        stated: object,
        classes: Array,
        labels: IntArray,
        n_rows: int,
        weights: FloatArray | None,
        taxonomy: Taxonomy | None,
        forbidden: Array | None,
    ) -> "ResolvedPrior":
        """Resolve a prior for `n_rows` rows to label; for "estimate", the bounds are those of "labeled".

        classes (K,) are names, labels (l,) the class indices and weights (l,) the sample weights of the rows with a
        full label. Bounds from labels respect `forbidden` (m, K), and allow a class without labels to stay empty.

        >>> names, labels = np.array(["cocoa", "coffee", "tea"]), np.array([0, 1, 2])
        >>> stated = {"tea": 0.25, "coffee": (0.3, 0.5), "cocoa": None}
        >>> ResolvedPrior.create(stated, names, labels, 10, None, None, None).bounds[:2]
        (array([0, 3, 2]), array([10,  5,  3]))
        """
        rows, weight = np.bincount(labels, minlength=classes.size), labeled_counts(classes.size, labels, weights)
        if isinstance(stated, str) and stated in ("labeled", "estimate"):
            return cls(stated, _bounds_from_labels(weight, n_rows, forbidden), rows, weight)
        statement = read_statement(stated, classes, labels, n_rows, taxonomy)
        return cls(stated, statement.bounds(n_rows), rows, weight, statement)

    @property
    def is_estimated(self) -> bool:
        """Whether class sizes are estimated from all rows."""
        return isinstance(self.stated, str) and self.stated == "estimate"


def prior_bounds(
    class_prior: object,
    classes: Array,
    labels: IntArray,
    n_rows: int,
    weights: FloatArray | None = None,
    taxonomy: Taxonomy | None = None,
    forbidden: Array | None = None,
) -> Bounds:
    """Bounds on the class counts of the `n_rows` rows to label; see `ResolvedPrior.create`.

    >>> names, labels = np.array(["cocoa", "coffee", "tea"]), np.array([0, 1, 2])
    >>> prior_bounds({"coffee": 0.75, "tea": 0.25, "cocoa": 0}, names, labels, 8)[:2]
    (array([0, 6, 2]), array([0, 6, 2]))
    """
    return ResolvedPrior.create(class_prior, classes, labels, n_rows, weights, taxonomy, forbidden).bounds


def _bounds_from_labels(counts: FloatArray, n_rows: int, forbidden: Array | None) -> Bounds:
    """Ranges around the proportions of the labelled rows, of which each class has `counts` (K,)."""
    low, high = _around(counts, np.ones(counts.size, bool), n_rows, forbidden)
    seen = counts > 0
    if not np.all(seen):
        without = _around(counts, seen, n_rows, forbidden)
        low, high = np.where(seen, np.minimum(low, without[0]), 0), np.maximum(high, without[1])
    return Bounds(low, high)


def _around(
    counts: FloatArray, present: NDArray[np.bool_], n_rows: int, forbidden: Array | None
) -> tuple[IntArray, IntArray]:
    """Ranges around the labelled proportions if only the classes `present` have rows."""
    proportions, width = np.zeros(counts.size), np.zeros(counts.size)
    mean, deviation = labeled_proportions(counts[present])
    proportions[present], width[present] = mean, SPREAD * deviation / mean
    expected = expected_counts(proportions, n_rows, forbidden)
    low = np.floor(expected * np.maximum(1.0 - width, 0.0))
    high = np.minimum(np.ceil(expected * (1.0 + width)), n_rows)
    return low.astype(np.int64), high.astype(np.int64)


def expected_counts(proportions: FloatArray, n_rows: int, forbidden: Array | None) -> FloatArray:
    """Expected class counts when every row draws its label from the proportions, restricted to its allowed labels.

    Rows beyond those of `forbidden` may get any label. The whole numbers on both sides of the result are feasible.

    >>> forbidden = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0], [1, 1, 0]], dtype=bool)
    >>> expected_counts(np.array([0.25, 0.25, 0.5]), 4, forbidden)
    array([1.25, 1.25, 1.5 ])
    """
    if forbidden is None:
        return np.asarray(n_rows * proportions)
    each = np.where(forbidden, 0.0, np.maximum(proportions, np.finfo(np.float64).tiny))
    free = (n_rows - len(forbidden)) * proportions
    return np.asarray((each / each.sum(axis=1, keepdims=True)).sum(axis=0) + free)


def labeled_counts(n_classes: int, labels: IntArray, weights: FloatArray | None = None) -> FloatArray:
    """Labelled rows of each class (K,); weighted rows sum to their effective sample size, (Σw)² / Σw².

    >>> labeled_counts(2, np.array([0, 0, 1])), labeled_counts(2, np.array([0, 0, 1]), np.array([2.0, 2.0, 2.0]))
    (array([2., 1.]), array([2., 1.]))
    """
    if weights is None:
        return np.bincount(labels, minlength=n_classes).astype(np.float64)
    sums = np.bincount(labels, weights=weights, minlength=n_classes)
    return np.asarray(sums * weights.sum() / np.dot(weights, weights))
