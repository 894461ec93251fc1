"""Label costs on a device as label steps see them: passes over all rows run there, a few rows come to memory.

Labels and margins (n,) are NumPy arrays, and so are the costs of rows near ties, which the search works on.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from transduce.arrays import BoolArray, FloatArray, IntArray
from transduce.engines.device.arrays import BLOCK_CELLS, Arrays, DeviceArray, Replay, to_host
from transduce.label_step._kernels.ties import APART, TIE, choose_with_margins
from transduce.label_step.partitions import LocalPartitions, Partition
from transduce.label_step.row_blocks import rows_per_block
from transduce.label_step.softmax_sums import CostStatistics, Sums
from transduce.parallel import Threads, row_blocks

LOWEST = -1e4
"""Logits count as no less: their exponentials are 0."""


@dataclass(eq=False)
class DevicePartition(Partition):
    """All rows without a full label; see `Partition`."""

    costs: Any
    arrays: Arrays = field(kw_only=True)
    soft_rows: "DeviceSoftmaxRows | None" = field(default=None, kw_only=True)

    def take(self, rows: IntArray | slice) -> FloatArray:
        """Copy the costs of some rows to memory."""
        taken = self.arrays.xp.take(self.costs, self.arrays.ints(np.arange(self.n_rows)[rows]), axis=0)
        return np.ascontiguousarray(to_host(taken), dtype=np.float64)

    def blocks(self, rows: IntArray | None = None) -> Iterator[tuple[slice, FloatArray]]:
        """Copy blocks of rows to memory; see `CostRows.blocks`."""
        rows = np.arange(self.n_rows) if rows is None else rows
        for some in row_blocks(rows.size, rows_per_block(self.n_classes)):
            yield some, self.take(rows[some])

    def _device_blocks(self) -> Iterator[tuple[slice, DeviceArray]]:
        """Blocks of rows in double precision, on the device."""
        for some in row_blocks(self.n_rows, max(BLOCK_CELLS // self.n_classes, 1)):
            yield some, self.arrays.xp.astype(self.costs[some, :], self.arrays.xp.float64)

    def cheapest(self, prices: FloatArray, tie_prices: FloatArray, first: int) -> tuple[IntArray, FloatArray]:
        """The cheapest label of each row and its margin; ties are decided in memory. See `Partition.cheapest`."""
        labels, margins = np.empty(self.n_rows, np.int64), np.empty(self.n_rows)
        xp, v, slacks, span = self.arrays.xp, self.doubles(prices), np.empty(self.n_rows), float(np.ptp(prices))
        for block, costs in self._device_blocks():
            reduced = costs - v
            best = xp.min(reduced, axis=1)
            label = xp.argmin(reduced, axis=1)
            others = xp.where(self.arrays.is_label(label, self.n_classes), xp.inf, reduced)
            found = (label, xp.min(others, axis=1) - best, TIE * (xp.abs(best + xp.take(v, label)) + span))
            labels[block], margins[block], slacks[block] = map(to_host, found)
        tied = np.flatnonzero(~(margins > slacks))
        np.maximum(margins, APART, out=margins)
        own = np.empty(tied.size, np.int64), np.empty(tied.size)
        choose_with_margins(self.take(tied), prices, tie_prices, first + tied, self.labels[tied], *own)
        labels[tied], margins[tied] = own
        return labels, margins

    def label_sums(self, prices: FloatArray, labelings: IntArray) -> FloatArray:
        """Sums of labelings at prices, in one pass; see `CostRows.label_sums`."""
        xp, v, sums = self.arrays.xp, self.doubles(prices), np.zeros((len(labelings), 3))
        for block, costs in self._device_blocks():
            best = xp.min(costs - v, axis=1)
            for row, labels in zip(sums, labelings[:, block], strict=True):
                label = self.arrays.ints(labels)
                chosen = xp.take_along_axis(costs, label[:, None], axis=1)[:, 0]
                parts = xp.stack((chosen, xp.abs(chosen), chosen - xp.take(v, label) - best))
                row += to_host(xp.sum(parts, axis=1))
        return sums

    def doubles(self, values: FloatArray) -> DeviceArray:
        """Copy numbers to the device in double precision."""
        return self.arrays.copied(np.asarray(values, np.float64))

    def softmax_rows(self, closed: BoolArray, n_threads: int | Threads) -> Any:
        """The rows as an entropic label step sees them."""
        self.soft_rows = self.soft_rows or DeviceSoftmaxRows.create(self.arrays, *self.costs.shape)
        self.soft_rows.read(self.costs, closed)
        return self.soft_rows

    def empty_posterior(self) -> DeviceArray:
        """An array for the distributions (n, K) of the rows."""
        return self.arrays.xp.zeros_like(self.costs) if self.soft_rows is None else self.soft_rows.posterior

    def write_labels(self, labels: IntArray, out: DeviceArray) -> None:
        """Write labels (n,) as distributions (n, K)."""
        out[:, :] = self.arrays.one_hot(self.arrays.ints(labels), self.n_classes)


@dataclass(eq=False)
class DeviceSoftmaxRows:
    """Distributions q_ik ∝ exp(v_k − costs[i, k] / T) on a device; see `softmax_sums.SoftmaxRows`.

    They can be read again, with other costs: all arrays stay in their place, so that what is done can be replayed.

    costs (n, K)      measured from the least open cost of each row, and +inf in closed classes
    posterior (n, K)  the distributions, once they are written
    at (1, K + 1)     v − costs / T are the logits: v and 1 / T
    found             mass (K,), normalizer, entropy with the other sign and products (K, K), in a row
    measured (5,)     what the statistics of the costs are made of
    is_open (1, K)    classes that may have rows; None if all may
    closed (K,)       classes that may have none, once costs were read
    """

    arrays: Arrays
    costs: DeviceArray
    posterior: DeviceArray
    at: DeviceArray
    found: DeviceArray
    measured: DeviceArray
    is_open: DeviceArray | None = None
    closed: BoolArray | None = None
    statistics: CostStatistics = field(default_factory=CostStatistics)
    reading: Replay = field(default_factory=Replay)
    writing: Replay = field(default_factory=Replay)
    summing: dict[bool, Replay] = field(default_factory=lambda: {False: Replay(), True: Replay()})

    @classmethod
    def create(cls, arrays: Arrays, n_rows: int, n_classes: int) -> "DeviceSoftmaxRows":
        """Make place for so many rows."""
        costs, posterior, at = (arrays.zeros(n, k) for n, k in (*2 * ((n_rows, n_classes),), (1, n_classes + 1)))
        found, measured = (arrays.copied(np.zeros(n)) for n in (n_classes * (n_classes + 1) + 2, 5))
        return cls(arrays, costs, posterior, at, found, measured)

    def read(self, costs: DeviceArray, closed: BoolArray) -> None:
        """Read every cost once; the same classes are closed each time."""
        if not costs.shape[0]:
            return
        if self.closed is None and closed.any():
            self.is_open = self.arrays.bools(~closed)[None, :]
        assert self.closed is None or np.array_equal(closed, self.closed)
        self.closed = closed
        self.costs[:, :] = costs
        self.reading(self._read, self.costs)
        n_finite, n_tied, *sums = to_host(self.measured).tolist()
        self.statistics = CostStatistics(int(costs.shape[0]), int(n_finite), int(n_tied), *sums)

    def _read(self) -> None:
        arrays, xp, costs = self.arrays, self.arrays.xp, self.costs
        zero, infinity = arrays.number(0.0), arrays.number(np.inf)
        lowest, highest = xp.min(costs, axis=1, keepdims=True), xp.max(costs, axis=1, keepdims=True)
        finite, is_tied = costs < infinity, lowest == highest
        above = arrays.total(xp.where(finite, costs - lowest, zero))
        largest = xp.astype(xp.max(xp.where(finite, xp.abs(costs), zero)), xp.float64)
        least = lowest
        if self.is_open is not None:
            costs = xp.where(self.is_open, costs, infinity)
            least = xp.min(costs, axis=1, keepdims=True)
        counts = (xp.astype(xp.count_nonzero(flags), xp.float64) for flags in (finite, is_tied))
        self.measured[:] = xp.stack((*counts, arrays.total(least), above, largest))
        self.costs[:, :] = costs - least

    def _logits(self) -> DeviceArray:
        """v − costs / T (n, K)."""
        return self.arrays.plus_product(self.at[:, :-1], self.costs, self.at[:, -1:], -1.0)

    def _set(self, v: FloatArray, T: float) -> None:
        self.at[:, :] = self.arrays.floats(np.append(v, 1.0 / float(T))[None, :])

    def sums(self, v: FloatArray, T: float, columns: IntArray | None = None) -> Sums:
        """Sums at prices v (K,) in units of T, with products of some classes; see `SoftmaxRows.sums`."""
        K, with_products = v.size, columns is not None
        if not self.statistics.n_rows:
            return Sums.total((), K, columns)
        self._set(v, T)
        self.summing[with_products](lambda: self._sum(with_products), self.costs)
        mass, *rest = np.split(to_host(self.found), [K, K + 1, K + 2])
        products = None if columns is None else _merged(rest[2].reshape(K, K), columns)
        return Sums(mass.copy(), float(rest[0][0]), -float(rest[1][0]), products)

    def _sum(self, with_products: bool) -> None:
        xp, total, K, z = self.arrays.xp, self.arrays.total, self.costs.shape[1], self._logits()
        logs = self.arrays.log_softmax(z)
        q, normalizer = xp.exp(logs), total(xp.max(z, axis=1) - xp.max(logs, axis=1))
        less_entropy = total(q * xp.clip(logs, min=LOWEST))  # no 0 · ∞
        mass = xp.sum(q, axis=0, dtype=xp.float64)
        self.found[: K + 2] = xp.concat((mass, normalizer[None], less_entropy[None]))
        if with_products:
            self.found[K + 2 :] = xp.reshape(q.T @ q, (-1,))

    def write(self, v: FloatArray, T: float, out: DeviceArray) -> None:
        """Write the distributions (n, K) at these prices."""
        if self.statistics.n_rows:
            self._set(v, T)
            self.writing(self._write, self.costs)
        if out is not self.posterior:
            out[:, :] = self.posterior

    def _write(self) -> None:
        self.posterior[:, :] = self.arrays.softmax(self._logits())


def _merged(products: FloatArray, columns: IntArray) -> FloatArray:
    """Products (C, C) of some classes, with all others merged into one, the last."""
    others = np.setdiff1d(np.arange(len(products)), columns)
    if not others.size:
        return products[np.ix_(columns, columns)]
    chosen = np.zeros((len(products), columns.size + 1))
    chosen[columns, np.arange(columns.size)] = 1.0
    chosen[others, -1] = 1.0
    return np.asarray(chosen.T @ products @ chosen)


def device_partitions(
    costs: DeviceArray, labels: IntArray | None, arrays: Arrays, soft_rows: DeviceSoftmaxRows | None = None
) -> LocalPartitions:
    """All rows in one partition; labels (n,) are the present ones, if there are any."""
    present = np.full(costs.shape[0], -1, np.int64) if labels is None else labels
    return LocalPartitions([DevicePartition(costs, present, arrays=arrays, soft_rows=soft_rows)])
