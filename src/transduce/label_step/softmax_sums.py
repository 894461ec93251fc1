"""Distributions q_ik ∝ exp(v_k − costs[i, k] / T) of many rows: their sums, and in the end themselves.

Rows are processed in blocks that stay in the cache, so nothing as large as the costs is allocated. Blocks have a fixed
size and are added up in order: the number of threads changes no digit.

While prices v are not too far apart, q_ik = w_k E_ik / Σ_l w_l E_il with w = exp(v) and E_ik = exp(−costs[i, k] / T).
That takes two products of a matrix and a vector, which is faster than a maximum and sums over the classes of every row.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.label_step.cost_statistics import CostStatistics, cost_statistics
from transduce.label_step.row_blocks import BoolArray, FloatArray, IntArray, block_arrays, blocks, chunks
from transduce.parallel import Threads

FEW = 64
"""With more classes, products are computed in single precision and only of those needed: Newton needs no more."""
NEARLY_ALL = 0.8
"""Fraction of the classes from which on selecting columns is not worth it."""
FLAT = 200.0
"""Prices within this range, in units of T, can be factors outside the exponentials."""
NEAR = 500.0
"""Costs up to this, in units of T, need not be measured from the least of their row."""
LOWEST = -700.0
"""Exponentials of less than this count as 0: they are slow to compute and soon underflow."""


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over rows of their distributions.

    mass        (K,) Σ_i q_ik
    normalizer  Σ_i log Σ_k exp(v_k − c_ik / T), costs c measured from the least open cost of each row
    entropy     −Σ_ik q_ik log q_ik
    products    (C, C) Σ_i q_ik q_il of some classes, with all others merged into one, the last
    """

    mass: FloatArray
    normalizer: float = 0.0
    entropy: float = 0.0
    products: NDArray[Any] | None = None

    @classmethod
    def total(cls, some: Iterable["Sums"], n_classes: int, columns: IntArray | None) -> "Sums":
        """The sum of some, with products if there are columns for them."""
        side = 0 if columns is None else columns.size + (columns.size < n_classes)
        zero = cls(np.zeros(n_classes), products=None if columns is None else np.zeros((side, side)))
        return reduce(cls.add, some, zero)

    def add(self, more: "Sums") -> "Sums":
        """Add more, in place of these arrays."""
        if self.products is not None and more.products is not None:
            np.add(self.products, more.products, out=self.products)
        mass = np.add(self.mass, more.mass, out=self.mass)
        return Sums(mass, self.normalizer + more.normalizer, self.entropy + more.entropy, self.products)


def product_columns(columns: IntArray, n_classes: int) -> IntArray:
    """Classes whose products are computed if some are needed: all where there are few, or where nearly all are needed.

    >>> product_columns(np.array([1]), 3)
    array([0, 1, 2])
    """
    return columns if n_classes > FEW and columns.size < NEARLY_ALL * n_classes else np.arange(n_classes)


class _Terms(NamedTuple):
    """q_ik ∝ w_k exp(z_ik) with z = −costs / T, less a constant for each row; prices far apart are in z, with w = 1."""

    v: FloatArray
    T: float
    w: FloatArray
    top: float
    steep: bool
    near: bool
    low: bool


@dataclass(frozen=True, eq=False)
class SoftmaxRows:
    """Costs (n, K), the least open cost (n,) of each row, and which classes (K,) may have no rows.

    >>> rows = SoftmaxRows.create(np.array([[0.0, 1.0], [3.0, 0.0]]), np.zeros(2, bool))
    >>> sums = rows.sums(np.zeros(2), 0.5)
    >>> sums.mass.round(4).tolist(), round(sums.entropy, 4), rows.statistics.spread
    ([0.8833, 1.1167], 0.3826, 1.0)
    """

    costs: NDArray[Any]
    least: FloatArray
    closed: BoolArray
    statistics: CostStatistics

    @classmethod
    def create(cls, costs: NDArray[Any], closed: BoolArray, threads: Threads | None = None) -> "SoftmaxRows":
        """Read every cost once."""
        least = np.empty(costs.shape[0])
        threads = threads or Threads()
        found = threads.map(partial(cost_statistics, costs, closed, least, threads), chunks(*costs.shape))
        return cls(costs, least, closed, reduce(CostStatistics.__add__, found, CostStatistics()))

    def sums(self, v: FloatArray, T: float, columns: IntArray | None = None, threads: Threads | None = None) -> Sums:
        """Sums at prices v (K,) in units of T, with products of some classes (see `product_columns`)."""
        terms = self._terms(v, T)
        threads = threads or Threads()
        some = threads.map(partial(self._chunk_sums, terms, columns, threads), chunks(*self.costs.shape))
        sums = Sums.total(some, v.size, columns)
        mass = terms.w * sums.mass
        normalizer = (
            sums.normalizer + self.statistics.n_rows * terms.top + (self.statistics.least / T if terms.near else 0.0)
        )
        entropy = sums.entropy if terms.steep else sums.entropy - float(np.dot(mass, terms.v - terms.top))
        return Sums(mass, normalizer, entropy, sums.products)

    def write(self, v: FloatArray, T: float, out: NDArray[Any], threads: Threads | None = None) -> None:
        """Write the distributions (n, K) at these prices; equal rows get equal ones."""
        threads = threads or Threads()
        write = partial(self._write_chunk, self._terms(v, T), out, threads)
        deque(threads.map(write, chunks(*self.costs.shape)), maxlen=0)

    def _terms(self, v: FloatArray, T: float) -> _Terms:
        top, bottom = v.max(where=~self.closed, initial=-np.inf), v.min(where=~self.closed, initial=np.inf)
        if not 0.0 <= top - bottom <= FLAT:
            return _Terms(v, T, np.ones(v.size), 0.0, steep=True, near=False, low=True)
        v, near = np.where(self.closed, top, v), self.statistics.largest <= NEAR * T
        w = np.where(self.closed, 0.0, np.exp(v - top))
        return _Terms(v, T, w, float(top), steep=False, near=near, low=not near or not self.statistics.all_allowed)

    def _exponentials(
        self, terms: _Terms, rows: slice, scratch: list[FloatArray]
    ) -> tuple[FloatArray, FloatArray, float]:
        """z and exp(z) of a block, in the scratch arrays; and the sum of the row maxima that were subtracted."""
        costs = self.costs[rows]
        z, E = (array[: costs.size].reshape(costs.shape) for array in scratch)
        z[...] = costs
        if terms.near:
            z *= -1.0 / terms.T
        else:
            np.subtract(self.least[rows, None], z, out=z)
            z *= 1.0 / terms.T
        if self.closed.any():
            z[:, self.closed] = -np.inf if terms.steep else LOWEST
        subtracted = 0.0
        if terms.steep:
            z += terms.v
            highest = z.max(axis=1, keepdims=True)
            z -= highest
            subtracted = float(highest.sum())
        if terms.low:
            np.maximum(z, LOWEST, out=z)
        np.exp(z, out=E)
        if terms.low:
            np.multiply(E, z > LOWEST, out=E)
        return z, E, subtracted

    def _chunk_sums(self, terms: _Terms, columns: IntArray | None, threads: Threads, chunk: slice) -> Sums:
        """Sums over a chunk of rows, without the factors w in the mass and the prices in the entropy."""
        scratch, sums = block_arrays(threads, 2, chunk, terms.v.size), Sums(np.zeros(terms.v.size))
        products = _products(terms.w, columns, chunk.stop - chunk.start)
        for rows in blocks(chunk, terms.v.size):
            z, E, subtracted = self._exponentials(terms, rows, scratch)
            total = np.dot(E, terms.w)  # unlike @, np.dot always releases the GIL
            inverse, logs = 1.0 / total, float(np.log(total).sum())
            np.multiply(E, z, out=z)
            entropy = logs - float(np.dot(inverse, np.dot(z, terms.w)))
            sums = sums.add(Sums(np.dot(inverse, E), logs + subtracted, entropy))
            if products is not None:
                products.add(np.multiply(E, inverse[:, None], out=E))
        return sums if products is None else replace(sums, products=products.sum())

    def _write_chunk(self, terms: _Terms, out: NDArray[Any], threads: Threads, chunk: slice) -> None:
        scratch = block_arrays(threads, 2, chunk, terms.v.size)
        for rows in blocks(chunk, terms.v.size):
            _, E, _ = self._exponentials(terms, rows, scratch)
            E *= terms.w
            np.divide(E, E.sum(axis=1, keepdims=True), out=out[rows], casting="same_kind")


class _AllProducts:
    """Σ_i q_ik q_il over a chunk, for all classes, from blocks of R = q / w."""

    def __init__(self, w: FloatArray) -> None:
        self.w, self.products = w, np.zeros((w.size, w.size))

    def add(self, R: FloatArray) -> None:
        """Add some rows."""
        self.products += np.dot(R.T, R)

    def sum(self) -> FloatArray:
        """The sum over all rows."""
        return self.products * (self.w[:, None] * self.w)


class _SomeProducts:
    """The same for some classes, with all others merged into one: a single product for the whole chunk is faster."""

    def __init__(self, w: FloatArray, columns: IntArray, n_rows: int) -> None:
        self.w, self.columns, self.n_rows = w[columns], columns, 0
        self.w_others = w.copy()
        self.w_others[columns] = 0.0
        self.Q = np.empty((n_rows, columns.size + (columns.size < w.size)), np.float32)

    def add(self, R: FloatArray) -> None:
        """Add some rows."""
        Q = self.Q[self.n_rows : self.n_rows + len(R)]
        self.n_rows += len(R)
        if self.columns.size < self.w_others.size:
            Q[:, -1] = np.dot(R, self.w_others)
            R = np.take(R, self.columns, axis=1, mode="clip")
        np.multiply(R, self.w, out=Q[:, : self.w.size], casting="same_kind")

    def sum(self) -> NDArray[np.float32]:
        """The sum over all rows."""
        return np.asarray(np.dot(self.Q.T, self.Q))


def _products(w: FloatArray, columns: IntArray | None, n_rows: int) -> _AllProducts | _SomeProducts | None:
    if columns is None:
        return None
    return _AllProducts(w) if w.size <= FEW else _SomeProducts(w, columns, n_rows)
