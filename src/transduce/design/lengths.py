"""Squared lengths of rows, whose mean sets the scale of the regularisation."""

from typing import Any

import numpy as np
from scipy import sparse

from transduce.arrays import Array
from transduce.parallel import Threads, effective_n_jobs, row_blocks

BLOCK_VALUES = 1 << 18
"""Values in a block, which one thread adds up."""
BLOCKS_PER_THREAD = 4
"""Blocks that make it worth starting one more thread."""
UNIT_LENGTH_TOLERANCE = 1e-6
"""Rows count as rows of length 1 if their mean squared length is this close to 1: float32 rounds."""


def sum_of_squares(X: Any, n_jobs: int | None = 1) -> float:
    """Return Σ x_ij² of a dense array or a CSR matrix, summed in float64 without copying the rows.

    Blocks are added up in `n_jobs` threads, and the sum does not depend on it.

    >>> sum_of_squares(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32))
    25.0
    """
    if not sparse.issparse(X):
        return _in_blocks(X, max(BLOCK_VALUES // max(X.shape[1], 1), 1), n_jobs)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return _in_blocks(X.data[: X.nnz, None], BLOCK_VALUES, n_jobs)


def _in_blocks(X: Array, rows_per_block: int, n_jobs: int | None) -> float:
    """Σ x_ij² of a dense array, in blocks of rows."""

    def total(rows: slice) -> float:
        return float(np.einsum("ij,ij->", X[rows], X[rows], dtype=np.float64))

    blocks = row_blocks(len(X), rows_per_block)
    with Threads(min(effective_n_jobs(n_jobs), len(blocks) // BLOCKS_PER_THREAD)) as threads:
        return sum(threads.each(total, blocks), 0.0)


def squared_norm(W: Array, threads: Threads) -> float:
    """‖W‖² of contiguous weights, in blocks that threads share.

    >>> squared_norm(np.array([[3.0], [4.0]]), Threads())
    25.0
    """
    flat = W.ravel(order="K")
    blocks = row_blocks(flat.size, BLOCK_VALUES)
    return sum(threads.each(lambda some: float(np.vdot(flat[some], flat[some])), blocks), 0.0)


def mean_squared_length(total: float, n_rows: int) -> float:
    """Return the mean of ‖x_i‖² from their sum; 1 if all rows are 0, and exactly 1 for rows of length 1.

    >>> mean_squared_length(50.0, 2), mean_squared_length(0.0, 2), mean_squared_length(1.9999999, 2)
    (25.0, 1.0, 1.0)
    """
    mean = total / max(n_rows, 1)
    return 1.0 if mean == 0 or abs(mean - 1.0) <= UNIT_LENGTH_TOLERANCE else mean
