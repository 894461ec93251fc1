"""What comes with rows must be: sample weights, scores of another model, and which labels were drawn at random."""

from typing import Any

import numpy as np

from transduce.arrays import Array
from transduce.contract.rows import LARGEST_FLOAT32
from transduce.suggest import short_repr

LARGEST_WEIGHT, LARGEST_WEIGHT_RATIO = 1e300, 1e15
"""Largest sample weight, of which a hundred million can be summed, and by what factor weights above 0 may differ."""


def check_sample_weight(sample_weight: Any, n_rows: int) -> Array | None:
    """Return sample weights as an array (n,) of finite numbers, 0 or more; None if there are none."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError("sample_weight must be numbers, one for each row. Correct it, or leave it out.") from error
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have one number for each of the {n_rows} rows, but has shape {weights.shape}. "
            "Correct it, or leave it out."
        )
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError("sample_weight must be finite and 0 or more. Correct it, or leave it out.")
    check_weight_range(*weight_range(weights))
    return weights


def weight_range(weights: Array | None) -> tuple[float, float]:
    """The least and the largest weight above 0; (1, 1) if there is none."""
    above = np.ones(1) if weights is None else weights[weights > 0]
    return (float(above.min()), float(above.max())) if above.size else (1.0, 1.0)


def check_weight_range(low: float, high: float) -> None:
    """Raise ValueError if weights from low to high cannot be summed, or differ by more than 32 bits can show."""
    if high > LARGEST_WEIGHT:
        problem = f"at most {LARGEST_WEIGHT:g}, so that weights can be summed, but one is {high:g}"
        raise ValueError(f"sample_weight must be {problem}. Divide all of them by the same number.")
    if high / LARGEST_WEIGHT_RATIO > low:
        problem = f"within a factor of {LARGEST_WEIGHT_RATIO:g} of each other, but are from {low:g} to {high:g}"
        raise ValueError(f"sample_weight must be 0 or {problem}. Set those that hardly count to 0.")


def check_labeled_weight(weights: Array | None) -> None:
    """Raise ValueError if the sample weights of all labelled rows are 0."""
    if weights is not None and not weights.any():
        raise ValueError(
            "sample_weight must be above 0 for a labelled row, but every weight is zero. Give one a weight."
        )


def check_sampled(sampled: object, is_full: Array) -> Array | None:
    """Return which full labels were drawn at random, given `is_full` (n,), or None where nothing is known."""
    if sampled is None:
        return None
    flags = np.asarray(sampled)
    if flags.dtype != bool or flags.shape not in ((), is_full.shape):
        raise ValueError(
            f"sampled must be True, False, or one of these for each of the {is_full.size} rows, but is "
            f"{short_repr(sampled)}."
        )
    return np.array(np.broadcast_to(flags, is_full.shape)[is_full])


def check_scores(scores: Any, n_rows: int) -> tuple[list[Any] | None, Array]:
    """Names of the columns, if scores are a data frame, and the scores (n, K); raises ValueError if they are unusable.

    >>> check_scores([[0.0, 1.0], [np.nan, np.nan]], 2)[1].shape
    (2, 2)
    """
    names = [*scores.columns] if hasattr(scores, "columns") else None
    try:
        values = np.array(scores.to_numpy() if hasattr(scores, "to_numpy") else scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "scores must be numbers, one row for each row of X and one column for each class. Correct them."
        ) from None
    if values.ndim != 2 or values.shape[0] != n_rows or values.shape[1] < 2:
        raise ValueError(
            f"scores must have {n_rows} rows, as X has, and a column for each of two or more classes, but have shape "
            f"{values.shape}. Pass NaN in rows without scores."
        )
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values).any(axis=1))[0])
        raise ValueError(
            f"scores must be finite, or NaN where there are none, but row {row} has infinity. "
            "Add a small number to probabilities before you take logarithms."
        )
    known = ~np.isnan(values)
    largest = float(np.abs(values[known]).max(initial=0.0))
    if largest > LARGEST_FLOAT32:
        raise ValueError(f"scores must be at most {LARGEST_FLOAT32:g} in size, but reach {largest:g}. Scale them.")
    highest, lowest = np.where(known, values, -np.inf).max(axis=1), np.where(known, values, np.inf).min(axis=1)
    if not np.any(highest > lowest):
        raise ValueError("scores say nothing: they are the same for all classes in every row. Leave them out.")
    if names is not None and len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"scores must have one column for each class, but two are called {twice!r}. Rename one.")
    return names, values
