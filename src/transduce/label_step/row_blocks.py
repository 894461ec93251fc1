"""Rows of a cost matrix in blocks that stay in the cache, and in longer chunks for threads to work through."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from transduce.label_step._kernels.passes import add_label_values
from transduce.parallel import Threads, row_blocks

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
Result = TypeVar("Result")

BLOCK_CELLS = 1 << 18
"""Cells of a block: few enough to stay in the cache, enough that Python overhead does not count."""
CHUNK_CELLS = 1 << 16
"""Cells of a chunk, which one thread works through."""
LONGEST_CHUNK = 1 << 11
"""With many classes, a chunk has one row per class up to this many: smaller sums of products are not worth it."""


class CostRows:
    """Costs (n, K) of any dtype and memory order, read as C-ordered float64 without a full copy.

    threads  that passes over all rows run in; None for the caller's thread
    """

    costs: NDArray[Any]
    threads: Threads | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.costs.shape[0])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.costs.shape[1])

    def blocks(self, rows: IntArray | None = None) -> Iterator[tuple[slice, FloatArray]]:
        """Yield blocks of rows, each as a slice and its costs; without a copy where all costs are C-ordered float64.

        Parameters
        ----------
        rows : ndarray of int, default=None
            Rows to read; None for all.
        """
        for some in row_blocks(self.n_rows if rows is None else rows.size, rows_per_block(self.n_classes)):
            yield some, self.take(some if rows is None else rows[some])

    def map_blocks(self, function: Callable[[slice, FloatArray], Result]) -> list[Result]:
        """Return function(block, costs) of blocks of all rows, in order; several threads may call it at once.

        Parameters
        ----------
        function : callable
            It takes a slice of the rows and their costs.
        """

        def read(some: slice) -> Result:
            return function(some, self.take(some))

        return (self.threads or Threads()).each(read, chunks(self.n_rows, self.n_classes))

    def take(self, rows: IntArray | slice) -> FloatArray:
        """Return the costs of some rows, without a copy where they are neighbours in C-ordered float64.

        Parameters
        ----------
        rows : ndarray of int or slice
        """
        return np.ascontiguousarray(self.costs[rows], dtype=np.float64)

    def label_sums(self, prices: FloatArray, labelings: IntArray) -> FloatArray:
        """Sums (r, 3) of labelings at prices, in one pass: costs, absolute costs, distances from the cheapest label.

        Parameters
        ----------
        prices : ndarray of shape (K,)
        labelings : ndarray of shape (r, n)

        Returns
        -------
        sums : ndarray of shape (r, 3)
        """

        def sums(block: slice, costs: FloatArray) -> FloatArray:
            own = np.zeros((len(labelings), 3))
            add_label_values(costs, prices, labelings[:, block], own)
            return own

        return sum(self.map_blocks(sums), np.zeros((len(labelings), 3)))

    def tally(self, labels: IntArray) -> IntArray:
        """Return the number of rows (K,) of each class.

        Parameters
        ----------
        labels : ndarray of shape (n,)
        """
        return np.bincount(labels, minlength=self.n_classes).astype(np.int64)


def rows_per_block(n_classes: int) -> int:
    """Number of rows whose cells fill a block."""
    return max(1, BLOCK_CELLS // n_classes)


def chunks(n_rows: int, n_classes: int) -> list[slice]:
    """Cut rows into chunks for threads."""
    return row_blocks(n_rows, max(1, CHUNK_CELLS // n_classes, min(n_classes, LONGEST_CHUNK)))


def blocks(chunk: slice, n_classes: int) -> list[slice]:
    """Cut a chunk into blocks."""
    return row_blocks(chunk.stop, rows_per_block(n_classes), chunk.start)
