"""Class sizes estimated from all rows: those of a first fit, whose own sizes come from the labels.

    n(y) = Σ_i p_i(y) over the unlabelled rows, rounded to whole numbers

Numbers of labels that are too equal to be a random sample say nothing about class sizes; the first fit then uses the
sizes that the supervised classifier predicts.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import Bounds
from transduce.class_prior.proportions import labeled_proportions
from transduce.class_prior.rounding import apportion

Array = NDArray[Any]


def bounds_from_labels(labeled_counts: Array, n_unlabeled: int) -> Bounds:
    """Exact counts in the proportions of the labels, smoothed."""
    return Bounds.exact(apportion(labeled_proportions(labeled_counts).mean, n_unlabeled))


def bounds_from_supervised(predicted_counts: Array, forbids: bool) -> Bounds:
    """Exact counts that the supervised classifier predicts; without forbidden labels, no class is left empty."""
    counts = predicted_counts
    if not forbids:
        counts = apportion((counts + 1) / (counts + 1).sum(), int(counts.sum()))
    return Bounds.exact(counts)


def bounds_from_posterior(proportions: Array, n_unlabeled: int, forbids: bool) -> Bounds:
    """Exact counts in these proportions; with forbidden labels, a range around each, which can always be met.

    >>> bounds_from_posterior(np.array([0.34, 0.66]), 10, forbids=False)[:2]
    (array([3, 7]), array([3, 7]))
    >>> bounds_from_posterior(np.array([0.34, 0.66]), 10, forbids=True)[:2]
    (array([3, 6]), array([4, 7]))
    """
    if not forbids:
        return Bounds.exact(apportion(proportions, n_unlabeled))
    expected = n_unlabeled * proportions
    return Bounds(np.floor(expected).astype(np.int64), np.ceil(expected).astype(np.int64))
