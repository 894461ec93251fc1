"""What the arrays of a sparse matrix must be: pointers and indices that lie within it."""

from typing import Any

import numpy as np
from scipy import sparse

from transduce.arrays import Array


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
