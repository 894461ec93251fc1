"""Columns of X by frequency, in groups with about the same number of values; and work in equal parts."""

from itertools import pairwise

import numpy as np

from transduce.kernels import Array

CACHE_BYTES, MIN_PRODUCTS_TO_REORDER = 1 << 20, 10_000_000
"""Weights of this size stay in the cache in any order; multiplications that make reordering pay."""
RARE_COST = 4.0
"""Time of a product with a value of a column whose weights are not in the cache, relative to one whose weights are, as
measured with two threads."""
N_GROUPS = 64
"""Groups of columns, with about the same number of values each, that can be divided among threads."""


def pays_to_reorder(shape: tuple[int, int], itemsize: int, n_values: int) -> bool:
    """Whether weights of this shape outgrow the cache, and there is enough work to repay the copy of the rows."""
    n_features, n_nodes = shape
    return n_features * n_nodes * itemsize > CACHE_BYTES and n_values * n_nodes > MIN_PRODUCTS_TO_REORDER


def frequency_order(counts: Array) -> Array:
    """Return the columns (d,) in decreasing order of their counts."""
    return np.argsort(-counts, kind="stable")


def undo_order(W: Array, column_order: Array) -> Array:
    """Return weights with row j for column j, given weights whose row j is for column `column_order[j]`."""
    out = np.empty_like(W)
    out[column_order] = W
    return out


def nearest_ends(costs: Array, n_parts: int) -> Array:
    """Where parts of few pieces with these costs (n,) begin and end (n_parts + 1,), as near to equal costs as they can.

    >>> nearest_ends(np.array([1.0, 1.0, 1.0, 3.0]), 2)
    array([0, 3, 4])
    """
    ends = np.cumsum(costs)
    inner = np.searchsorted(ends - 0.5 * costs, np.linspace(0.0, ends[-1], n_parts + 1)[1:-1])
    return np.concatenate(([0], inner, [ends.size]))


def equal_work(ends: Array, n_parts: int) -> list[slice]:
    """Cut pieces into parts of about equal work, where ends (n,) is the work up to the end of each piece."""
    return [slice(low, high) for low, high in pairwise(ends_of_equal_work(ends, n_parts).tolist())]


def ends_of_equal_work(ends: Array, n_parts: int) -> Array:
    """Where these parts begin and end (n_parts + 1,)."""
    inner = np.searchsorted(ends, np.linspace(0, ends[-1], n_parts + 1)[1:-1]) if n_parts > 1 else np.zeros(0, int)
    return np.concatenate(([0], inner, [ends.size]))
