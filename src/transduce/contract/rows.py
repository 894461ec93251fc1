"""What X must be: a matrix of finite numbers whose squares its type can hold."""

from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse

from transduce.arrays import Array
from transduce.contract.sparse_structure import check_structure
from transduce.suggest import as_sentence, short_repr

LARGEST_FLOAT32, LARGEST_FLOAT64 = 1e15, 1e140
"""Largest value of X whose squares can be summed over many columns; the least is 1 by it."""
TEXT_WIDTH = 40
"""Characters of a text that an error quotes."""


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
