"""The design matrix X: where rows live, the scores of all rows at given weights, and the gradient back in the weights.

    S = (X W) Pᵀ        pullback(R) = Xᵀ R P

X is one CSR matrix or one dense array in C order, in memory or mapped from a file; its rows can be used in any order
without copying. W (d, M) has one column per node of the taxonomy, and P (K, M) says which nodes a class passes through.
For CSR rows W is in C order, and if it is larger than the cache, the columns of X are reordered by frequency for cache
locality. For dense rows W is in Fortran order, and products are those of BLAS. Everything above works on scores.
"""

import mmap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from transduce.kernels import Array, kernel
from transduce.kernels.rows import all_scores, copy_reordered, count_columns, pullback
from transduce.parallel import Threads, effective_n_jobs, row_blocks
from transduce.taxonomy import Taxonomy
from transduce.taxonomy.overlap import largest_overlap

Result = TypeVar("Result")

MIN_PRODUCTS_PER_THREAD = 10_000_000
"""Multiplications that make it worth starting one more thread."""
CACHE_BYTES, MIN_PRODUCTS_TO_REORDER = 1 << 20, 10_000_000
"""Weights of this size stay in the cache in any order; multiplications that make reordering pay."""
N_GROUPS = 64
"""Groups of columns, with about the same number of values each, that can be divided among threads."""
DENSE_BLOCK_BYTES, MIN_BLAS_COLUMNS = 1 << 21, 16
"""Size of the blocks of dense rows that BLAS multiplies, fixed, so that threads do not change results; and columns of W
from which on it is faster than a row at a time."""
UNIT_LENGTH_TOLERANCE = 1e-6
"""Rows count as rows of length 1 if their mean squared length is this close to 1: float32 rounds."""


@dataclass(frozen=True, eq=False)
class Design:
    """Rows of X, and the taxonomy whose classes they are scored for.

    data, indices     values and columns of all rows; `indices` are rows of W, none for dense rows
    spans (n, 2)      where each row begins and ends in both
    column_order (d,) row j of W is for column `column_order[j]` of X; None where columns have not been reordered
    constant          value of the last column, if dense rows have one that is not stored; else 0
    groups (g + 1,)   ends of groups of columns, which come in this order in each row; None where all columns do

    >>> design = Design.create(sparse.csr_matrix([[1.0, 0.0], [1.0, 1.0]]), Taxonomy.flat("ab"))
    >>> design.scores(np.array([[1.0, 0.0], [0.0, 2.0]]))
    array([[1., 0.],
           [1., 2.]])
    """

    data: Array
    indices: Array
    spans: Array
    n_features: int
    taxonomy: Taxonomy
    n_threads: int = 1
    column_order: Array | None = None
    constant: float = 0.0
    groups: Array | None = None

    @classmethod
    def create(
        cls, X: Any, taxonomy: Taxonomy, n_jobs: int | None = None, order: Array | None = None, constant: float = 0.0
    ) -> "Design":
        """Use a CSR matrix or a dense array in C order without copying. float32 and float64 are kept.

        `order` (n,) lists the rows in the order to use. Unless it is 0, a column of this constant is appended, for
        which CSR rows are copied. Results do not depend on n_jobs.
        """
        if sparse.issparse(X):
            column = np.full((X.shape[0], 1), constant, X.dtype)
            rows = sparse.hstack((X, column), format="csr") if constant else X.tocsr()
            if not rows.has_canonical_format:
                rows = rows.copy()
                rows.sum_duplicates()
            data, indices, indptr, n_features, constant = rows.data, rows.indices, rows.indptr, rows.shape[1], 0.0
        else:
            data, indices = np.ascontiguousarray(X).reshape(-1), np.zeros(0, np.int32)
            indptr, n_features = np.arange(X.shape[0] + 1) * X.shape[1], X.shape[1] + (constant != 0.0)
        data = data if data.dtype in (np.float32, np.float64) else data.astype(np.float64)
        spans = np.column_stack((indptr[:-1], indptr[1:])).astype(np.int64)
        spans = spans if order is None else spans[order]
        return cls(data, indices, spans, n_features, taxonomy, effective_n_jobs(n_jobs), constant=constant)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.spans.shape[0])

    @property
    def n_values(self) -> int:
        """Number of stored values."""
        return int(self._indptr[-1])

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

    def select_rows(self, rows: Array) -> "Design":
        """Return the design of some of the rows, a mask or indices, without copying them."""
        return replace(self, spans=self.spans[rows])

    def matrix(self) -> Any:
        """Copy X, with its columns in the order of the rows of W, to a CSR matrix, or a dense array if it is dense."""
        if self.is_dense:
            (X, at), column = self._row_block(slice(None)), np.full((self.n_rows, 1), self.constant, self.dtype)
            return np.hstack((X[at], column)) if self.constant else X[at]
        starts = np.repeat(self.spans[:, 0] - self._indptr[:-1], np.diff(self._indptr))
        positions = starts + np.arange(self.n_values)
        cells = self.data[positions], self.indices[positions], self._indptr
        return sparse.csr_matrix(cells, (self.n_rows, self.n_features))

    def reordered_by_frequency(self, counts: Array | None = None) -> "Design":
        """Copy the rows with the columns of X in decreasing order of frequency, for cache locality.

        `counts` (d,) are the frequencies, by default those in these rows. In each row, frequent columns, whose weights
        stay in the cache, come first, so that the weights of the others are fetched meanwhile. Without `counts`, rows
        mapped from a file, and small weights, are left as they are.
        """
        assert self.column_order is None
        if counts is None:
            shape = (self.n_features, self.taxonomy.n_nodes)
            if self.is_dense or self.is_mapped or not pays_to_reorder(shape, self.dtype.itemsize, self.n_values):
                return self
            counts = self.column_counts
        order = frequency_order(counts)
        rank = np.empty(order.size, self.indices.dtype)
        rank[order] = np.arange(order.size)
        spans = np.column_stack((self._indptr[:-1], self._indptr[1:]))
        data, indices = np.empty(self.n_values, self.dtype), np.empty(self.n_values, self.indices.dtype)
        groups = _ends_of_equal_work(np.cumsum(counts[order]), N_GROUPS)
        group = np.repeat(np.arange(N_GROUPS, dtype=np.uint8), np.diff(groups))

        def copy(part: slice) -> None:
            copy_reordered(self.data, self.indices, self.spans[part], rank, group, N_GROUPS, spans[part], data, indices)

        self._parallel_for(copy, self._indptr[1:], self._n_parts(1))
        return replace(self, data=data, indices=indices, spans=spans, column_order=order, groups=groups)

    def in_original_order(self, W: Array) -> Array:
        """Return weights with row j for column j of X."""
        return W if self.column_order is None else undo_order(W, self.column_order)

    @cached_property
    def tree(self) -> tuple[Array, Array]:
        """The nodes on the path of each class as kernels take them (see `kernels.rows`)."""
        if self.taxonomy.is_flat:
            return np.zeros(1, np.int64), np.zeros(0, np.int64)
        return self._paths.indptr.astype(np.int64), self._paths.indices.astype(np.int64)

    @cached_property
    def _paths(self) -> sparse.csr_matrix:
        """P (K, M)."""
        return sparse.csr_matrix(self.taxonomy.paths, dtype=np.float64)

    @cached_property
    def squared_norms(self) -> Array:
        """‖x_i‖² (n,)."""
        norms = np.full(self.n_rows, self.constant**2)
        _squared_norms(self.data, self.spans, norms)
        return norms

    @cached_property
    def overlap(self) -> Array:
        """P Pᵀ (K, K): the number of nodes that two classes have in common."""
        return np.asarray((self._paths @ self._paths.T).toarray())

    @cached_property
    def largest_overlap(self) -> float:
        """The largest eigenvalue of P Pᵀ on vectors that sum to 0: the curvature of a tree relative to flat classes."""
        return 1.0 if self.taxonomy.is_flat else largest_overlap(self._paths)

    def zeros(self) -> Array:
        """Return weights (d, M) of 0."""
        return np.zeros((self.n_features, self.taxonomy.n_nodes), self.dtype, order="F" if self.is_dense else "C")

    def scores(self, W: Array) -> Array:
        """Compute the scores (n, K) of the classes, with rows divided among threads."""
        out = np.empty((self.n_rows, self.taxonomy.n_classes), W.dtype)

        def multiply(rows: slice) -> None:
            X, at = self._row_block(rows)
            S = X @ W[: X.shape[1]]
            if self.constant:
                S += W.dtype.type(self.constant) * W[-1]
            out[rows] = (S if self.taxonomy.is_flat else S @ self._paths.T)[at]

        if self.is_dense and W.shape[1] >= MIN_BLAS_COLUMNS:
            list(self._map_row_blocks(multiply, W.shape[1]))
            return out

        def fill(part: slice) -> None:
            all_scores(self.data, self.indices, self.spans[part], self.constant, *self.tree, W, out[part])

        self._parallel_for(fill, self._indptr[1:], self._n_parts(W.shape[1]))
        return out

    def pullback(self, R: Array, out: Array | None = None) -> Array:
        """Compute Xᵀ R P (d, M) for R (n, K), in `out` if given, with features divided among threads."""
        out = self.zeros() if out is None else out
        out[...] = 0.0

        def multiply(rows: slice) -> tuple[Array, Array]:
            X, at = self._row_block(rows)
            by_node = np.zeros((len(X), out.shape[1]), out.dtype)
            by_node[at] = R[rows] if self.taxonomy.is_flat else R[rows] @ self._paths
            return X.T @ by_node, by_node.sum(axis=0)

        if self.is_dense:
            for product, total in self._map_row_blocks(multiply, out.shape[1]):
                out[: len(product)] += product
                out[len(product) :] += self.constant * total
            return out

        def fill(part: slice) -> None:
            pullback(rows, self.data, self.indices, self.spans, *self.tree, R, part.start, part.stop, out)

        rows, ends = np.arange(self.n_rows), self.column_ends(self._n_parts(out.shape[1])).tolist()
        parts = [slice(low, high) for low, high in pairwise(ends)]
        list(self.threads.map(fill, parts) if len(parts) > 1 else map(fill, parts))
        return out

    def _row_block(self, rows: slice) -> tuple[Array, Array]:
        """Some dense rows of X, and the positions of the given rows among them; nearby rows are not copied."""
        starts, n_stored = self.spans[rows, 0], self.n_features - (self.constant != 0.0)
        X, at = self.data.reshape(-1, n_stored), starts // n_stored
        if at.size and at[-1] - at[0] < 2 * at.size and np.all(at[1:] > at[:-1]):
            return X[at[0] : at[-1] + 1], at - at[0]
        return X[at], np.arange(at.size)

    def _map_row_blocks(self, work: Callable[[slice], Result], n_columns: int) -> Iterator[Result]:
        """Apply a function to blocks of dense rows, and yield the results in order."""
        blocks = row_blocks(self.n_rows, max(DENSE_BLOCK_BYTES // (self.n_features * self.dtype.itemsize), 64))
        return self.threads.map(work, blocks) if self._n_parts(n_columns) > 1 else map(work, blocks)

    @property
    def column_counts(self) -> Array:
        """The number of values for each row of W (d,)."""
        if self.is_dense:
            return np.full(self.n_features, self.n_rows)
        counts = np.zeros(self.n_features, np.int64)
        count_columns(self.indices, self.spans, counts)
        return counts

    @cached_property
    def _column_ends(self) -> Array:
        return np.cumsum(self.column_counts)

    def column_ends(self, n_parts: int) -> Array:
        """Cut the columns (for dense rows, the nodes) into parts of about equal work, and return where they end.

        The columns of a part come before those of the next one in each row.
        """
        if self.is_dense:
            return np.linspace(0, self.taxonomy.n_nodes, n_parts + 1).astype(np.int64)
        if n_parts == 1:
            return np.array([0, self.n_features])
        groups = _ends_of_equal_work(self._column_ends, N_GROUPS) if self.groups is None else self.groups
        return groups[np.linspace(0, N_GROUPS, n_parts + 1).astype(np.int64)]

    @cached_property
    def _indptr(self) -> Array:
        """Where rows begin and end (n + 1,) in a copy without gaps."""
        return np.concatenate(([0], np.cumsum(self.spans[:, 1] - self.spans[:, 0])))

    @cached_property
    def threads(self) -> Threads:
        """Threads that share work on these rows."""
        return Threads(self.n_threads)

    def _n_parts(self, n_columns: int) -> int:
        """Return the number of threads that pay for a product with so many columns."""
        return max(1, min(self.n_threads, self.n_values * n_columns // MIN_PRODUCTS_PER_THREAD))

    def _parallel_for(self, work: Callable[[slice], None], ends: Array, n_parts: int) -> None:
        parts = _equal_work(ends, n_parts)
        if len(parts) == 1:
            work(parts[0])
        else:
            list(self.threads.map(work, parts))


def sum_of_squares(X: Any) -> float:
    """Return Σ x_ij² of a dense array or a CSR matrix, summed in float64 without copying the rows.

    >>> sum_of_squares(np.array([[3.0, 4.0], [0.0, 0.0]], np.float32))
    25.0
    """
    if not sparse.issparse(X):
        return float(np.einsum("ij,ij->", X, X, dtype=np.float64))
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    values = X.data[: X.nnz]
    return float(np.einsum("i,i->", values, values, dtype=np.float64))


def mean_squared_length(total: float, n_rows: int) -> float:
    """Return the mean of ‖x_i‖² from their sum; 1 if all rows are 0, and exactly 1 for rows of length 1.

    >>> mean_squared_length(50.0, 2), mean_squared_length(0.0, 2), mean_squared_length(1.9999999, 2)
    (25.0, 1.0, 1.0)
    """
    mean = total / max(n_rows, 1)
    if not np.isfinite(mean):
        raise ValueError("X has values that are too large to square, so alpha='auto' cannot be computed. Scale X.")
    return 1.0 if mean == 0 or abs(mean - 1.0) <= UNIT_LENGTH_TOLERANCE else mean


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


def _equal_work(ends: Array, n_parts: int) -> list[slice]:
    """Cut pieces into parts of about equal work, where ends (n,) is the work up to the end of each piece."""
    return [slice(low, high) for low, high in pairwise(_ends_of_equal_work(ends, n_parts).tolist())]


def _ends_of_equal_work(ends: Array, n_parts: int) -> Array:
    """Where these parts begin and end (n_parts + 1,)."""
    inner = np.searchsorted(ends, np.linspace(0, ends[-1], n_parts + 1)[1:-1]) if n_parts > 1 else np.zeros(0, int)
    return np.concatenate(([0], inner, [ends.size]))


def _is_mapped(array: Any) -> bool:
    """Whether an array, or any array that it is a view of, is mapped from a file."""
    while array is not None and not isinstance(array, (np.memmap, mmap.mmap)):
        array = getattr(array, "base", None)
    return array is not None


@kernel
def _squared_norms(data: Array, spans: Array, out: Array) -> None:
    for i in range(out.size):
        for p in range(spans[i, 0], spans[i, 1]):
            out[i] += data[p] * data[p]
