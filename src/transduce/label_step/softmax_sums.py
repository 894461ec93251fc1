"""Distributions q_ik ∝ exp(v_k − costs[i, k] / T) of many rows: their sums, and in the end themselves.

Blocks of rows stay in the cache, have a fixed size and are added up in order: the number of threads changes no digit.
While prices v are not too far apart, q_ik = w_k E_ik / Σ_l w_l E_il with w = exp(v) and E_ik = exp(−costs[i, k] / T).
That takes two products of a matrix and a vector, which is faster than a maximum and sums over the classes of every row.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import NamedTuple, TypeVar

import numpy as np

from transduce.arrays import Array, BoolArray, FloatArray, IntArray
from transduce.label_step.row_blocks import blocks, chunks
from transduce.parallel import Threads

Result = TypeVar("Result")

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
MAX_BY_COLUMN = 64
"""Up to this many classes, the least cost of each row is found faster from columns than from rows."""


@dataclass(frozen=True)
class CostStatistics:
    """Statistics of a cost matrix that the search needs before it starts.

    n_rows, n_finite  rows, and costs that are not +inf
    n_tied            rows that all labels cost the same
    least             sum of the least cost of each row among the open classes: +inf if one has none that is finite
    above             sum of the finite costs, each less the least of its row among all classes
    largest           greatest absolute value of a finite cost
    """

    n_rows: int = 0
    n_finite: int = 0
    n_tied: int = 0
    least: float = 0.0
    above: float = 0.0
    largest: float = 0.0

    @property
    def spread(self) -> float:
        """Mean of the finite costs, counted from the least of each row."""
        return self.above / max(self.n_finite, 1)

    def __add__(self, more: "CostStatistics") -> "CostStatistics":
        return CostStatistics(
            self.n_rows + more.n_rows,
            self.n_finite + more.n_finite,
            self.n_tied + more.n_tied,
            self.least + more.least,
            self.above + more.above,
            max(self.largest, more.largest),
        )


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
    products: Array | None = None

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
    """Classes whose products are computed if some are needed: all if there are few, or if nearly all are needed."""
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
    """Costs (n, K), the least open cost (n,) of each row, and which classes (K,) may have no rows."""

    costs: Array
    least: FloatArray
    closed: BoolArray
    threads: Threads
    statistics: CostStatistics = CostStatistics()

    @classmethod
    def create(cls, costs: Array, closed: BoolArray, threads: Threads) -> "SoftmaxRows":
        """Read every cost once."""
        rows = cls(costs, np.empty(costs.shape[0]), closed, threads)
        return replace(rows, statistics=reduce(CostStatistics.__add__, rows._map(rows._read_chunk), rows.statistics))

    def sums(self, v: FloatArray, T: float, columns: IntArray | None = None) -> Sums:
        """Sums at prices v (K,) in units of T, with products of some classes (see `product_columns`)."""
        terms = self._terms(v, T)
        sums = Sums.total(self._map(partial(self._chunk_sums, terms, columns)), v.size, columns)
        mass, least = terms.w * sums.mass, self.statistics.least / T if terms.near else 0.0
        normalizer = sums.normalizer + self.statistics.n_rows * terms.top + least
        entropy = sums.entropy if terms.steep else sums.entropy - float(np.dot(mass, terms.v - terms.top))
        return Sums(mass, normalizer, entropy, sums.products)

    def write(self, v: FloatArray, T: float, out: Array) -> None:
        """Write the distributions (n, K) at these prices; equal rows get equal ones."""
        list(self._map(partial(self._write_chunk, self._terms(v, T), out)))

    def _map(self, function: Callable[[slice], Result]) -> Iterator[Result]:
        return self.threads.map(function, chunks(*self.costs.shape))

    def _read_chunk(self, chunk: slice) -> CostStatistics:
        """Statistics of a chunk of rows; writes the least open cost of each row."""
        closed, least, found = self.closed, self.least, CostStatistics()
        axis = 0 if closed.size <= MAX_BY_COLUMN else 1
        for rows in blocks(chunk, closed.size):
            some = self.costs[rows].T if axis == 0 else self.costs[rows]
            block, _ = self._scratch(some.shape)
            block[...] = some
            lowest, highest = block.min(axis=axis, keepdims=True), block.max(axis=axis, keepdims=True)
            open_costs = np.compress(~closed, block, axis=axis) if closed.any() else block
            least[rows] = open_costs.min(axis=axis, initial=np.inf)
            finite = slice(None) if highest.max() < np.inf else block < np.inf
            largest = float(np.abs(block[finite]).max())
            block -= lowest
            above = block[finite]
            n_tied, sums = int(np.count_nonzero(lowest == highest)), (float(least[rows].sum()), float(above.sum()))
            found += CostStatistics(rows.stop - rows.start, above.size, n_tied, *sums, largest)
        return found

    def _terms(self, v: FloatArray, T: float) -> _Terms:
        top, bottom = v.max(where=~self.closed, initial=-np.inf), v.min(where=~self.closed, initial=np.inf)
        if not 0.0 <= top - bottom <= FLAT:
            return _Terms(v, T, np.ones(v.size), 0.0, steep=True, near=False, low=True)
        v, near = np.where(self.closed, top, v), self.statistics.largest <= NEAR * T
        w = np.where(self.closed, 0.0, np.exp(v - top))
        low = not near or self.statistics.n_finite < self.costs.size
        return _Terms(v, T, w, float(top), steep=False, near=near, low=low)

    def _scratch(self, shape: tuple[int, ...]) -> list[FloatArray]:
        """Two arrays for a block of rows, which each thread uses again for the next."""
        size = math.prod(shape)
        return [array[:size].reshape(shape) for array in self.threads.scratch(2, size)]

    def _exponentials(self, terms: _Terms, rows: slice) -> tuple[FloatArray, FloatArray, float]:
        """z and exp(z) of a block, in scratch arrays; and the sum of the row maxima that were subtracted."""
        costs = self.costs[rows]
        z, E = self._scratch(costs.shape)
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

    def _chunk_sums(self, terms: _Terms, columns: IntArray | None, chunk: slice) -> Sums:
        """Sums over a chunk of rows, without the factors w in the mass and the prices in the entropy."""
        n_classes, is_few, sums = terms.w.size, terms.w.size <= FEW, Sums(np.zeros(terms.w.size))
        Q: Array = np.zeros((n_classes, n_classes) if is_few else 0)
        if columns is not None and not is_few:
            Q = np.zeros((chunk.stop - chunk.start, columns.size + (columns.size < n_classes)), np.float32)
        for rows in blocks(chunk, n_classes):
            z, E, subtracted = self._exponentials(terms, rows)
            total = np.dot(E, terms.w)  # unlike @, np.dot always releases the GIL
            inverse, logs = 1.0 / total, float(np.log(total).sum())
            np.multiply(E, z, out=z)
            entropy = logs - float(np.dot(inverse, np.dot(z, terms.w)))
            sums = sums.add(Sums(np.dot(inverse, E), logs + subtracted, entropy))
            if columns is not None:
                np.multiply(E, inverse[:, None], out=E)
                if is_few:
                    Q += np.dot(E.T, E)
                else:
                    _write_columns(E, terms.w, columns, Q[rows.start - chunk.start : rows.stop - chunk.start])
        if columns is None:
            return sums
        # with many classes, a single product for the whole chunk is faster
        return replace(sums, products=Q * (terms.w[:, None] * terms.w) if is_few else np.dot(Q.T, Q))

    def _write_chunk(self, terms: _Terms, out: Array, chunk: slice) -> None:
        for rows in blocks(chunk, terms.v.size):
            _, E, _ = self._exponentials(terms, rows)
            E *= terms.w
            np.divide(E, E.sum(axis=1, keepdims=True), out=out[rows], casting="same_kind")


def _write_columns(R: FloatArray, w: FloatArray, columns: IntArray, out: Array) -> None:
    """Write q = w R for some classes, and its sum over all others, if there are any, to the last column."""
    if columns.size < w.size:
        others = w.copy()
        others[columns] = 0.0
        out[:, -1] = np.dot(R, others)
        R = np.take(R, columns, axis=1, mode="clip")
    np.multiply(R, w[columns], out=out[:, : columns.size], casting="same_kind")
