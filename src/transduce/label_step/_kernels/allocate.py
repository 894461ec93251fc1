"""Step 7 of Algorithm 1: rows, surest first, take their favourite class until it is full.

A class may always be filled up to its low count; beyond that, up to its high count, it draws on `free`, the rows that
no low count needs. With exact counts `free` is 0 and this is the paper's rule.
"""

from transduce.kernels import kernel
from transduce.label_step._kernels.types import Labels


@kernel
def allocate(
    rows: Labels, favourites: Labels, low: Labels, high: Labels, tally: Labels, free: int, labels: Labels
) -> int:
    """Write labels of the rows that find a place, and tally, in place; return what is left of `free`."""
    for place in range(rows.size):
        k = favourites[place]
        if k < 0:
            continue
        if tally[k] < low[k]:
            labels[rows[place]] = k
            tally[k] += 1
        elif tally[k] < high[k] and free > 0:
            labels[rows[place]] = k
            tally[k] += 1
            free -= 1
    return free
