"""The design matrix X: the scores of all rows at given weights, and the gradient back in the weights.

    S = (X W) Pᵀ        pullback(R) = Xᵀ R P

W (d, M) has one column per node of the taxonomy, and P (K, M) says which nodes a class passes through.
For CSR rows W is in C order, and if it is larger than the cache, the columns of X are reordered by frequency for cache
locality. For dense rows W is in Fortran order, and products are those of BLAS. Everything above works on scores.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from transduce.design.by_column import KEPT_VALUES, ColumnBlock, blocks_by_column
from transduce.design.columns import (
    CACHE_BYTES,
    RARE_COST,
    ends_of_equal_work,
    nearest_ends,
    pays_to_reorder,
    undo_order,
)
from transduce.design.rows import COPY_COST, Rows
from transduce.kernels import Array
from transduce.kernels.pullback import add_dense_part, add_rows_part, pullback
from transduce.kernels.rows import all_scores
from transduce.kernels.shared_work import PADDING
from transduce.parallel import Threads, effective_n_jobs, row_blocks
from transduce.taxonomy import Taxonomy
from transduce.taxonomy.overlap import largest_overlap

Result = TypeVar("Result")

DENSE_BLOCK_BYTES, MIN_BLAS_COLUMNS = 1 << 21, 16
"""Size of the blocks of dense rows that BLAS multiplies, fixed, so that threads do not change results; and columns of W
from which on it is faster than a row at a time."""


@dataclass(frozen=True, eq=False)
class Design(Rows):
    """Rows of X, and the taxonomy whose classes they are scored for.

    >>> design = Design.create(sparse.csr_matrix([[1.0, 0.0], [1.0, 1.0]]), Taxonomy.flat("ab"))
    >>> design.scores(np.array([[1.0, 0.0], [0.0, 2.0]]))
    array([[1., 0.],
           [1., 2.]])
    """

    taxonomy: Taxonomy = field(kw_only=True)

    @classmethod
    def create(
        cls, X: Any, taxonomy: Taxonomy, n_jobs: int | None = None, order: Array | None = None, constant: float = 0.0
    ) -> "Design":
        """Use a CSR matrix or a dense array in C order without copying. float32 and float64 are kept.

        `order` (n,) lists the rows in the order to use. Unless it is 0, rows have one more column of this constant,
        which is not stored. Results do not depend on n_jobs.
        """
        is_sparse, n_features = sparse.issparse(X), X.shape[1]
        if is_sparse:
            rows = X.tocsr()
            if not rows.has_canonical_format:
                rows = rows.copy()
                rows.sum_duplicates()
            data, indices, indptr = rows.data, rows.indices, rows.indptr
        else:
            data, indices = np.ascontiguousarray(X).reshape(-1), np.zeros(0, np.int32)
            indptr = np.arange(X.shape[0] + 1) * n_features
        data = data if data.dtype in (np.float32, np.float64) else data.astype(np.float64)
        spans = np.column_stack((indptr[:-1], indptr[1:])).astype(np.int64)
        spans = spans if order is None else spans[order]
        n_columns = n_features + (constant != 0.0)
        return cls(data, indices, spans, n_columns, effective_n_jobs(n_jobs), constant=constant, taxonomy=taxonomy)

    def matrix(self) -> Any:
        """Copy X, with its columns in the order of the rows of W, to a CSR matrix, or a dense array if it is dense."""
        if self.is_dense:
            (X, at), column = self._row_block(slice(None)), np.full((self.n_rows, 1), self.constant, self.dtype)
            return np.hstack((X[at], column)) if self.constant else X[at]
        cells = self.data[self.positions], self.indices[self.positions], self.indptr
        if not self.constant:
            return sparse.csr_matrix(cells, (self.n_rows, self.n_features))
        X = sparse.csr_matrix(cells, (self.n_rows, self.n_features - 1))
        return sparse.hstack((X, np.full((self.n_rows, 1), self.constant, self.dtype)), format="csr")

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
        return self.reordered(counts)

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
    def overlap(self) -> Array:
        """P Pᵀ (K, K): the number of nodes that two classes have in common."""
        return np.asarray((self._paths @ self._paths.T).toarray())

    @cached_property
    def largest_overlap(self) -> float:
        """The largest eigenvalue of P Pᵀ on vectors that sum to 0: the curvature of a tree relative to flat classes."""
        return 1.0 if self.taxonomy.is_flat else largest_overlap(self._paths)

    def zeros(self) -> Array:
        """Return weights (d, M) of 0."""
        shape = self.n_features, self.taxonomy.n_nodes
        return np.zeros(shape, self.dtype, order="C" if self.indices.size else "F")

    def for_kernels(self, W: Array) -> Array:
        """Weights as kernels take them (see `kernels.rows`), a view."""
        return W if self.indices.size else W.T

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

        weights = np.ascontiguousarray(self.for_kernels(W))

        def fill(part: slice) -> None:
            work = np.empty(W.shape[1] + PADDING, W.dtype)[: W.shape[1]]
            all_scores(self.data, self.indices, self.spans[part], self.constant, *self.tree, weights, work, out[part])

        self.parallel_for(fill, self.indptr[1:], self.n_parts(W.shape[1]))
        return out

    def pullback(self, R: Array, out: Array | None = None) -> Array:
        """Compute Xᵀ R P (d, M) for R (n, K), in `out` if given, with features divided among threads."""
        out = self.zeros() if out is None else out

        def multiply(rows: slice) -> tuple[Array, Array]:
            X, at = self._row_block(rows)
            by_node = np.zeros((len(X), out.shape[1]), out.dtype)
            by_node[at] = R[rows] if self.taxonomy.is_flat else R[rows] @ self._paths
            return X.T @ by_node, by_node.sum(axis=0)

        is_kept = self.n_values <= KEPT_VALUES
        if self.is_dense or not self.n_rows or not is_kept:
            out[...] = 0.0
        if self.is_dense:
            for product, total in self._map_row_blocks(multiply, out.shape[1]):
                out[: len(product)] += product
                out[len(product) :] += self.constant * total
            return out

        n_parts, R = self.n_parts(out.shape[1]), np.ascontiguousarray(R, out.dtype)
        if not is_kept:
            self.add_rows(np.arange(self.n_rows), R, out)
        for block in self._by_column if is_kept and self.n_rows else ():
            self._add_pullback(block, R[block.block], n_parts, out)
        if self.constant:
            out[-1] = self.constant * self.by_node(R.sum(axis=0, dtype=np.float64))
        return out

    def _add_pullback(self, rows: ColumnBlock, R: Array, n_parts: int, out: Array) -> None:
        """Add Xᵀ R P of some rows to those of earlier ones; the first take the place of what was there."""
        is_first, shape = rows.block.start == 0, max(R.shape[1], out.shape[1]) + PADDING

        def add(part: tuple[int, int]) -> None:
            work = np.empty((2, shape), out.dtype)
            scratch = work[0, : R.shape[1]], work[1, : out.shape[1]]
            pullback(rows.values, rows.rows, rows.starts, *part, *self.tree, R, is_first, out, *scratch)

        parts = rows.parts(n_parts)
        (self.threads if n_parts > 1 else Threads()).each(add, parts)

    @cached_property
    def _by_column(self) -> list[ColumnBlock]:
        parts = self.column_ends(self.n_parts(COPY_COST))
        threads = self.threads if parts.size > 2 else Threads()
        return list(blocks_by_column(self.data, self.indices, self.spans, parts, threads))

    def add_rows(self, rows: Array, R: Array, W: Array) -> None:
        """W += Xᵀ R P in place for some rows (b,), given R (b, K), but for the weights of the constant."""
        R, V, n_nodes = R.astype(W.dtype, copy=False), self.for_kernels(W), W.shape[1]
        ends = self.column_ends(max(1, self.n_parts(n_nodes) * rows.size // max(self.n_rows, 1)))

        def add(part: tuple[int, int]) -> None:
            work = np.empty(n_nodes + PADDING, W.dtype)[:n_nodes]
            if self.is_dense:
                add_dense_part(rows, self.data, self.spans, *self.tree, R, *part, V, work)
            else:
                cuts, whole = np.empty((1, 4), np.int64), np.array([0, *part, self.n_features])
                add_rows_part(rows, *self.rows[:-1], *self.tree, R, whole, cuts, V, work)

        parts = list(pairwise(ends.tolist()))
        (self.threads if len(parts) > 1 else Threads()).each(add, parts)

    def by_node(self, by_class: Array) -> Array:
        """Pᵀ times values of the classes (K,): those of each node (M,)."""
        return by_class if self.taxonomy.is_flat else np.asarray(self._paths.T @ by_class)

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
        return self.threads.map(work, blocks) if self.n_parts(n_columns) > 1 else map(work, blocks)

    @cached_property
    def _column_ends(self) -> Array:
        return np.cumsum(self.column_counts)

    def column_ends(self, n_parts: int) -> Array:
        """Cut the columns (for dense rows, the nodes) into parts of about equal work, and return where they end.

        The columns of a part come before those of the next one in each row.
        """
        if n_parts == 1:
            return np.array([0, self.taxonomy.n_nodes if self.is_dense else self.n_features])
        if self.is_dense:
            return np.linspace(0, self.taxonomy.n_nodes, n_parts + 1).astype(np.int64)
        if self.groups is None:
            return ends_of_equal_work(self._column_ends, n_parts)
        is_rare = self.groups[1:] * self.taxonomy.n_nodes * self.dtype.itemsize > CACHE_BYTES
        return self.groups[nearest_ends(np.where(is_rare, RARE_COST, 1.0), n_parts)]
