"""Centring and scaling of dense rows.

    z_i = (x_i − m) / ‖x_i − m‖,     m the mean of the rows

Vectors of an encoder have a large part in common, which says nothing about classes and makes all cosines alike. Rows of
zeros stand for documents without content: they stay zeros, and the mean leaves them out.
"""

import numpy as np

from transduce.arrays import Array

ROUNDING = 8
"""Rows within so many units of rounding of the mean are the mean, and become zeros."""


def mean_of_rows(X: Array) -> Array:
    """Return the mean (d,) of the rows that are not all zeros, in the type of X."""
    n_rows = np.count_nonzero(X.any(axis=1))
    return np.asarray(X.sum(axis=0, dtype=np.float64) / max(n_rows, 1), dtype=X.dtype)


def center_and_scale(rows: Array, mean: Array) -> None:
    """Subtract the mean (d,) from rows (n, d) and scale them to length 1, in place."""
    mean = mean.astype(rows.dtype, copy=False)
    before = _lengths(rows)
    rows -= mean
    after = _lengths(rows)
    noise = ROUNDING * np.finfo(rows.dtype).eps * (before + _lengths(mean[np.newaxis]))
    empty = (before == 0) | (after <= noise)
    rows[empty] = 0
    rows /= np.where(empty, 1, after)[:, np.newaxis]


def _lengths(rows: Array) -> Array:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64)))
