"""Where the rows live: scores of all rows at given weights, and the way back from scores to weights.

    S = (X W) Pᵀ        pullback(R) = Xᵀ R P

X is held as one CSR matrix, in memory or mapped from a file, whose rows are taken in any order. W (d, M) is in C order
with a column for each node of the tree, P (K, M) says which nodes a class passes through. Where W is large, its rows
are ranked: features that are met often lie side by side, which caches like. Everything above works on scores; other
engines can stand in this one's place.
"""

import mmap
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from transduce.kernels import kernel
from transduce.kernels.rows import Array, all_scores, count_columns, pullback, rank_rows
from transduce.taxonomy import Taxonomy

WORTH_A_THREAD = 10_000_000
"""Multiplications that a thread must do to be worth waking."""
CACHED, WORTH_RANKING = 1 << 20, 10_000_000
"""Bytes of weights that are near at hand wherever they lie, and multiplications that are worth ranking for."""
MANY_CLASSES = 500
"""Above this the largest overlap is found by iteration, and raised by what that may leave out."""


@dataclass(frozen=True, eq=False)
class Design:
    """Rows in memory, and the classes they are scored for.

    Row j of W is for column `features[j]` of X, and `indices` are rows of W; without `features` both are the same.

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
    features: Array | None = None

    @classmethod
    def create(cls, X: Any, taxonomy: Taxonomy, n_jobs: int | None = None, order: Array | None = None) -> "Design":
        """Take a CSR matrix or array as it is; anything else is converted, float32 and float64 kept.

        Rows come in the given order (n,), that of X if there is none; they are not moved for it. n_jobs threads share
        the work on large problems, -1 or None for one a core; results do not depend on it.
        """
        rows = sparse.csr_matrix(X) if not sparse.issparse(X) else X.tocsr()
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        data = rows.data if rows.dtype in (np.float32, np.float64) else rows.data.astype(np.float64)
        spans = np.column_stack((rows.indptr[:-1], rows.indptr[1:])).astype(np.int64)
        spans = spans if order is None else spans[order]
        return cls(data, rows.indices, spans, rows.shape[1], taxonomy, _threads(n_jobs))

    @property
    def n_rows(self) -> int:
        """Rows."""
        return int(self.spans.shape[0])

    @cached_property
    def n_values(self) -> int:
        """Values that are stored for the rows."""
        return int(np.sum(self.spans[:, 1] - self.spans[:, 0]))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the data, and so of weights and scores."""
        return self.data.dtype

    @property
    def rows(self) -> tuple[Array, Array, Array]:
        """The arrays of the CSR matrix, as kernels take them."""
        return self.data, self.indices, self.spans

    def of_rows(self, rows: Array) -> "Design":
        """The same for some of the rows, which are not moved.

        >>> design = Design.create(sparse.csr_matrix([[1.0, 0.0], [1.0, 1.0]]), Taxonomy.flat("ab"))
        >>> design.of_rows(np.array([False, True])).matrix().toarray()
        array([[1., 1.]])
        """
        return replace(self, spans=self.spans[rows])

    def matrix(self) -> sparse.csr_matrix:
        """X with its rows in their order, and columns as the weights have them, a copy."""
        sizes = self.spans[:, 1] - self.spans[:, 0]
        indptr = np.concatenate(([0], np.cumsum(sizes)))
        places = np.repeat(self.spans[:, 0] - indptr[:-1], sizes) + np.arange(indptr[-1])
        return sparse.csr_matrix((self.data[places], self.indices[places], indptr), (self.n_rows, self.n_features))

    def ranked(self, counts: Array | None = None) -> "Design":
        """A copy with features in falling order of their values in the rows, or of counts (d,) that are given.

        In each row, too, those come first that are met often: weights of the others are then fetched while one waits
        for the first of them. Without counts, rows that are mapped from a file, and small weights, stay as they are.

        >>> design = Design.create(sparse.csr_matrix([[1.0, 0.0], [1.0, 1.0]]), Taxonomy.flat("ab"))
        >>> design.ranked() is design, design.ranked(np.array([1, 2])).features
        (True, array([1, 0]))
        """
        assert self.features is None
        if counts is None:
            shape = (self.n_features, self.taxonomy.n_nodes)
            if not is_worth_ranking(shape, self.dtype.itemsize, self.n_values) or self.is_mapped:
                return self
            counts = self.column_counts
        features = ranking(counts)
        places = np.empty(features.size, self.indices.dtype)
        places[features] = np.arange(features.size)
        ends = np.concatenate(([0], np.cumsum(self.spans[:, 1] - self.spans[:, 0])))
        spans = np.column_stack((ends[:-1], ends[1:]))
        data, indices = np.empty(self.n_values, self.dtype), np.empty(self.n_values, self.indices.dtype)
        n_near = CACHED // (self.taxonomy.n_nodes * self.dtype.itemsize)

        def fill(low: int, high: int) -> None:
            some = slice(low, high)
            rank_rows(self.data, self.indices, self.spans[some], places, n_near, spans[some], data, indices)

        self._in_threads(fill, _evenly(ends[1:], self._n_parts(1)))
        return replace(self, data=data, indices=indices, spans=spans, features=features)

    @property
    def is_mapped(self) -> bool:
        """Whether rows are read from a file."""
        return _is_mapped(self.data) or _is_mapped(self.indices)

    def by_column(self, W: Array) -> Array:
        """Weights with a row for each column of X, as users count them."""
        return W if self.features is None else unranked(W, self.features)

    @cached_property
    def tree(self) -> tuple[Array, Array]:
        """Nodes on the path of each class, first and nodes, as kernels take them; without nodes for flat classes."""
        if self.taxonomy.is_flat:
            return np.zeros(1, np.int64), np.zeros(0, np.int64)
        paths = self.taxonomy.paths
        return np.concatenate(([0], np.cumsum(paths.sum(axis=1)))).astype(np.int64), np.nonzero(paths)[1]

    @cached_property
    def squared_norms(self) -> Array:
        """‖x_i‖² (n,)."""
        norms = np.zeros(self.n_rows)
        _squared_norms(self.data, self.spans, norms)
        return norms

    @cached_property
    def overlap(self) -> Array:
        """P Pᵀ (K, K): nodes that two classes share."""
        if self.taxonomy.is_flat:
            return np.eye(self.taxonomy.n_classes)
        return np.asarray((self._paths @ self._paths.T).toarray())

    @cached_property
    def largest_overlap(self) -> float:
        """The largest eigenvalue of P Pᵀ on vectors that sum to 0: how much a tree bends more than flat classes."""
        if self.taxonomy.is_flat:
            return 1.0
        if self.taxonomy.n_classes > MANY_CLASSES:
            return _largest_overlap(self._paths)
        centred = self.overlap - self.overlap.mean(axis=0)
        centred -= centred.mean(axis=1, keepdims=True)
        return float(np.linalg.eigvalsh(centred)[-1])

    @property
    def _paths(self) -> sparse.csr_matrix:
        """P (K, M)."""
        first, nodes = self.tree
        return sparse.csr_matrix((np.ones(nodes.size), nodes, first), (first.size - 1, self.taxonomy.n_nodes))

    def zeros(self) -> Array:
        """Weights (d, M) of 0."""
        return np.zeros((self.n_features, self.taxonomy.n_nodes), self.dtype)

    def scores(self, W: Array) -> Array:
        """Scores (n, K) of the classes."""
        out = np.empty((self.n_rows, self.taxonomy.n_classes), W.dtype)

        def fill(low: int, high: int) -> None:
            all_scores(self.data, self.indices, self.spans[low:high], *self.tree, W, out[low:high])

        n_parts = self._n_parts(W.shape[1])
        ends = np.cumsum(self.spans[:, 1] - self.spans[:, 0]) if n_parts > 1 else np.zeros(self.n_rows)
        self._in_threads(fill, _evenly(ends, n_parts))
        return out

    def pullback(self, R: Array, out: Array | None = None) -> Array:
        """Xᵀ R P (d, M) for residuals R (n, K), written to `out` if it is given.

        Threads share the features, so each writes to weights of its own.
        """
        if out is None:
            out = self.zeros()
        else:
            out[...] = 0.0

        def fill(low: int, high: int) -> None:
            pullback(*self.rows, *self.tree, R, low, high, out)

        n_parts = self._n_parts(out.shape[1])
        ends = self._column_ends if n_parts > 1 else np.zeros(self.n_features)
        self._in_threads(fill, _evenly(ends, n_parts))
        return out

    @property
    def column_counts(self) -> Array:
        """Values for each row of W (d,)."""
        counts = np.zeros(self.n_features, np.int64)
        count_columns(self.indices, self.spans, counts)
        return counts

    @cached_property
    def _column_ends(self) -> Array:
        """Values for each row of W (d,) and all before it."""
        return np.cumsum(self.column_counts)

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.n_threads)

    def _n_parts(self, n_columns: int) -> int:
        """Threads that a product of the rows with so many columns is worth."""
        return max(1, min(self.n_threads, self.n_values * n_columns // WORTH_A_THREAD))

    def _in_threads(self, fill: Callable[[int, int], None], bounds: list[int]) -> None:
        """Fill what lies between each two bounds, in this thread where there are but two."""
        if len(bounds) == 2:
            fill(*bounds)
        else:
            list(self._pool.map(fill, bounds[:-1], bounds[1:]))


def is_worth_ranking(shape: tuple[int, int], itemsize: int, n_values: int) -> bool:
    """Whether weights of this shape are too large to lie anyhow, and rows of so many values are worth the trouble.

    >>> is_worth_ranking((100_000, 20), 4, 10_000_000), is_worth_ranking((1000, 20), 4, 10_000_000)
    (True, False)
    """
    n_features, n_nodes = shape
    return n_features * n_nodes * itemsize > CACHED and n_values * n_nodes > WORTH_RANKING


def ranking(counts: Array) -> Array:
    """Columns (d,) by rank, given how many values each has.

    >>> ranking(np.array([1, 3, 3])).tolist()
    [1, 2, 0]
    """
    return np.argsort(-counts, kind="stable")


def unranked(W: Array, features: Array) -> Array:
    """Weights with a row for each column, where row j of W is for column features[j].

    >>> unranked(np.array([[3.0], [1.0]]), np.array([1, 0])).tolist()
    [[1.0], [3.0]]
    """
    out = np.empty_like(W)
    out[features] = W
    return out


def _evenly(ends: Array, n_parts: int) -> list[int]:
    """Bounds of parts with about equal work, where ends (n,) say how much work there is up to each piece."""
    inner = np.searchsorted(ends, np.linspace(0, ends[-1], n_parts + 1)[1:-1]) if n_parts > 1 else np.zeros(0, int)
    return [0, *inner.tolist(), ends.size]


def _is_mapped(array: Array) -> bool:
    """Whether an array is a view of a file."""
    thing: Any = array
    while thing is not None:
        if isinstance(thing, (np.memmap, mmap.mmap)):
            return True
        thing = getattr(thing, "base", None)
    return False


def _largest_overlap(P: sparse.csr_matrix) -> float:
    """A little above the largest eigenvalue of P Pᵀ on vectors that sum to 0, for many classes."""

    def times(v: Array) -> Array:
        v = v - v.mean()
        v = P @ (P.T @ v)
        return np.asarray(v - v.mean())

    n_classes = P.shape[0]
    start = np.random.default_rng(0).normal(size=n_classes)
    operator = LinearOperator((n_classes, n_classes), matvec=times, dtype=np.float64)
    return 1.0001 * float(eigsh(operator, k=1, which="LA", v0=start, tol=1e-6, return_eigenvectors=False)[0])


def _threads(n_jobs: int | None) -> int:
    """Threads to use: one a core that this process may run on unless told otherwise, counted from the end below 0."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return cores
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


@kernel
def _squared_norms(data: Array, spans: Array, out: Array) -> None:
    for i in range(out.size):
        for p in range(spans[i, 0], spans[i, 1]):
            out[i] += data[p] * data[p]
