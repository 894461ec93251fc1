"""Rows on a device in batches: scores of all rows or of one batch, and the gradient back in the weights.

    S = (X W) Pᵀ        pullback(R) = Xᵀ R P

A batch has rows drawn at random, so that rows of one class do not meet in it; on the device they are contiguous.
Labelled rows have batches of their own: each weighs as much as many others, and the step length must suit it. Sparse
batches are stored with their transpose, as products with it are much faster than transposed ones.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from transduce.arrays import Array
from transduce.design import Design
from transduce.engines.device.arrays import (
    Arrays,
    DeviceArray,
    csr_cells,
    csr_rows,
    is_sparse,
    take_cells,
    to_host,
    transposed_cells,
    with_column,
)
from transduce.taxonomy import Taxonomy
from transduce.taxonomy.overlap import largest_overlap

N_BATCHES, N_LABELED_BATCHES = 128, 32
"""Batches of a sweep: with fewer, the rows of a batch hinder each other; with more, each is too small for a device."""


@dataclass(frozen=True, eq=False)
class DeviceRows:
    """Rows of a problem on a device, in the place of a `Design`; W (d, M) and scores are arrays there too.

    batches      X_b and its transpose, for each batch
    spans        where each batch begins and ends on the device
    squared_norms (n,)  ‖x_i‖²
    source       X as the user passed it, of which row order[i] is row i of the problem
    problem_rows (n,)   row of the problem that each row on the device is
    positions (n,)      where each row of the problem is on the device
    """

    arrays: Arrays
    batches: list[tuple[Any, Any]]
    spans: list[slice]
    squared_norms: DeviceArray
    source: Any
    order: Array
    problem_rows: Array
    positions: Array
    taxonomy: Taxonomy
    n_threads: int | None
    constant: float
    n_labeled: int

    @classmethod
    def create(
        cls, X: Any, taxonomy: Taxonomy, n_jobs: int | None, order: Array, constant: float = 0.0, n_labeled: int = 0
    ) -> "DeviceRows":
        """Copy X to batches, with the first `n_labeled` rows in batches of their own; see `Design.create`."""
        arrays, parts = Arrays.of(X), _batches(order.size, n_labeled)
        problem_rows = np.concatenate(parts)
        spans = [slice(start, end) for start, end in pairwise(np.cumsum([0, *map(len, parts)]).tolist())]
        made = [_batch(arrays, X, order[part], constant) for part in parts]
        norms = arrays.xp.concat([own for _, _, own in made])
        batches, positions = [(rows, transpose) for rows, transpose, _ in made], np.argsort(problem_rows)
        return cls(
            arrays, batches, spans, norms, X, order, problem_rows, positions, taxonomy, n_jobs, constant, n_labeled
        )  # fmt: skip

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.problem_rows.size)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of weights and scores, as NumPy calls it."""
        return np.dtype(np.float64 if self.arrays.dtype == self.arrays.xp.float64 else np.float32)

    @property
    def n_features(self) -> int:
        """Rows of W."""
        return int(self.source.shape[1]) + (self.constant != 0.0)

    @property
    def rows(self) -> tuple[Any, ...]:
        """The rows in memory as kernels take them."""
        return self.in_memory(np.arange(self.n_rows)).rows

    @cached_property
    def paths(self) -> DeviceArray:
        """P (K, M); None for flat classes."""
        return None if self.taxonomy.is_flat else self.arrays.floats(np.asarray(self.taxonomy.paths, np.float64))

    @cached_property
    def largest_overlap(self) -> float:
        """The curvature of a tree relative to flat classes; see `Design.largest_overlap`."""
        return (
            1.0 if self.taxonomy.is_flat else largest_overlap(sparse.csr_matrix(self.taxonomy.paths, dtype=np.float64))
        )

    def select_rows(self, rows: Array) -> "DeviceRows":
        """Copy some rows of the problem to batches of their own."""
        n_labeled = int((rows < self.n_labeled).sum())
        return DeviceRows.create(
            self.source, self.taxonomy, self.n_threads, self.order[rows], self.constant, n_labeled
        )  # fmt: skip

    def in_memory(self, rows: Array) -> Design:
        """Copy some rows of the problem to memory."""
        taken = _taken(self.arrays, self.source, self.order[rows])
        if is_sparse(self.source):
            indptr, indices, data = (to_host(part) for part in taken)
            X: Any = sparse.csr_matrix((data.astype(self.dtype), indices, indptr), (rows.size, self.source.shape[1]))
        else:
            X = to_host(taken)
        return Design.create(X, self.taxonomy, self.n_threads, constant=self.constant)

    def on_device(self, values: DeviceArray) -> DeviceArray:
        """Bring values of the rows of the problem into the order on the device."""
        return self.arrays.xp.take(values, self._problem_rows, axis=0)

    def in_problem_order(self, values: DeviceArray, first: int = 0) -> DeviceArray:
        """Bring values of the rows on the device into the order of the problem, from row `first` on."""
        return self.arrays.xp.take(values, self._positions[first:], axis=0)

    @cached_property
    def _problem_rows(self) -> DeviceArray:
        return self.arrays.ints(self.problem_rows)

    @cached_property
    def _positions(self) -> DeviceArray:
        return self.arrays.ints(self.positions)

    def zeros(self) -> DeviceArray:
        """Return weights (d, M) of 0."""
        return self.arrays.floats(np.zeros((self.n_features, self.taxonomy.n_nodes)))

    def batch_scores(self, batch: int, W: DeviceArray) -> DeviceArray:
        """Scores (b, K) of the rows of a batch."""
        S = self.batches[batch][0] @ W
        return S if self.paths is None else S @ self.paths.T

    def batch_pullback(self, batch: int, R: DeviceArray) -> DeviceArray:
        """X_bᵀ R P (d, M) for R (b, K)."""
        return self.batches[batch][1] @ (R if self.paths is None else R @ self.paths)

    def scores(self, W: DeviceArray) -> DeviceArray:
        """Scores (n, K) of all rows, in the order on the device."""
        return self.arrays.xp.concat([self.batch_scores(batch, W) for batch in range(len(self.batches))])

    def pullback(self, R: DeviceArray) -> DeviceArray:
        """Xᵀ R P (d, M) for R (n, K) in the order on the device."""
        out = self.zeros()
        for batch, span in enumerate(self.spans):
            out += self.batch_pullback(batch, R[span, :])
        return out


def _batches(n_rows: int, n_labeled: int) -> list[Array]:
    """Rows of each batch, drawn at random; batches of labelled rows are spread among the others."""
    rng, batches, places = np.random.default_rng(0), [], []
    for rows, fewest in ((np.arange(n_labeled), N_LABELED_BATCHES), (np.arange(n_labeled, n_rows), N_BATCHES)):
        number = min(max(N_BATCHES * rows.size // n_rows, fewest), rows.size)
        batches += np.array_split(rng.permutation(rows), max(number, 1))
        places += np.linspace(0.0, 1.0, max(number, 1), endpoint=False).tolist()
    return [batches[k] for k in np.argsort(places, kind="stable") if batches[k].size]


def _taken(arrays: Arrays, X: Any, rows: Array) -> Any:
    """Some rows of X: dense, or the cells of sparse ones."""
    at = arrays.ints(rows)
    if is_sparse(X):
        return take_cells(arrays.xp, csr_cells(X), at)
    return arrays.xp.astype(arrays.xp.take(X, at, axis=0), arrays.dtype)


def _batch(arrays: Arrays, X: Any, rows: Array, constant: float) -> tuple[Any, Any, DeviceArray]:
    """Rows with a column of a constant, unless it is 0, their transpose and their squared norms."""
    xp, taken, n_columns = arrays.xp, _taken(arrays, X, rows), X.shape[1] + (constant != 0.0)
    if not is_sparse(X):
        column = arrays.floats(np.full((rows.size, n_columns - X.shape[1]), constant))
        taken = xp.concat((taken, column), axis=1)
        return taken, taken.T, xp.sum(taken * taken, axis=1)
    indptr, indices, data = taken
    data = xp.astype(data, arrays.dtype)
    if X.shape[1] < 2**31 - 1:
        indptr, indices = xp.astype(indptr, xp.int32), xp.astype(indices, xp.int32)
    squares = xp.cumulative_sum(data * data, dtype=xp.float64, include_initial=True)
    norms = xp.take(squares, indptr[1:]) - xp.take(squares, indptr[:-1]) + constant**2
    cells = indptr, indices, data
    if constant:
        cells = with_column(xp, cells, X.shape[1], constant)
    transpose = csr_rows(X, transposed_cells(xp, cells, n_columns), (n_columns, rows.size))
    return csr_rows(X, cells, (rows.size, n_columns)), transpose, xp.astype(norms, arrays.dtype)
