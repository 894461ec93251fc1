"""The input contract: what rows, weights, scores and random samples must be before anything numerical sees them.

The library, the Dask workers, the device engine and the command line all call these functions, where data enter:

    X              a matrix of finite numbers whose squares its type can hold; sparse indices lie within its shape
    sample_weight  one finite number for each row, 0 or more, and above 0 for a labelled row
    scores         a number or NaN for each row and class, not the same for all classes
    sampled        True or False, for all rows or for each

Kernels assume all of it and check nothing. What y and class sizes must be depends on the classes: `labels.encode` and
`class_prior.resolve` check them next, before the problem is built. Errors name the place of the first bad value.
"""

from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse

from transduce.arrays import Array
from transduce.suggest import as_sentence, short_repr

LARGEST_FLOAT32, LARGEST_FLOAT64 = 1e15, 1e140
"""Largest value of X whose squares can be summed over many columns; the least is 1 by it."""
LARGEST_WEIGHT, LARGEST_WEIGHT_RATIO = 1e300, 1e15
"""Largest sample weight, of which a hundred million can be summed, and by what factor weights above 0 may differ."""
TEXT_WIDTH = 40
"""Characters of a text that an error quotes."""


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


def read_rows(X: Any, estimator: Any = None, *, reset: bool = True, is_part: bool = False) -> Any:
    """Return X as CSR or an array of float32 or float64 that meets the contract, or raise ValueError.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame
        Rows.
    estimator : estimator, default=None
        Sets, or with `reset=False` checks, the number and names of its features.
    reset : bool, default=True
        Whether the rows are to be fitted; rows to predict may have any scale.
    is_part : bool, default=False
        Whether these are some rows of X, which may be none, and may have small values only.

    Returns
    -------
    ndarray or csr_matrix

    Examples
    --------
    >>> read_rows([[1, 2], [3, 4]]).dtype
    dtype('float64')
    >>> read_rows([[1.0, 2.0], [3.0, float("nan")]])
    Traceback (most recent call last):
    ValueError: X must hold finite numbers, but X[1, 1] is NaN. Replace it, or remove the row.
    """
    from sklearn.utils.validation import check_array, validate_data  # here, because it takes long to import

    check_structure(X)
    check_matrix(X)
    how: dict[str, Any] = {"accept_sparse": "csr", "dtype": (np.float64, np.float32), "ensure_all_finite": False}
    with texts_explained(X):
        if estimator is None:
            X = check_array(X, accept_large_sparse=True, ensure_min_samples=0 if is_part else 1, **how)
        else:
            X = validate_data(estimator, X, reset=reset, accept_large_sparse=True, **how)
    largest = largest_value(X)
    if not np.isfinite(largest):
        check_finite(X)
    if reset:
        check_largest(largest, str(X.dtype), is_part=is_part)
    return X


def check_matrix(X: Any) -> None:
    """Raise an error about X that is no matrix of real numbers, before scikit-learn prints all of it.

    >>> check_matrix([[1.0, 2.0], [3.0]])
    Traceback (most recent call last):
    ValueError: X must have rows of equal length, but some have 1 and 2. Correct them.
    """
    if isinstance(X, (str, bytes)):
        return
    if X is None or np.isscalar(X) or (isinstance(X, (Mapping, Set, Iterator)) and not sparse.issparse(X)):
        raise TypeError(f"X must be a matrix with one row for each sample, but is {short_repr(X)}. Pass an array.")
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise ValueError("X has masked values. Fill them, for example with X.filled(0).")
    kind = getattr(getattr(X, "dtype", None), "kind", "")
    if kind in ("M", "m"):
        raise ValueError(f"X must hold numbers, but has dtype {X.dtype}. Convert dates and times to numbers.")
    if kind == "c":
        raise ValueError(f"Complex data not supported: X must hold real numbers, but has dtype {X.dtype}. Pass X.real.")
    shape = getattr(X, "shape", None) or _shape_of_list(X)
    if shape is not None and len(shape) == 1 and _first_text(X) is None:
        raise ValueError(
            f"X must be a matrix with one row for each sample, but has shape {tuple(shape)}. Reshape your data, with "
            "X.reshape(-1, 1) if it is one column or X.reshape(1, -1) if it is one row."
        )


def _shape_of_list(X: Any) -> tuple[int, ...] | None:
    """The shape of a list, or None of anything else; rows of unequal length raise ValueError."""
    if not isinstance(X, (list, tuple)):
        return None
    lengths = set(map(_length, X))
    if lengths <= {None}:
        return (len(X),)
    if len(lengths) > 1:
        found = " and ".join(sorted("no list" if n is None else str(n) for n in lengths)[:2])
        raise ValueError(f"X must have rows of equal length, but some have {found}. Correct them.")
    return None


def _length(row: Any) -> int | None:
    """The length of a row, which may be a list, an array, a Series or any other sequence; None of anything else."""
    if hasattr(row, "shape"):
        return row.shape[0] if row.shape else None
    return len(row) if hasattr(row, "__len__") and not isinstance(row, (str, bytes, Mapping, Set)) else None


def read_numbers(values: Any, name: str, expected: str) -> Array:
    """Return values as an array of float64, or raise TypeError: `name` must be what is `expected`.

    >>> read_numbers([["a"]], "proba", "a matrix of probabilities")
    Traceback (most recent call last):
    TypeError: proba must be a matrix of probabilities, but is [['a']]. Convert it.
    """
    try:
        found = np.asarray(values)
        if found.dtype.kind not in "cSUMmV":
            return np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise TypeError(f"{name} must be {expected}, but is {short_repr(values)}. Convert it.")


def check_finite(X: Any, name: str = "X", start: int = 0) -> None:
    """Raise ValueError if a value is NaN or infinite, with its place; rows are counted from `start`.

    >>> check_finite(np.array([[0.0, -np.inf]]))
    Traceback (most recent call last):
    ValueError: X must hold finite numbers, but X[0, 1] is -inf. Replace it, or remove the row.
    """
    is_sparse = sparse.issparse(X)
    values = X.data[: X.nnz] if is_sparse else np.ravel(X)
    is_bad = ~np.isfinite(values)
    if not is_bad.any():
        return
    place = int(np.argmax(is_bad))
    if is_sparse:
        row, column = int(np.searchsorted(X.indptr, place, "right")) - 1, int(X.indices[place])
    else:
        row, column = divmod(place, X.shape[1])
    raise not_finite(start + row, column, float(values[place]), name)


def not_finite(row: int, column: int, value: float, name: str = "X") -> ValueError:
    """The error about a value that is NaN or infinite."""
    found = "NaN" if np.isnan(value) else "inf" if value > 0 else "-inf"
    return ValueError(
        f"{name} must hold finite numbers, but {name}[{row}, {column}] is {found}. Replace it, or remove the row."
    )


def largest_value(X: Any) -> float:
    """Largest absolute value of X; NaN or infinite if a value is."""
    values = X.data[: X.nnz] if sparse.issparse(X) else X
    return max(float(values.max()), -float(values.min())) if values.size else 0.0


def check_scale(X: Any, *, is_part: bool = False) -> None:
    """Raise ValueError if the largest value of X is so large or small that its type cannot hold squares of rows.

    Parts of X may have small values only.

    >>> check_scale(np.array([[1e-3, -20.0]], np.float32))
    >>> check_scale(np.array([[1.0, -1e30]], np.float32))
    Traceback (most recent call last):
    ValueError: X has values up to 1e+30, but float32 can be squared from 1e-15 to 1e+15. Scale X.
    """
    check_largest(largest_value(X), str(X.dtype), is_part=is_part)


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
    except (TypeError, ValueError) as error:
        text = _first_text(X)
        if text is None and not _is_numeric(X):
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"X must hold numbers only. {as_sentence(str(error))} Convert its entries.") from None
        if text is None:
            raise
        raise ValueError(
            f"X must be rows of numbers, but holds texts, such as {text!r}. Use transduce.TextClassifier, or "
            "vectorise them first, for example with TfidfVectorizer of sklearn.feature_extraction.text."
        ) from None


def _is_numeric(X: Any) -> bool:
    try:
        return sparse.issparse(X) or np.asarray(X, dtype=np.complex128) is not None
    except (TypeError, ValueError):
        return False


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
