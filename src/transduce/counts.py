"""How many rows each class gets: from what a user states to whole numbers `low <= count <= high` that can be met.

Fractions φ become counts by largest remainder: floor(φ_k n), and one more for the classes with the largest remainders
until the counts sum to n. Equal remainders go to the class named first, so the same fractions always give the same
counts.
"""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

IntArray: TypeAlias = NDArray[np.int64]

_SUM_TOLERANCE = 1e-6
_TIE_DECIMALS = 9


class Bounds(NamedTuple):
    """Whole numbers of rows (K,) that each class gets at least and at most; equal where the size is exact."""

    low: IntArray
    high: IntArray


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
    if not isinstance(n_rows, Integral) or n_rows < 0:
        raise ValueError(f"n_rows must be a whole number, 0 or more, but is {n_rows!r}.")
    if not weights.sum() > 0:
        raise ValueError(
            "weights must not all be 0: there is nothing to share the rows out by. Give one class a weight."
        )
    shares = weights / weights.sum() * n_rows
    nearest = np.rint(shares)
    noise = 8 * np.finfo(np.float64).eps * np.maximum(nearest, 1.0)
    shares = np.where(np.abs(shares - nearest) <= noise, nearest, shares)
    counts: IntArray = np.floor(shares).astype(np.int64)
    remainders = np.round(shares - counts, _TIE_DECIMALS)
    by_remainder = np.argsort(-remainders, kind="stable")
    left = n_rows - int(counts.sum())
    if left >= 0:
        counts[by_remainder[:left]] += 1
    else:  # noise has made whole shares of more rows than there are
        held = by_remainder[counts[by_remainder] > 0]
        counts[held[left:]] -= 1
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
        high = _whole_numbers(counts[1], "high counts", n_classes, at_most=n_rows)  # type: ignore[index]
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


def _whole_numbers(values: object, what: str, n_classes: int, at_most: int | None = None) -> IntArray:
    """Check and convert; a high count above `at_most`, infinity too, says no more than that itself."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must be whole numbers, one a class, but came as {values!r}.") from error
    if array.shape != (n_classes,):
        raise ValueError(
            f"{what} must have one number for each of the {n_classes} columns of costs, but have shape {array.shape}. "
            "Pass a list of counts, or a tuple of two lists for (low, high)."
        )
    if at_most is not None:
        array = np.where(array > at_most, float(at_most), array)
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
    if array.max(initial=0.0) > 2**53:
        raise ValueError(f"{what} must be at most 2**53, but reach {array.max():.3g}. Correct them.")
    return array.astype(np.int64)


def prior_counts(
    class_prior: object,
    classes: NDArray[Any],
    labels: IntArray,
    n_rows: int,
    weights: NDArray[np.float64] | None = None,
) -> IntArray:
    """Read a class prior, "labeled", fractions, counts or a mapping to either, as the counts of the unlabelled rows.

    classes (K,) are the names of the classes, labels (l,) the class index of each labelled row, weights (l,) what it
    weighs.

    >>> names = np.array(["tea", "coffee"])
    >>> prior_counts("labeled", names, np.array([0, 0, 0, 1]), 8)
    array([6, 2])
    >>> prior_counts({"coffee": 0.75, "tea": 0.25}, names, np.array([0, 1]), 8)
    array([2, 6])
    """
    if isinstance(class_prior, str):
        if class_prior != "labeled":
            raise ValueError(
                f"class_prior must be 'labeled', fractions, counts or a mapping to either, but is {class_prior!r}."
            )
        return apportion(np.bincount(labels, weights=weights, minlength=classes.size), n_rows)
    values = _prior_array(class_prior, classes, labels)
    if n_rows == 0:
        return np.zeros(classes.size, np.int64)
    total = values.sum()
    if n_rows and total == n_rows and np.all(values == np.floor(values)):
        return values.astype(np.int64)
    if abs(total - 1.0) > _SUM_TOLERANCE:
        raise ValueError(
            f"class_prior must sum to 1, or as counts to the {n_rows} unlabelled rows, but sums to {total:.6g}. "
            "Divide it by its sum, or count the unlabelled rows only."
        )
    return apportion(values, n_rows)


def prior_bounds(
    class_prior: object,
    classes: NDArray[Any],
    labels: IntArray,
    n_rows: int,
    weights: NDArray[np.float64] | None = None,
) -> Bounds:
    """Read a class prior, whose mapping may also hold (low, high) or None for "not known", as bounds of the counts.

    A number beside a range means the whole numbers on both sides of it, so that rounding never makes it infeasible.

    >>> names, labels = np.array(["cocoa", "coffee", "tea"]), np.array([0, 1, 2])
    >>> prior_bounds({"tea": 0.25, "coffee": (0.3, 0.5), "cocoa": None}, names, labels, 10)
    Bounds(low=array([0, 3, 2]), high=array([10,  5,  3]))
    """
    if not isinstance(class_prior, Mapping) or not any(_is_range(value) for value in class_prior.values()):
        counts = prior_counts(class_prior, classes, labels, n_rows, weights)
        return Bounds(counts, counts)
    _check_names(class_prior, classes, labels)
    pairs = np.array([_pair(name, class_prior[name]) for name in classes.tolist()])
    if n_rows == 0:
        return Bounds(np.zeros(classes.size, np.int64), np.zeros(classes.size, np.int64))
    if np.all(pairs[np.isfinite(pairs)] <= 1.0):
        pairs = pairs * n_rows
    noise = 8 * np.finfo(np.float64).eps * np.maximum(np.where(np.isfinite(pairs), pairs, 1.0), 1.0)
    exact = pairs[:, 0] == pairs[:, 1]
    low = np.where(exact, np.floor(pairs[:, 0] + noise[:, 0]), np.ceil(pairs[:, 0] - noise[:, 0]))
    high = np.where(exact, np.ceil(pairs[:, 1] - noise[:, 1]), np.floor(pairs[:, 1] + noise[:, 1]))
    high = np.minimum(high, n_rows)
    _check_feasible(low, high, pairs, classes, n_rows)
    return Bounds(low.astype(np.int64), high.astype(np.int64))


def _is_range(value: object) -> bool:
    return value is None or (isinstance(value, (tuple, list, np.ndarray)) and len(value) == 2)


def _pair(name: object, value: object) -> tuple[float, float]:
    """Low and high as numbers; high may be infinite."""
    if value is None:
        return 0.0, np.inf
    ends: tuple[Any, Any] = value if _is_range(value) else (value, value)  # type: ignore[assignment]
    if not all(isinstance(bound, Real) and not isinstance(bound, bool) for bound in ends):
        raise TypeError(f"class_prior must give {name!r} a number, (low, high) or None, but has {value!r}.")
    low, high = float(ends[0]), float(ends[1])
    if not (0 <= low <= high and low < np.inf):
        raise ValueError(
            f"class_prior must give {name!r} a low bound of 0 or more and a high one not below it, but has {value!r}."
        )
    return low, high


def _check_feasible(
    low: NDArray[np.float64], high: NDArray[np.float64], pairs: NDArray[np.float64], classes: NDArray[Any], n_rows: int
) -> None:
    if np.any(low > high):
        k = int(np.argmax(low > high))
        raise ValueError(
            f"class_prior must leave room for a whole number of rows, but {classes.tolist()[k]!r} is to have between "
            f"{pairs[k, 0]:.6g} and {pairs[k, 1]:.6g} of {n_rows} rows. Widen it."
        )
    for bounds, side, wrong, way in (
        (low, "low", low.sum() > n_rows, "Lower"),
        (high, "high", high.sum() < n_rows, "Raise"),
    ):
        if wrong:
            raise ValueError(
                f"class_prior's {side} bounds sum to {bounds.sum():.0f} of the {n_rows} unlabelled rows "
                f"({bounds.sum() / n_rows:.1%}). {way} some of them."
            )


def _check_names(class_prior: Mapping[Any, Any], classes: NDArray[Any], labels: IntArray) -> None:
    """Every class has an entry, and every entry a class."""
    names = classes.tolist()
    unknown = [name for name in class_prior if name not in names]
    if unknown:
        raise ValueError(f"class_prior names {unknown[0]!r}, which is not a class. The classes are {_list(names)}.")
    missing = [name for name in names if name not in class_prior]
    if missing:
        strange = [name for k, name in enumerate(names) if k not in labels and name in class_prior]
        hint = f", and names {strange[0]!r}, which no row is labelled with" if strange else ""
        raise ValueError(
            f"class_prior must give every class a share, but has none for {missing[0]!r}{hint}. Add it, or 0."
        )


def _prior_array(class_prior: object, classes: NDArray[Any], labels: IntArray) -> NDArray[np.float64]:
    if isinstance(class_prior, Mapping):
        _check_names(class_prior, classes, labels)
        try:
            values = np.array([class_prior[name] for name in classes.tolist()], dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"class_prior must map classes to numbers, but came as {dict(class_prior)!r}.") from error
    else:
        try:
            values = np.asarray(class_prior, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"class_prior must be numbers, one a class, but came as {class_prior!r}.") from error
    if values.shape != (classes.size,):
        raise ValueError(
            f"class_prior must have one number for each of the {classes.size} classes, but has shape {values.shape}. "
            f"The classes are {_list(classes.tolist())}."
        )
    if not np.all(values >= 0) or not np.all(np.isfinite(values)):
        k = int(np.argmin(np.isfinite(values) & (values >= 0)))
        raise ValueError(f"class_prior must be 0 or more, but class {classes[k]!r} has {values[k]}. Correct it.")
    return values


def _list(names: list[Any]) -> str:
    shown = ", ".join(repr(name) for name in names[:10])
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"
