"""Class counts as they are passed, exact or as ranges, checked and converted to whole numbers."""

import numpy as np
from numpy.typing import ArrayLike

from transduce.arrays import IntArray
from transduce.suggest import short_repr


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
        low = whole_numbers(counts[0], "low counts", n_classes)  # type: ignore[index]
        high = whole_numbers(counts[1], "high counts", n_classes, at_most=n_rows)  # type: ignore[index]
    else:
        low = high = whole_numbers(counts, "counts", n_classes)
        if low.sum() != n_rows:
            raise ValueError(
                f"counts must sum to the number of rows, {n_rows}, but sum to {low.sum()}. "
                "Correct them, or pass fractions through counts_from_fractions."
            )
    check_order(low, high, "class")
    if not low.sum() <= n_rows <= high.sum():
        total = f"low counts sum to {low.sum()}" if low.sum() > n_rows else f"high counts sum to {high.sum()}"
        raise ValueError(f"{n_rows} rows cannot meet the counts: the {total}. Widen some of them.")
    return low, high


def _is_pair_of_arrays(counts: object) -> bool:
    """Distinguish (low, high) from the counts of two classes: the members of a pair are sequences."""
    return isinstance(counts, tuple) and len(counts) == 2 and all(np.ndim(member) == 1 for member in counts)


def whole_numbers(
    values: object, what: str, n_classes: int, at_most: int | None = None, each: str = "class"
) -> IntArray:
    """Check and convert counts; larger ones than `at_most`, infinity too, are cut to it."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"{what} must be whole numbers, one for each {each}, but are {short_repr(values)}.") from error
    if array.shape != (n_classes,):
        of = f"{n_classes} columns of costs" if each == "class" else f"{n_classes} groups"
        raise ValueError(
            f"{what} must have one number for each of the {of}, but have shape {array.shape}. "
            "Pass a list of counts, or a tuple of two lists for (low, high)."
        )
    if at_most is not None:
        array = np.where(array > at_most, float(at_most), array)
    bad = ~(np.isfinite(array) & (array == np.floor(array)) & (array >= 0))
    if bad.any():
        k = int(np.argmax(bad))
        raise ValueError(
            f"{what} must be whole numbers, 0 or more, but {each} {k} has {array[k]:g}. "
            "Pass fractions through counts_from_fractions."
        )
    if array.max(initial=0.0) > 2**53:
        raise ValueError(f"{what} must be at most 2**53, but reach {array.max():.3g}. Correct them.")
    return array.astype(np.int64)


def check_order(low: IntArray, high: IntArray, each: str) -> None:
    """Raise ValueError unless every low count is at most its high count; `each` is what they are counts of."""
    if np.any(low > high):
        k = int(np.argmax(low > high))
        raise ValueError(
            f"each low count must be at most its high count, but {each} {k} has low {low[k]} and high {high[k]}. "
            "Swap or widen them."
        )
