"""Sparse rows of X by column, for products Xᵀ R P whose columns are divided among threads."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from transduce.design.columns import ends_of_equal_work
from transduce.kernels import Array
from transduce.kernels.pullback import sort_by_column
from transduce.kernels.rows import count_columns

BLOCK_VALUES = 1 << 22
"""Values of a block of rows: as R of a block stays in the cache, blocks are faster than all rows at once."""
KEPT_VALUES = 1 << 27
"""Rows with more values are sorted again for each product, one block at a time: a copy of all would need a gigabyte."""
COLUMN_COST = 4
"""Values whose products take as long as writing the weights of a column."""


class ColumnBlock(NamedTuple):
    """Some rows by column.

    block          the rows
    values, rows   of column j, from starts[j] to starts[j + 1]: values, and numbers of their rows in the block
    starts (d + 1,)
    """

    block: slice
    values: Array
    rows: Array
    starts: Array

    def parts(self, n_parts: int) -> Sequence[int]:
        """Where parts of the columns that take about equal time begin and end."""
        work = self.starts[1:] + COLUMN_COST * np.arange(1, self.starts.size)
        return [int(end) for end in ends_of_equal_work(work, n_parts)]


def blocks_by_column(data: Array, indices: Array, spans: Array, n_columns: int) -> Iterator[ColumnBlock]:
    """Sort CSR rows by column, in blocks of about equal size."""
    ends = np.cumsum(spans[:, 1] - spans[:, 0])
    n_blocks = -(-int(ends[-1]) // BLOCK_VALUES) if ends.size else 0
    cuts = ends_of_equal_work(ends, max(n_blocks, 1))
    for first, last in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        some, counts = spans[first:last], np.zeros(n_columns, np.int64)
        count_columns(indices, some, counts)
        starts = np.concatenate(([0], np.cumsum(counts)))
        values, rows = np.empty(starts[-1], data.dtype), np.empty(starts[-1], np.int32)
        sort_by_column(data, indices, some, starts[:-1].copy(), values, rows)
        yield ColumnBlock(slice(first, last), values, rows, starts)
