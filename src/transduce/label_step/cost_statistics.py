"""Statistics of costs that the search for soft labels needs before it starts, from one pass over them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.label_step.row_blocks import BoolArray, FloatArray, block_arrays, blocks
from transduce.parallel import Threads

MAX_BY_COLUMN = 64
"""Up to this many classes, the least cost of each row is found faster from columns than from rows."""


@dataclass(frozen=True)
class CostStatistics:
    """Statistics of a cost matrix.

    n_rows, n_finite  rows, and costs that are not +inf
    n_tied            rows that all labels cost the same
    least             sum of the least cost of each row among the open classes
    above             sum of the finite costs, each less the least of its row among all classes
    largest           greatest absolute value of a finite cost
    all_allowed       whether no cost is +inf
    open_to_all       whether every row has a finite cost among the open classes
    """

    n_rows: int = 0
    n_finite: int = 0
    n_tied: int = 0
    least: float = 0.0
    above: float = 0.0
    largest: float = 0.0
    all_allowed: bool = True
    open_to_all: bool = True

    @property
    def spread(self) -> float:
        """Mean of the finite costs, counted from the least of each row."""
        return self.above / max(self.n_finite, 1)

    def __add__(self, more: "CostStatistics") -> "CostStatistics":
        return CostStatistics(
            self.n_rows + more.n_rows,
            self.n_finite + more.n_finite,
            self.n_tied + more.n_tied,
            self.least + more.least,
            self.above + more.above,
            max(self.largest, more.largest),
            self.all_allowed and more.all_allowed,
            self.open_to_all and more.open_to_all,
        )


def cost_statistics(
    costs: NDArray[Any], closed: BoolArray, least: FloatArray, threads: Threads, chunk: slice
) -> CostStatistics:
    """Statistics of a chunk of rows; writes the least open cost of each row."""
    (scratch,), found = block_arrays(threads, 1, chunk, closed.size), CostStatistics()
    axis = 0 if closed.size <= MAX_BY_COLUMN else 1
    for rows in blocks(chunk, closed.size):
        some = costs[rows].T if axis == 0 else costs[rows]
        block = scratch[: some.size].reshape(some.shape)
        block[...] = some
        lowest, highest = block.min(axis=axis, keepdims=True), block.max(axis=axis, keepdims=True)
        open_costs = np.compress(~closed, block, axis=axis) if closed.any() else block
        least[rows] = open_costs.min(axis=axis, initial=np.inf)
        finite = slice(None) if highest.max() < np.inf else block < np.inf
        largest = float(np.abs(block[finite]).max())
        block -= lowest
        above = block[finite]
        n_tied, sums = int(np.count_nonzero(lowest == highest)), (float(least[rows].sum()), float(above.sum()))
        allowed = (above.size == block.size, bool(least[rows].max() < np.inf))
        found += CostStatistics(rows.stop - rows.start, above.size, n_tied, *sums, largest, *allowed)
    return found
