"""Class counts from class proportions by largest remainder.

Proportions φ become counts floor(φ_k n), plus one for the classes with the largest remainders until the counts sum to
n. Equal remainders go to the class that comes first, so the same proportions always give the same counts.
"""

from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from transduce.arrays import FloatArray, IntArray
from transduce.contract import read_numbers
from transduce.suggest import short_repr

SUM_TOLERANCE = 1e-6
"""Fractions whose sum differs from 1 by more are not fractions of one whole."""
_TIE_DECIMALS = 9


def counts_from_fractions(fractions: ArrayLike, n_rows: int) -> IntArray:
    """Round class fractions to counts that sum to `n_rows`, by largest remainder.

    Parameters
    ----------
    fractions : array-like of shape (K,)
        One number for each class, 0 or more; they sum to 1.
    n_rows : int
        The sum of the counts.

    Returns
    -------
    ndarray of shape (K,)
        Whole numbers, each less than 1 away from its fraction of `n_rows`.

    Examples
    --------
    >>> counts_from_fractions([0.5, 0.25, 0.25], 10)
    array([5, 3, 2])
    """
    fractions = read_numbers(fractions, "fractions", "a list with one number for each class")
    if fractions.ndim != 1 or fractions.size == 0:
        raise ValueError(f"fractions must be a list with one number for each class, but have shape {fractions.shape}.")
    bad = ~(np.isfinite(fractions) & (fractions >= 0))
    if bad.any():
        k = int(np.argmax(bad))
        raise ValueError(f"fractions must be 0 or more, but class {k} has {fractions[k]}. Use 0 for an empty class.")
    if abs(fractions.sum() - 1.0) > SUM_TOLERANCE:
        raise ValueError(
            f"fractions must sum to 1, but sum to {fractions.sum():.6g}. Divide them by their sum, or pass counts."
        )
    return apportion(fractions, n_rows)


def apportion(weights: ArrayLike, n_rows: int) -> IntArray:
    """Divide `n_rows` in proportion to `weights` (0 or more, not all 0), by largest remainder.

    >>> apportion([3, 3, 3], 10)
    array([4, 3, 3])
    """
    weights = np.asarray(weights, dtype=np.float64)
    if not isinstance(n_rows, Integral) or not 0 <= n_rows <= 2**53:
        raise ValueError(f"n_rows must be a whole number from 0 to 2**53, but is {short_repr(n_rows)}.")
    if not weights.sum() > 0:
        raise ValueError("weights must not all be 0. Give at least one class a weight.")
    exact = weights / weights.sum() * n_rows
    nearest = np.rint(exact)
    exact = np.where(np.abs(exact - nearest) <= rounding_noise(nearest), nearest, exact)
    counts: IntArray = np.floor(exact).astype(np.int64)
    by_remainder = np.argsort(-np.round(exact - counts, _TIE_DECIMALS), kind="stable")
    left = n_rows - int(counts.sum())
    if left >= 0:
        counts[by_remainder[:left]] += 1
    else:  # rounding noise gave whole numbers that sum to more than n_rows
        positive = by_remainder[counts[by_remainder] > 0]
        counts[positive[left:]] -= 1
    return counts


def on_both_sides(sizes: FloatArray) -> tuple[IntArray, IntArray]:
    """The whole numbers on both sides of each size, the same number twice for one that is whole but for noise."""
    noise = rounding_noise(sizes)
    return np.floor(sizes + noise).astype(np.int64), np.ceil(sizes - noise).astype(np.int64)


def outlier_counts(fractions: tuple[float, float], n_rows: int) -> tuple[int, int]:
    """The least and the greatest number of n_rows rows that these fractions are, rounded outwards.

    >>> outlier_counts((0.1, 0.1), 30), outlier_counts((0.0, 0.05), 30)
    ((3, 3), (0, 2))
    """
    low, high = on_both_sides(n_rows * np.array(fractions))
    return int(low[0]), int(high[1])


def rounding_noise(sizes: FloatArray) -> FloatArray:
    """Errors that arithmetic with these sizes may have."""
    return np.asarray(8 * np.finfo(np.float64).eps * np.maximum(np.where(np.isfinite(sizes), sizes, 1.0), 1.0))
