"""Checks of the parameters of estimators, of rows and their weights, and of texts in the place of numbers."""

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse

from transduce.arrays import Array

LARGEST_FLOAT32, LARGEST_FLOAT64 = 1e15, 1e140
"""Largest value of X whose squares can be summed over many columns; the least is 1 by it."""
TEXT_WIDTH = 40
"""Characters of a text that an error quotes."""


def check_positive(estimator: object, *names: str) -> None:
    """Raise ValueError unless these parameters are finite numbers above 0."""
    for name in names:
        value = getattr(estimator, name)
        if not is_positive(value):
            raise ValueError(f"{name} must be a number above 0, but is {value!r}.")


def is_positive(value: object) -> bool:
    """Whether a value is a finite number above 0."""
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < np.inf


def check_alpha(alpha: object) -> None:
    """Raise ValueError unless alpha is a finite number above 0, or "auto"."""
    if not is_positive(alpha) and not (isinstance(alpha, str) and alpha == "auto"):
        raise ValueError(f'alpha must be a number above 0, or "auto", but is {alpha!r}.')


def check_iterations(max_iter: object, n_jobs: object) -> None:
    """Raise ValueError unless max_iter is a positive integer, and n_jobs None or an integer other than 0."""
    if not isinstance(max_iter, Integral) or max_iter < 1:
        raise ValueError(f"max_iter must be a whole number, 1 or more, but is {max_iter!r}.")
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be a whole number other than 0, or None, but is {n_jobs!r}.")


def has_methods(value: object, *names: str) -> bool:
    """Whether a value is an object, not a class or a name, with these methods."""
    return not isinstance(value, (str, type)) and all(callable(getattr(value, name, None)) for name in names)


def check_structure(X: Any) -> None:
    """Raise ValueError if the arrays of a sparse matrix point outside it; kernels and SciPy assume that they do not.

    >>> X = sparse.csr_matrix([[1.0, 0.0], [0.0, 2.0]])
    >>> X.indices[1] = 5
    >>> check_structure(X)
    Traceback (most recent call last):
    ValueError: X must have column indices from 0 to 1, but has 5. Build the matrix again.
    """
    if not sparse.issparse(X) or X.ndim != 2:
        return
    if X.format in ("csr", "csc", "bsr"):
        _check_compressed(X)
    elif X.format == "lil":
        for row in X.rows:
            _check_range("column", np.asarray(row, dtype=np.int64), X.shape[1])
    elif X.format == "coo":
        for name, length, at in zip(("row", "column"), X.shape, X.coords, strict=False):
            _check_range(name, at, length)


def check_scale(X: Any, *, is_part: bool = False) -> None:
    """Raise ValueError if the largest value of X is so large or small that its type cannot hold squares of rows.

    Parts of X may have small values only.

    >>> check_scale(np.array([[1e-3, -20.0]], np.float32))
    >>> check_scale(np.array([[1.0, -1e30]], np.float32))
    Traceback (most recent call last):
    ValueError: X has values up to 1e+30, but float32 can be squared from 1e-15 to 1e+15. Scale X.
    """
    values = X.data[: X.nnz] if sparse.issparse(X) else X
    largest = max(float(values.max()), -float(values.min())) if values.size else 0.0
    check_largest(largest, str(values.dtype), is_part=is_part)


def check_largest(largest: float, dtype: str, *, is_part: bool = False) -> None:
    """Raise ValueError if rows with this largest value, of this type, cannot be squared; see `check_scale`."""
    limit = LARGEST_FLOAT64 if dtype.endswith("float64") else LARGEST_FLOAT32
    if largest > limit or (0.0 < largest < 1.0 / limit and not is_part):
        known = f"{dtype.rpartition('.')[2]} can be squared from {1.0 / limit:g} to {limit:g}"
        raise ValueError(f"X has values up to {largest:g}, but {known}. Scale X.")


def _check_compressed(X: Any) -> None:
    """Check the pointers, and that all indices lie within the shorter axis, in one pass over each array."""
    name, axis = ("row", 0) if X.format == "csc" else ("column", 1)
    height, width = getattr(X, "blocksize", (1, 1))
    n_long, n_short = X.shape[1 - axis] // (height if axis else width), X.shape[axis] // (width if axis else height)
    starts, indices, n_data = X.indptr, X.indices, len(X.data)
    if any(array.dtype.kind not in "iu" for array in (starts, indices)):
        raise ValueError("X must have indptr and indices of whole numbers, but has others. Build the matrix again.")
    if starts.shape != (n_long + 1,) or starts[0] != 0 or np.any(starts[1:] < starts[:-1]):
        raise ValueError(
            f"X must have an indptr of {n_long + 1} numbers that start at 0 and never fall, but has another. "
            "Build the matrix again."
        )
    if int(starts[-1]) > min(indices.size, n_data):
        raise ValueError(
            f"X must have {int(starts[-1])} values, as its indptr says, but has {n_data} and {indices.size} indices. "
            "Build the matrix again."
        )
    _check_range(name, indices[: int(starts[-1])], n_short)


def _check_range(name: str, indices: Array, length: int) -> None:
    for found in (int(indices.min()), int(indices.max())) if indices.size else ():
        if not 0 <= found < length:
            raise ValueError(
                f"X must have {name} indices from 0 to {length - 1}, but has {found}. Build the matrix again."
            )


@contextmanager
def texts_explained(X: Any) -> Iterator[None]:
    """Where X cannot be read as numbers and holds texts, say so, and what to do."""
    try:
        yield
    except (TypeError, ValueError):
        text = _first_text(X)
        if text is None:
            raise
        raise ValueError(
            f"X must be rows of numbers, but holds texts, such as {text!r}. Use transduce.TextClassifier, or "
            "vectorise them first, for example with TfidfVectorizer of sklearn.feature_extraction.text."
        ) from None


def _first_text(X: Any) -> str | None:
    """Return the first text in X, cut to one short line, or None if there is none."""
    values = X.to_numpy() if hasattr(X, "to_numpy") else X
    if getattr(getattr(values, "dtype", None), "kind", "O") not in "OUT":  # numbers, of which a copy would be large
        return None
    try:
        entries = np.asarray(values, dtype=object).flat
    except ValueError:  # parts of unequal shape
        return None
    text = next((entry for entry in entries if isinstance(entry, str)), None)
    if text is None:
        return None
    line = " ".join(text.split())
    return line if len(line) <= TEXT_WIDTH else f"{line[: TEXT_WIDTH - 1]}…"


def check_sample_weight(sample_weight: Any, n_rows: int) -> Array | None:
    """Return sample weights as an array (n,) of finite numbers, 0 or more; None if there are none."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError("sample_weight must be numbers, one for each row. Correct it, or leave it out.") from error
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have one number for each of the {n_rows} rows, but has shape {weights.shape}."
        )
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError("sample_weight must be finite and 0 or more. Correct it, or leave it out.")
    return weights


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
            f"sampled must be True, False, or one of these for each of the {is_full.size} rows, but is {sampled!r}."
        )
    return np.array(np.broadcast_to(flags, is_full.shape)[is_full])


def check_fractions(name: str, value: object) -> tuple[float, float]:
    """Return a fraction, or a pair (low, high) of fractions, as a pair; both are at least 0 and below 1."""
    try:
        low, high = value if isinstance(value, (tuple, list)) else (value, value)
        if 0.0 <= float(low) <= float(high) < 1.0:
            return float(low), float(high)
    except (TypeError, ValueError):
        pass
    raise ValueError(
        f"{name} must be a fraction of at least 0 and below 1, or a pair (low, high) of these, but is {value!r}."
    )
