"""The rows of a sweep: those with large gaps, in runs of neighbours.

Problem.  Given estimated gaps (n,) of rows, inf where nothing is known, find the live rows (m,) that a sweep visits.
"""

import numpy as np

from transduce.kernels import Array, kernel


@kernel
def sum_at(values: Array, rows: Array) -> float:
    """Return the sum of the values of these rows."""
    total = 0.0
    for i in rows:
        total += values[i]
    return total


@kernel
def large_gaps(gaps: Array, live: Array, min_fraction: float, out: Array) -> int:
    """Write the live rows with more than twice the mean gap, and return how many they are.

    0 if fewer than half of the gaps are known, or the large ones are at most this fraction of all.
    """
    total, n_known = 0.0, 0
    for i in live:
        if gaps[i] < np.inf:
            total += gaps[i]
            n_known += 1
    if 2 * n_known <= live.size:
        return 0
    n, large = 0, 0.0
    for i in live:
        if gaps[i] > 2.0 * total / n_known:
            out[n] = i
            large += gaps[i]
            n += 1
    return n if large > min_fraction * total else 0


@kernel
def copy_runs(rows: Array, runs: Array, length: int, out: Array) -> None:
    """Write the rows (m,) cut into runs of this length, in the given order of the runs."""
    n = 0
    for run in runs:
        for j in range(run * length, min(run * length + length, rows.size)):
            out[n] = rows[j]
            n += 1
