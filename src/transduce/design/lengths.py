"""Squared lengths of rows, whose mean sets the scale of the regularisation."""

from typing import Any

import numpy as np
from scipy import sparse

from transduce.arrays import Array
from transduce.parallel import Threads, row_blocks

BLOCK_VALUES = 1 << 18
"""Weights in a block, which one thread adds up."""
UNIT_LENGTH_TOLERANCE = 1e-6
"""Rows count as rows of length 1 if their mean squared length is this close to 1: float32 rounds."""


def sum_of_squares(X: Any) -> float:
    """Return Σ x_ij² of a dense array or a CSR matrix, summed in float64 without copying the rows.

    >>> sum_of_squares(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32))
    25.0
    """
    if not sparse.issparse(X):
        return float(np.einsum("ij,ij->", X, X, dtype=np.float64))
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    values = X.data[: X.nnz]
    return float(np.einsum("i,i->", values, values, dtype=np.float64))


def squared_norm(W: Array, threads: Threads) -> float:
    """‖W‖² of contiguous weights, in blocks that threads share.

    >>> squared_norm(np.array([[3.0], [4.0]]), Threads())
    25.0
    """
    flat = W.ravel(order="K")
    blocks = row_blocks(flat.size, BLOCK_VALUES)
    return sum(threads.map(lambda some: float(np.vdot(flat[some], flat[some])), blocks), 0.0)


def mean_squared_length(total: float, n_rows: int) -> float:
    """Return the mean of ‖x_i‖² from their sum; 1 if all rows are 0, and exactly 1 for rows of length 1.

    >>> mean_squared_length(50.0, 2), mean_squared_length(0.0, 2), mean_squared_length(1.9999999, 2)
    (25.0, 1.0, 1.0)
    """
    mean = total / max(n_rows, 1)
    return 1.0 if mean == 0 or abs(mean - 1.0) <= UNIT_LENGTH_TOLERANCE else mean
