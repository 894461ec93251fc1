"""Sparse rows of X by column, for products Xᵀ R P whose columns are divided among threads."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from transduce.design.columns import ends_of_equal_work
from transduce.kernels import Array
from transduce.kernels.pullback import sort_by_column
from transduce.kernels.rows import count_columns
from transduce.parallel import Threads

BLOCK_VALUES = 1 << 22
"""Values of a block of rows: as R of a block stays in the cache, blocks are faster than all rows at once."""
KEPT_VALUES = 1 << 27
"""Rows with more values are not sorted: a copy of all would need more than a gigabyte."""
COLUMN_COST = 4
"""Values whose products take as long as writing the weights of a column."""


class ColumnBlock(NamedTuple):
    """Some rows by column.

    block           the rows
    values, rows    of column j, from starts[j] to starts[j + 1]: values, and numbers of their rows in the block
    starts (d + 1,)
    work (d,)       time of a product up to the end of each column, in values
    """

    block: slice
    values: Array
    rows: Array
    starts: Array
    work: Array

    def parts(self, n_parts: int) -> list[tuple[int, int]]:
        """Parts of the columns that take about equal time."""
        return list(pairwise(ends_of_equal_work(self.work, n_parts).tolist()))


def blocks_by_column(
    data: Array, indices: Array, spans: Array, column_ends: Array, threads: Threads
) -> Iterator[ColumnBlock]:
    """Sort CSR rows by column, in blocks of about equal size; each thread sorts a part of the columns."""
    ends = np.cumsum(spans[:, 1] - spans[:, 0])
    cuts = ends_of_equal_work(ends, max(-(-int(ends[-1]) // BLOCK_VALUES), 1))
    for first, last in pairwise(cuts.tolist()):
        yield _sorted(slice(first, last), (data, indices, spans[first:last]), column_ends, threads)


def _sorted(block: slice, rows: tuple[Array, Array, Array], column_ends: Array, threads: Threads) -> ColumnBlock:
    """Sort the data, indices and spans of a block of rows by column."""
    data, indices, spans = rows
    counts = np.zeros(column_ends[-1], np.int64)
    count_columns(indices, spans, counts)
    starts = np.concatenate(([0], np.cumsum(counts)))
    values, numbers, places = np.empty(starts[-1], data.dtype), np.empty(starts[-1], np.int32), starts[:-1].copy()

    def sort(part: tuple[int, int]) -> None:
        ends, cuts = np.array([0, *part, column_ends[-1]]), np.empty(4, np.int64)
        sort_by_column(data, indices, spans, ends, cuts, places, values, numbers)

    threads.each(sort, list(pairwise(column_ends.tolist())))
    return ColumnBlock(block, values, numbers, starts, starts[1:] + COLUMN_COST * np.arange(1, starts.size))
