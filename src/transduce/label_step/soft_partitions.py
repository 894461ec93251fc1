"""Rows of an entropic label step in one or many partitions: prices go out, and sums of distributions come back.

One call reads the costs, each point of the search takes one more, and the last one writes the distributions.
"""

from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeAlias

import numpy as np

from transduce.arrays import Array, BoolArray, FloatArray, IntArray
from transduce.class_prior.bounds import Bounds
from transduce.label_step.count_tree import CountTree
from transduce.label_step.exact import Exact
from transduce.label_step.partitions import LocalPartitions, Partition, Partitions
from transduce.label_step.problem import LabelProblem
from transduce.label_step.softmax_sums import FEW, CostStatistics, SoftmaxRows, Sums
from transduce.label_step.solution import LabelSolution
from transduce.parallel import Threads

MAX_CLASSES_WITH_PRODUCTS = 256
"""Up to this many classes, products in memory are computed with other sums in case they are needed."""
Reading: TypeAlias = tuple[BoolArray, int | Threads]
"""The classes (K,) that may have no rows, and the number of threads, or the threads themselves."""


@dataclass(eq=False)
class SoftPartitions:
    """The rows of a soft label problem; rows in memory have a `problem` and a `posterior` to write."""

    partitions: Partitions
    tree: CountTree
    statistics: CostStatistics
    reading: Reading
    problem: LabelProblem | None = None
    posterior: Array | None = None
    exact: LabelSolution | None = None

    @classmethod
    def of_problem(cls, problem: LabelProblem, n_threads: int | Threads, out: Array | None) -> "SoftPartitions":
        """Rows in memory, whose posterior is written to `out` or to a new array."""
        shape = problem.costs.shape
        out = np.empty(shape) if out is None else out
        if out.shape != shape or out.dtype.kind != "f":
            raise ValueError(f"out must be floats of shape {shape}, but are {out.dtype} of {out.shape}.")
        rows = LocalPartitions([Partition(problem.costs, np.zeros(0, np.int64))])
        reading = (problem.tree.closed_classes, n_threads)
        return cls(rows, problem.tree, rows.each(_read, reading)[0], reading, problem, out)

    @classmethod
    def of_partitions(cls, partitions: Partitions, bounds: Bounds, n_threads: int | Threads) -> "SoftPartitions":
        """Rows elsewhere; each partition has `n_threads` threads."""
        reading = (CountTree.create(bounds, 1).closed_classes, n_threads)
        statistics = reduce(CostStatistics.__add__, partitions.each(_read, reading), CostStatistics())
        return cls(partitions, CountTree.create(bounds, statistics.n_rows), statistics, reading)

    @property
    def eager_products(self) -> bool:
        """Whether to compute products before they are needed: a separate pass may take longer than useless ones."""
        return self.problem is None or self.tree.n_classes <= MAX_CLASSES_WITH_PRODUCTS

    def sums(self, v: FloatArray, T: float, columns: IntArray | None) -> Sums:
        """Sums over all rows at prices v (K,) in units of T, with products of these columns."""
        some = self.partitions.each(_sums, self.reading, v, T, columns, self.problem is None)
        return Sums.total(some, v.size, columns)

    def solve_exactly(self) -> LabelSolution:
        """The solution of the exact label step; raises InfeasibleError if the counts cannot be met."""
        if self.exact is None:
            problem, bounds = self.problem, self.tree.bounds
            self.exact = Exact().solve(problem) if problem else Exact().solve_partitions(self.partitions, bounds)
        return self.exact

    def write(self, v: FloatArray, T: float) -> None:
        """Leave the distributions at these prices in state["posterior"]."""
        self.partitions.each(_write, self.reading, v, T, self.posterior)

    def write_exact(self) -> None:
        """Leave the labels of the exact label step as distributions."""
        labels = None if self.problem is None else self.solve_exactly().labels
        self.partitions.each(_write_labels, labels, self.posterior)


# ---- what a partition does


def _read(partition: Partition, reading: Reading) -> CostStatistics:
    """Statistics of the costs, after forgetting earlier ones."""
    partition.state.clear()
    return _rows(partition, reading).statistics


def _rows(partition: Partition, reading: Reading) -> SoftmaxRows:
    """Rows, kept between calls; made again where the exact label step has cleared them."""
    if "rows" not in partition.state:
        closed, n_threads = reading
        partition.state["rows"] = partition.softmax_rows(closed, n_threads)
    rows: SoftmaxRows = partition.state["rows"]
    return rows


def _sums(
    partition: Partition, reading: Reading, v: FloatArray, T: float, columns: IntArray | None, is_remote: bool
) -> Sums:
    """Sums at these prices; products of many classes travel in the single precision in which they are computed."""
    sums = _rows(partition, reading).sums(v, T, columns)
    if not is_remote or sums.products is None or v.size <= FEW:
        return sums
    return replace(sums, products=sums.products.astype(np.float32))


def _write(partition: Partition, reading: Reading, v: FloatArray, T: float, out: Array | None) -> None:
    posterior = partition.empty_posterior() if out is None else out
    _rows(partition, reading).write(v, T, posterior)
    partition.state = {"posterior": posterior}


def _write_labels(partition: Partition, labels: IntArray | None, out: Array | None) -> None:
    posterior = partition.empty_posterior() if out is None else out
    partition.write_labels(partition.state["labels"] if labels is None else labels, posterior)
    partition.state = {"posterior": posterior}
