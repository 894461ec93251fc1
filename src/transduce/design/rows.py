"""Rows of X as kernels take them: where they are stored, copies of them, and the threads that share work on them.

X is one CSR matrix or one dense array in C order, in memory or mapped from a file; its rows can be used in any order
without copying.
"""

import copy
import mmap
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from transduce.design.columns import N_GROUPS, ends_of_equal_work, equal_work, frequency_order
from transduce.kernels import Array
from transduce.kernels.rows import copy_reordered, copy_rows, count_columns, squared_lengths
from transduce.parallel import Threads

MIN_PRODUCTS_PER_THREAD = 4_000_000
"""Multiplications that make it worth starting one more thread."""
COPY_COST = 8
"""Multiplications that take as long as copying one value."""
SINGLE_VALUES = (1e-6, 1e6)
"""Range of the largest absolute value of rows that may be kept in single precision."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of X.

    data, indices     values and columns of all rows; `indices` are rows of W, none for dense rows
    spans (n, 2)      where each row begins and ends in both
    column_order (d,) row j of W is for column `column_order[j]` of X; None where columns have not been reordered
    constant          value of the last column, if there is one that all rows share; it is not stored; else 0
    groups (g + 1,)   ends of groups of columns, which come in this order in each row; None where all columns do
    """

    data: Array
    indices: Array
    spans: Array
    n_features: int
    n_threads: int = 1
    column_order: Array | None = None
    constant: float = 0.0
    groups: Array | None = None

    def __post_init__(self) -> None:
        # kernels never write them, and are compiled anew for arrays that can be written
        object.__setattr__(self, "data", _read_only(self.data))
        object.__setattr__(self, "indices", _read_only(self.indices))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.spans.shape[0])

    @property
    def n_values(self) -> int:
        """Number of stored values."""
        return int(self.indptr[-1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the data, and so of weights and scores."""
        return self.data.dtype

    @property
    def rows(self) -> tuple[Array, Array, Array, float]:
        """Data, indices, spans and the constant, as kernels take them."""
        return self.data, self.indices, self.spans, self.constant

    @property
    def is_dense(self) -> bool:
        """Whether all values of a row are stored, zeros too."""
        return self.indices.size == 0 < self.data.size

    @property
    def is_mapped(self) -> bool:
        """Whether the rows are mapped from a file."""
        return _is_mapped(self.data) or _is_mapped(self.indices)

    def select_rows(self, rows: Array) -> Self:
        """Return the design of some of the rows, a mask or indices, without copying them."""
        return replace(self, spans=self.spans[rows])

    @property
    def positions(self) -> Array:
        """Where the values of these rows are, one row after another."""
        return np.repeat(self.spans[:, 0] - self.indptr[:-1], np.diff(self.indptr)) + np.arange(self.n_values)

    def in_single_precision(self) -> Self:
        """Copy CSR rows of float64 to float32, unless their values are huge or tiny; others stay as they are."""
        if self.is_dense or self.dtype == np.float32 or not self.n_values:
            return self
        rows = self if self.n_values == self.data.size else self.together()
        if not SINGLE_VALUES[0] <= max(float(rows.data.max()), -float(rows.data.min())) <= SINGLE_VALUES[1]:
            return self
        return replace(rows, data=rows.data.astype(np.float32))

    def together(self) -> Self:
        """Copy the rows one after another: processors are slow to find rows that are spread over much memory."""
        spans, data = self._new_spans(), np.empty(self.n_values, self.dtype)
        indices = np.empty(self.n_values if self.indices.size else 0, self.indices.dtype)

        def copy(part: slice) -> None:
            copy_rows(self.data, self.indices, self.spans[part], spans[part], data, indices)

        self.parallel_for(copy, self.indptr[1:], self.n_parts(COPY_COST))
        return replace(self, data=data, indices=indices, spans=spans)

    def _new_spans(self) -> Array:
        """Where rows begin and end (n, 2) in a copy without gaps."""
        return np.column_stack((self.indptr[:-1], self.indptr[1:]))

    def reordered(self, counts: Array) -> Self:
        """Copy CSR rows with their columns in decreasing order of these counts (d,)."""
        order = frequency_order(counts)
        if self.constant:  # it stays the last
            order = np.append(order[order < self.n_features - 1], self.n_features - 1)
        rank = np.empty(order.size, self.indices.dtype)
        rank[order] = np.arange(order.size)
        spans = self._new_spans()
        data, indices = np.empty(self.n_values, self.dtype), np.empty(self.n_values, self.indices.dtype)
        groups = ends_of_equal_work(np.cumsum(counts[order]), N_GROUPS)
        group = np.repeat(np.arange(N_GROUPS, dtype=np.uint8), np.diff(groups))

        def copy(part: slice) -> None:
            copy_reordered(self.data, self.indices, self.spans[part], rank, group, N_GROUPS, spans[part], data, indices)

        self.parallel_for(copy, self.indptr[1:], self.n_parts(COPY_COST))
        return replace(self, data=data, indices=indices, spans=spans, column_order=order, groups=groups)

    @cached_property
    def squared_norms(self) -> Array:
        """‖x_i‖² (n,), of the features without the constant."""
        norms = np.zeros(self.n_rows)

        def add(part: slice) -> None:
            squared_lengths(self.data, self.spans[part], norms[part])

        self.parallel_for(add, self.indptr[1:], self.n_parts(COPY_COST))
        return norms

    @property
    def column_counts(self) -> Array:
        """The number of values for each row of W (d,)."""
        if self.is_dense:
            return np.full(self.n_features, self.n_rows)
        parts = equal_work(self.indptr[1:], self.n_parts(COPY_COST)) if self.n_rows else []

        def count(part: slice) -> Array:
            counts = np.zeros(self.n_features, np.int64)
            count_columns(self.indices, self.spans[part], counts)
            return counts

        return np.asarray(sum(self.threads.each(count, parts), np.zeros(self.n_features, np.int64)))

    @cached_property
    def indptr(self) -> Array:
        """Where rows begin and end (n + 1,) in a copy without gaps."""
        return np.concatenate(([0], np.cumsum(self.spans[:, 1] - self.spans[:, 0])))

    @cached_property
    def threads(self) -> Threads:
        """Threads that share work on these rows."""
        return Threads(self.n_threads)

    def with_own_threads(self) -> Self:
        """The same rows, and what was computed of them, with threads of their own."""
        rows = copy.copy(self)
        rows.__dict__.pop("threads", None)
        return rows

    def n_parts(self, n_columns: int) -> int:
        """Return the number of threads that pay for a product with so many columns."""
        return max(1, min(self.n_threads, self.n_values * n_columns // MIN_PRODUCTS_PER_THREAD))

    def parallel_for(self, work: Callable[[slice], None], ends: Array, n_parts: int) -> None:
        """Apply a function to parts of the rows in threads, where ends (n,) is the work up to each row's end."""
        parts = equal_work(ends, n_parts)
        if len(parts) == 1:
            work(parts[0])
        else:
            self.threads.each(work, parts)


def _is_mapped(array: Any) -> bool:
    """Whether an array, or any array that it is a view of, is mapped from a file."""
    while array is not None and not isinstance(array, (np.memmap, mmap.mmap)):
        array = getattr(array, "base", None)
    return array is not None


def _read_only(array: Array) -> Array:
    """A view that cannot be written."""
    view = array.view()
    view.flags.writeable = False
    return view
