"""Rows on a device: scores of all rows, the gradient back in the weights, and how strongly rows hang together.

    S = (X W) Pᵀ        pullback(R) = Xᵀ R P

X stays as the user passed it, in its own order of rows. The constant of the intercept is no column of X, but the last
row of W has its weights. Sparse rows are stored with their transpose: products with it are faster than transposed ones.
"""

from dataclasses import dataclass
from functools import cached_property
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
)
from transduce.taxonomy import Taxonomy
from transduce.taxonomy.overlap import largest_overlap

POWER_COLUMNS, POWER_STEPS, POWER_MARGIN = 8, 12, 1.1
"""Power iteration for the largest eigenvalue: vectors, steps, and a factor for what these leave."""


@dataclass(frozen=True, eq=False)
class DeviceRows:
    """Rows of a problem on a device, in the place of a `Design`; W (d, M) and scores are arrays there too.

    X, transpose   the features as floats, without the constant
    order (n,)     row of X that each row of the problem is
    is_nonnegative whether no feature is below 0
    """

    arrays: Arrays
    X: Any
    transpose: Any
    order: Array
    taxonomy: Taxonomy
    n_threads: int | None
    constant: float
    is_nonnegative: bool

    @classmethod
    def create(
        cls, X: Any, taxonomy: Taxonomy, n_jobs: int | None, order: Array, constant: float = 0.0
    ) -> "DeviceRows":
        """Use X where it is, of which row order[i] is row i of the problem; see `Design.create`."""
        arrays = Arrays.of(X)
        xp, shape = arrays.xp, tuple(X.shape)
        if not is_sparse(X):
            rows = X if X.dtype == arrays.dtype else xp.astype(X, arrays.dtype)
            transpose, values = rows.T, rows
        else:
            indptr, indices, values = csr_cells(X)
            kind = xp.int32 if max(*shape, values.shape[0]) < 2**31 - 1 else xp.int64
            cells = xp.astype(indptr, kind, copy=False), xp.astype(indices, kind, copy=False)
            values = xp.astype(values, arrays.dtype, copy=False)
            rows = csr_rows(X, (*cells, values), shape)
            transpose = csr_rows(X, transposed_cells(xp, (*cells, values), shape[1]), (shape[1], shape[0]))
        is_nonnegative = values.shape[0] == 0 or bool(xp.min(values) >= 0.0)
        return cls(arrays, rows, transpose, order, taxonomy, n_jobs, constant, is_nonnegative)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.order.size)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of weights and scores, as NumPy calls it."""
        return np.dtype(np.float64 if self.arrays.dtype == self.arrays.xp.float64 else np.float32)

    @property
    def n_features(self) -> int:
        """Rows of W."""
        return int(self.X.shape[1]) + (self.constant != 0.0)

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

    @cached_property
    def positions(self) -> Array:
        """Row of the problem that each row of X is (n,)."""
        return np.argsort(self.order)

    def _taken(self, rows: Array) -> Any:
        """Copy some rows of the problem: dense, or the cells of sparse ones."""
        at = self.arrays.ints(self.order[rows])
        if is_sparse(self.X):
            return take_cells(self.arrays.xp, csr_cells(self.X), at)
        return self.arrays.xp.take(self.X, at, axis=0)

    def select_rows(self, rows: Array) -> "DeviceRows":
        """Copy some rows of the problem."""
        taken = self._taken(rows)
        X = csr_rows(self.X, taken, (rows.size, self.X.shape[1])) if is_sparse(self.X) else taken
        return DeviceRows.create(X, self.taxonomy, self.n_threads, np.arange(rows.size), self.constant)

    def together(self) -> "DeviceRows":
        """The same rows, which were copied together when they were selected; see `Design.together`."""
        return self

    def in_memory(self, rows: Array) -> Design:
        """Copy some rows of the problem to memory."""
        taken = self._taken(rows)
        if is_sparse(self.X):
            indptr, indices, data = (to_host(part) for part in taken)
            X: Any = sparse.csr_matrix((data, indices, indptr), (rows.size, self.X.shape[1]))
        else:
            X = to_host(taken)
        return Design.create(X, self.taxonomy, self.n_threads, constant=self.constant)

    def on_device(self, values: DeviceArray) -> DeviceArray:
        """Bring values of the rows of the problem into the order of X."""
        return self.arrays.rows_of(values, self._positions)

    def in_problem_order(self, values: DeviceArray, first: int = 0) -> DeviceArray:
        """Bring values of the rows of X into the order of the problem, from row `first` on."""
        return self.arrays.rows_of(values, self._order[first:])

    @cached_property
    def _order(self) -> DeviceArray:
        return self.arrays.ints(self.order)

    @cached_property
    def _positions(self) -> DeviceArray:
        return self.arrays.ints(self.positions)

    def zeros(self) -> DeviceArray:
        """Return weights (d, M) of 0."""
        shape, arrays = (self.n_features, self.taxonomy.n_nodes), self.arrays
        return arrays.xp.zeros(shape, dtype=arrays.dtype, device=arrays.device)

    def bias(self, W: DeviceArray) -> DeviceArray:
        """What the constant adds to the scores of every row (1, K)."""
        b = self.constant * W[self.X.shape[1] :, :]
        return b if self.paths is None else b @ self.paths.T

    def times_constant(self, x: DeviceArray) -> DeviceArray:
        """The constant times x."""
        return x if self.constant == 1.0 else self.constant * x

    def write_scores(self, W: DeviceArray, S: DeviceArray) -> None:
        """Write the scores (n, K) of all rows without the constant, in the order of X."""
        features = W[: self.X.shape[1], :]
        if self.paths is None:
            self.arrays.write_product(self.X, features, S)
        else:
            self.arrays.write_product(self.X @ features, self.paths.T, S)

    def scores(self, W: DeviceArray) -> DeviceArray:
        """Scores (n, K) of all rows, in the order of X."""
        S = self.X @ W[: self.X.shape[1], :]
        S = S if self.paths is None else S @ self.paths.T
        return S + self.bias(W) if self.constant else S

    def write_pullback(self, R: DeviceArray, W: DeviceArray) -> None:
        """Write Xᵀ R P of the features to W (d, M), for R (n, K) in the order of X; the constant keeps its weights."""
        R = R if self.paths is None else R @ self.paths
        self.arrays.write_product(self.transpose, R, W[: self.X.shape[1], :])

    def coupling(self, rates: DeviceArray) -> DeviceArray:
        """Numbers c_i (n,) with ‖Σ_i r_i x_i z_iᵀ P‖² ≤ Σ_i r_i c_i ‖z_i‖² if every z_i sums to 0, features alone.

        Of features that are not negative the sums of x_i · x_j r_j over j are such numbers, and the largest eigenvalue
        of Σ_i r_i x_i x_iᵀ is one for all rows.
        """
        xp, overlap = self.arrays.xp, self.largest_overlap
        if self.is_nonnegative:
            return overlap * (self.X @ (self.transpose @ rates[:, None]))[:, 0]
        start = np.random.default_rng(0).normal(size=(self.X.shape[1], POWER_COLUMNS))
        V, norms = self.arrays.floats(start), None
        for _ in range(POWER_STEPS):
            V = self.transpose @ (rates[:, None] * (self.X @ V))
            norms = xp.sqrt(xp.sum(V * V, axis=0))
            V = V / xp.clip(norms, min=1e-30)
        return xp.zeros_like(rates) + POWER_MARGIN * overlap * xp.max(norms)
