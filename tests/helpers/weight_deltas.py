"""Random deltas of weights, and their sums as dense arrays."""

import numpy as np

from transduce.engines.dask.weight_deltas import WeightDelta


def random_delta(rng, n_rows, fraction, n_columns=2, dtype=np.float64, among=1.0):
    """A delta of this fraction of the first rows of W; a dense one where it is None."""
    if fraction is None:
        return WeightDelta(None, rng.normal(size=(n_rows, n_columns)).astype(dtype))
    rows = np.flatnonzero(rng.random(int(n_rows * among)) < fraction)
    return WeightDelta(rows, rng.normal(size=(rows.size, n_columns)).astype(dtype))


def dense(delta, n_rows):
    """A delta as an array of all rows of W."""
    out = np.zeros((n_rows, delta.values.shape[1]), delta.values.dtype)
    out[slice(None) if delta.rows is None else delta.rows] = delta.values
    return out


def sum_in_order(deltas, n_rows):
    """The sum of deltas, one after the other: another order would be another sum, in the last bits."""
    out = dense(deltas[0], n_rows)
    for delta in deltas[1:]:
        out = out + dense(delta, n_rows)
    return out
