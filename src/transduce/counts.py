"""How many rows each class gets: from what a user states to whole numbers `low <= count <= high` that can be met.

Fractions φ become counts by largest remainder: floor(φ_k n), and one more for the classes with the largest remainders
until the counts sum to n. Equal remainders go to the class named first, so the same fractions always give the same
counts.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

IntArray: TypeAlias = NDArray[np.int64]

_SUM_TOLERANCE = 1e-6
_TIE_DECIMALS = 9


def counts_from_fractions(fractions: ArrayLike, n_rows: int) -> IntArray:
    """Round class fractions to counts that sum to `n_rows`, by largest remainder.

    >>> counts_from_fractions([0.5, 0.25, 0.25], 10)
    array([5, 3, 2])
    """
    fractions = np.asarray(fractions, dtype=np.float64)
    if fractions.ndim != 1 or fractions.size == 0:
        raise ValueError(f"fractions must be a list with one number a class, but have shape {fractions.shape}.")
    if not np.all(np.isfinite(fractions)) or np.any(fractions < 0):
        bad = int(np.flatnonzero(~(np.isfinite(fractions) & (fractions >= 0)))[0])
        raise ValueError(
            f"fractions must be 0 or more, but class {bad} has {fractions[bad]}. Use 0 for a class without rows."
        )
    if abs(fractions.sum() - 1.0) > _SUM_TOLERANCE:
        raise ValueError(
            f"fractions must sum to 1, but sum to {fractions.sum():.6g}. Divide them by their sum, or pass counts."
        )
    return apportion(fractions, n_rows)


def apportion(weights: ArrayLike, n_rows: int) -> IntArray:
    """Share `n_rows` out in proportion to `weights` (0 or more, not all 0), by largest remainder.

    >>> apportion([3, 3, 3], 10)
    array([4, 3, 3])
    """
    weights = np.asarray(weights, dtype=np.float64)
    shares = weights / weights.sum() * n_rows
    nearest = np.rint(shares)
    shares = np.where(np.abs(shares - nearest) <= 1e-9 * np.maximum(nearest, 1.0), nearest, shares)
    counts: IntArray = np.floor(shares).astype(np.int64)
    remainders = np.round(shares - counts, _TIE_DECIMALS)
    by_remainder = np.argsort(-remainders, kind="stable")
    counts[by_remainder[: n_rows - int(counts.sum())]] += 1
    return counts


def count_bounds(
    counts: ArrayLike | tuple[ArrayLike, ArrayLike], n_rows: int, n_classes: int
) -> tuple[IntArray, IntArray]:
    """Read exact counts, or a pair (low, high), as two whole-number arrays that `n_rows` rows can meet.

    >>> count_bounds([2, 1], n_rows=3, n_classes=2)
    (array([2, 1]), array([2, 1]))
    >>> count_bounds(([0, 1], [2, 3]), n_rows=3, n_classes=2)
    (array([0, 1]), array([2, 3]))
    """
    if _is_pair_of_arrays(counts):
        low = _whole_numbers(counts[0], "low counts", n_classes)  # type: ignore[index]
        high = _whole_numbers(counts[1], "high counts", n_classes)  # type: ignore[index]
    else:
        low = high = _whole_numbers(counts, "counts", n_classes)
        if low.sum() != n_rows:
            raise ValueError(
                f"counts must sum to the number of rows, {n_rows}, but sum to {low.sum()}. "
                "Correct them, or pass fractions through counts_from_fractions."
            )
    if np.any(low > high):
        k = int(np.argmax(low > high))
        raise ValueError(
            f"each low count must be at most its high count, but class {k} has low {low[k]} and high {high[k]}. "
            "Exchange or widen them."
        )
    if low.sum() > n_rows:
        raise ValueError(
            f"the low counts must sum to at most the number of rows, {n_rows}, but sum to {low.sum()}. "
            "Lower some of them."
        )
    if high.sum() < n_rows:
        raise ValueError(
            f"the high counts must sum to at least the number of rows, {n_rows}, but sum to {high.sum()}. "
            "Raise some of them."
        )
    return low, high


def _is_pair_of_arrays(counts: object) -> bool:
    """Tell (low, high) from the counts of two classes: the members of a pair are sequences."""
    return isinstance(counts, tuple) and len(counts) == 2 and all(np.ndim(member) == 1 for member in counts)


def _whole_numbers(values: object, what: str, n_classes: int) -> IntArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must be whole numbers, one a class, but came as {values!r}.") from error
    if array.shape != (n_classes,):
        raise ValueError(
            f"{what} must have one number for each of the {n_classes} columns of costs, but have shape {array.shape}."
        )
    bad = ~(np.isfinite(array) & (array == np.floor(array)))
    if bad.any():
        k = int(np.argmax(bad))
        raise ValueError(
            f"{what} must be whole numbers, but class {k} has {array[k]}. Pass fractions through counts_from_fractions."
        )
    if np.any(array < 0):
        k = int(np.argmax(array < 0))
        raise ValueError(
            f"{what} must be 0 or more, but class {k} has {int(array[k])}. Use 0 for a class without rows."
        )
    return array.astype(np.int64)
