"""Distributions q_ik ∝ exp(v_k − costs[i, k] / T) of many rows: their sums, and in the end themselves.

Rows are worked through in blocks that stay in the cache, so nothing as large as the costs is made on the way. Blocks
have a fixed number of rows, and what they add up to is added in their order: threads change no digit of it.

While prices v are not too far apart, q_ik = w_k E_ik / Σ_l w_l E_il with w = exp(v) and E_ik = exp(−costs[i, k] / T).
That takes two products of a matrix and a vector, where a maximum and sums over the classes of every row take longer.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from transduce.label_step.cost_statistics import BoolArray, CostStatistics, look
from transduce.label_step.row_blocks import Threads, blocks

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

FEW = 64
"""Classes beyond which products are made in single precision, and only of those asked for: they show Newton the way."""
NEARLY_ALL = 0.8
"""Share of the classes from which on it is not worth while to pick them out."""
FLAT = 200.0
"""Prices no farther apart than this, in units of T, can be factors of exponentials that know nothing of them."""
NEAR = 500.0
"""Costs up to this, in units of T, need not be counted from the least of their row."""
LOWEST = -700.0
"""A logarithm of what is taken to be 0: below, exponentials are slow to make and soon no numbers any more."""


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over rows of their distributions.

    mass        (K,) Σ_i q_ik
    normaliser  Σ_i log Σ_k exp(v_k − c_ik / T), costs c counted from the least of each row among the open classes
    entropy     −Σ_ik q_ik log q_ik
    products    (C, C) Σ_i q_ik q_il of the classes asked for, and of all others as one, the last, if there are any
    """

    mass: FloatArray
    normaliser: float = 0.0
    entropy: float = 0.0
    products: NDArray[Any] | None = None

    @classmethod
    def of(cls, some: Iterable["Sums"], n_classes: int, columns: IntArray | None) -> "Sums":
        """All of these together, with products if there are columns for them."""
        side = 0 if columns is None else columns.size + (columns.size < n_classes)
        nothing = cls(np.zeros(n_classes), products=None if columns is None else np.zeros((side, side)))
        return reduce(cls.add, some, nothing)

    def add(self, more: "Sums") -> "Sums":
        """These sums and some more; the arrays of these are used for it."""
        if self.products is not None and more.products is not None:
            np.add(self.products, more.products, out=self.products)
        mass = np.add(self.mass, more.mass, out=self.mass)
        return Sums(mass, self.normaliser + more.normaliser, self.entropy + more.entropy, self.products)


def asked_for(columns: IntArray, n_classes: int) -> IntArray:
    """Classes that products are made of where some are wanted: all of few classes, or where nearly all are wanted.

    >>> asked_for(np.array([1]), 3)
    array([0, 1, 2])
    """
    return columns if n_classes > FEW and columns.size < NEARLY_ALL * n_classes else np.arange(n_classes)


class _Terms(NamedTuple):
    """q_ik ∝ w_k exp(z_ik) with z = −costs / T, less a constant for each row; steep prices are in z, with w = 1."""

    v: FloatArray
    T: float
    w: FloatArray
    top: float
    steep: bool
    near: bool
    low: bool


@dataclass(frozen=True, eq=False)
class SoftRows:
    """Costs (n, K) as they came, the least open cost (n,) of each row, and which classes (K,) are closed to all.

    >>> rows = SoftRows.of(np.array([[0.0, 1.0], [3.0, 0.0]]), np.zeros(2, bool))
    >>> sums = rows.at(np.zeros(2), 0.5)
    >>> sums.mass.round(4).tolist(), round(sums.entropy, 4), rows.facts.spread
    ([0.8833, 1.1167], 0.3826, 1.0)
    """

    costs: NDArray[Any]
    least: FloatArray
    closed: BoolArray
    facts: CostStatistics

    @classmethod
    def of(cls, costs: NDArray[Any], closed: BoolArray, threads: Threads | None = None) -> "SoftRows":
        """Look at every cost once."""
        least = np.empty(costs.shape[0])
        threads = threads or Threads()
        found = threads.each(partial(look, costs, closed, least, threads), *costs.shape)
        return cls(costs, least, closed, reduce(CostStatistics.__add__, found, CostStatistics()))

    def at(self, v: FloatArray, T: float, columns: IntArray | None = None, threads: Threads | None = None) -> Sums:
        """Sums at prices v (K,) in units of T, with products of some classes (see `asked_for`) if they are named."""
        terms = self._terms(v, T)
        threads = threads or Threads()
        some = threads.each(partial(self._sums, terms, columns, threads), *self.costs.shape)
        sums = Sums.of(some, v.size, columns)
        mass = terms.w * sums.mass
        normaliser = sums.normaliser + self.facts.n_rows * terms.top + (self.facts.least / T if terms.near else 0.0)
        entropy = sums.entropy if terms.steep else sums.entropy - float(np.dot(mass, terms.v - terms.top))
        return Sums(mass, normaliser, entropy, sums.products)

    def write(self, v: FloatArray, T: float, out: NDArray[Any], threads: Threads | None = None) -> None:
        """Write the distributions (n, K) at these prices; rows that are equal get equal ones."""
        threads = threads or Threads()
        deque(threads.each(partial(self._write, self._terms(v, T), out, threads), *self.costs.shape), maxlen=0)

    def _terms(self, v: FloatArray, T: float) -> _Terms:
        top, bottom = v.max(where=~self.closed, initial=-np.inf), v.min(where=~self.closed, initial=np.inf)
        if not 0.0 <= top - bottom <= FLAT:
            return _Terms(v, T, np.ones(v.size), 0.0, steep=True, near=False, low=True)
        v, near = np.where(self.closed, top, v), self.facts.largest <= NEAR * T
        w = np.where(self.closed, 0.0, np.exp(v - top))
        return _Terms(v, T, w, float(top), steep=False, near=near, low=not near or not self.facts.all_allowed)

    def _exponentials(self, terms: _Terms, rows: slice, room: list[FloatArray]) -> tuple[FloatArray, FloatArray, float]:
        """z and exp(z) of a block, in the arrays given; and the sum of what was taken from rows for steep prices."""
        costs = self.costs[rows]
        z, E = (array[: costs.size].reshape(costs.shape) for array in room)
        z[...] = costs
        if terms.near:
            z *= -1.0 / terms.T
        else:
            np.subtract(self.least[rows, None], z, out=z)
            z *= 1.0 / terms.T
        if self.closed.any():
            z[:, self.closed] = -np.inf if terms.steep else LOWEST
        taken = 0.0
        if terms.steep:
            z += terms.v
            highest = z.max(axis=1, keepdims=True)
            z -= highest
            taken = float(highest.sum())
        if terms.low:
            np.maximum(z, LOWEST, out=z)
        np.exp(z, out=E)
        if terms.low:
            np.multiply(E, z > LOWEST, out=E)
        return z, E, taken

    def _sums(self, terms: _Terms, columns: IntArray | None, threads: Threads, stretch: slice) -> Sums:
        """Sums over a stretch of rows; factors w are missing from the mass, and the prices from the entropy."""
        room, sums = threads.room(2, stretch, terms.v.size), Sums(np.zeros(terms.v.size))
        products = _products(terms.w, columns, stretch.stop - stretch.start)
        for rows in blocks(stretch, terms.v.size):
            z, E, taken = self._exponentials(terms, rows, room)
            total = np.dot(E, terms.w)  # unlike @, np.dot lets other threads go on whatever the size
            inverse, logs = 1.0 / total, float(np.log(total).sum())
            np.multiply(E, z, out=z)
            entropy = logs - float(np.dot(inverse, np.dot(z, terms.w)))
            sums = sums.add(Sums(np.dot(inverse, E), logs + taken, entropy))
            if products is not None:
                products.take(np.multiply(E, inverse[:, None], out=E))
        return sums if products is None else replace(sums, products=products.sum())

    def _write(self, terms: _Terms, out: NDArray[Any], threads: Threads, stretch: slice) -> None:
        room = threads.room(2, stretch, terms.v.size)
        for rows in blocks(stretch, terms.v.size):
            _, E, _ = self._exponentials(terms, rows, room)
            E *= terms.w
            np.divide(E, E.sum(axis=1, keepdims=True), out=out[rows], casting="same_kind")


class _OfFew:
    """Σ_i q_ik q_il over a stretch of rows, for all classes, from rows of R = q / w block by block."""

    def __init__(self, w: FloatArray) -> None:
        self.w, self.products = w, np.zeros((w.size, w.size))

    def take(self, R: FloatArray) -> None:
        """Add some rows."""
        self.products += np.dot(R.T, R)

    def sum(self) -> FloatArray:
        """Of all rows."""
        return self.products * (self.w[:, None] * self.w)


class _OfMany:
    """The same for some of many classes, and all others as one: a single product for all rows is quicker."""

    def __init__(self, w: FloatArray, columns: IntArray, n_rows: int) -> None:
        self.w, self.columns, self.n_rows = w[columns], columns, 0
        self.w_others = w.copy()
        self.w_others[columns] = 0.0
        self.Q = np.empty((n_rows, columns.size + (columns.size < w.size)), np.float32)

    def take(self, R: FloatArray) -> None:
        """Note some rows."""
        Q = self.Q[self.n_rows : self.n_rows + len(R)]
        self.n_rows += len(R)
        if self.columns.size < self.w_others.size:
            Q[:, -1] = np.dot(R, self.w_others)
            R = np.take(R, self.columns, axis=1, mode="clip")
        np.multiply(R, self.w, out=Q[:, : self.w.size], casting="same_kind")

    def sum(self) -> NDArray[np.float32]:
        """Of all rows."""
        return np.asarray(np.dot(self.Q.T, self.Q))


def _products(w: FloatArray, columns: IntArray | None, n_rows: int) -> _OfFew | _OfMany | None:
    if columns is None:
        return None
    return _OfFew(w) if w.size <= FEW else _OfMany(w, columns, n_rows)
