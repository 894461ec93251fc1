"""Rows of an entropic label step in one or many partitions: prices go out, and sums of distributions come back.

One call reads the costs, each point of the search takes one more, and the last one writes the distributions where the
rows are. Rows in memory are the case of one partition.
"""

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.class_prior.bounds import Bounds
from transduce.label_step.cost_statistics import CostStatistics
from transduce.label_step.count_tree import CountTree
from transduce.label_step.exact import Exact
from transduce.label_step.partitions import LocalPartitions, Partition, Partitions
from transduce.label_step.problem import LabelProblem
from transduce.label_step.row_blocks import BoolArray, FloatArray, IntArray
from transduce.label_step.softmax_sums import FEW, SoftmaxRows, Sums
from transduce.label_step.solution import LabelSolution
from transduce.parallel import Threads

MAX_CLASSES_WITH_PRODUCTS = 256
"""Up to this many classes, products in memory are computed with other sums in case they are needed."""


@dataclass(eq=False)
class SoftPartitions:
    """The rows of a soft label problem; `problem` is None where they are not in memory."""

    partitions: Partitions
    tree: CountTree
    statistics: CostStatistics
    n_threads: int
    problem: LabelProblem | None = None
    exact: LabelSolution | None = None

    @classmethod
    def of_problem(cls, problem: LabelProblem, n_threads: int) -> "SoftPartitions":
        """Rows in memory."""
        rows = LocalPartitions([Partition(problem.costs, np.zeros(0, np.int64))])
        (statistics,) = rows.each(_read, problem.tree.closed_classes, n_threads)
        return cls(rows, problem.tree, statistics, n_threads, problem)

    @classmethod
    def of_partitions(cls, partitions: Partitions, bounds: Bounds, n_threads: int) -> "SoftPartitions":
        """Rows elsewhere; each partition has `n_threads` threads."""
        found = partitions.each(_read, CountTree.create(bounds, 1).closed_classes, n_threads)
        statistics = reduce(CostStatistics.__add__, found, CostStatistics())
        return cls(partitions, CountTree.create(bounds, statistics.n_rows), statistics, n_threads)

    @property
    def eager_products(self) -> bool:
        """Whether to compute products with other sums before it is known that they are needed.

        A separate pass would take longer than products that turn out to be useless.
        """
        return self.problem is None or self.tree.n_classes <= MAX_CLASSES_WITH_PRODUCTS

    def sums(self, v: FloatArray, T: float, columns: IntArray | None) -> Sums:
        """Sums over all rows at prices v (K,) in units of T, with products of these columns."""
        is_remote = self.problem is None
        some = self.partitions.each(_sums, self.tree.closed_classes, self.n_threads, v, T, columns, is_remote)
        return Sums.total(some, v.size, columns)

    def solve_exactly(self) -> LabelSolution:
        """The solution of the exact label step; raises InfeasibleError if the counts cannot be met."""
        if self.exact is None:
            self.exact = (
                Exact().solve_partitions(self.partitions, self.tree.bounds)
                if self.problem is None
                else Exact().solve(self.problem)
            )
        return self.exact

    def write(self, v: FloatArray, T: float, out: NDArray[Any] | None = None) -> None:
        """Leave the distributions at these prices in state["posterior"], or in `out` if rows are in memory."""
        self.partitions.each(_write, self.tree.closed_classes, self.n_threads, v, T, out)

    def write_exact(self, out: NDArray[Any] | None = None) -> None:
        """Leave the labels of the exact label step as distributions."""
        labels = None if self.problem is None else self.solve_exactly().labels
        self.partitions.each(_write_labels, labels, out)


# ---- what a partition does


def _read(partition: Partition, closed: BoolArray, n_threads: int) -> CostStatistics:
    """Statistics of the costs, after forgetting earlier ones."""
    partition.state.clear()
    return _rows(partition, closed, n_threads)[0].statistics


def _rows(partition: Partition, closed: BoolArray, n_threads: int) -> tuple[SoftmaxRows, Threads]:
    """Rows and threads, kept between calls; made again where the exact label step has cleared them."""
    state = partition.state
    if "rows" not in state:
        state["threads"] = Threads(n_threads)
        state["rows"] = SoftmaxRows.create(partition.costs, closed, state["threads"])
    return state["rows"], state["threads"]


def _sums(
    partition: Partition,
    closed: BoolArray,
    n_threads: int,
    v: FloatArray,
    T: float,
    columns: IntArray | None,
    is_remote: bool,
) -> Sums:
    """Sums at these prices; products of many classes travel in the single precision in which they are computed."""
    rows, threads = _rows(partition, closed, n_threads)
    sums = rows.sums(v, T, columns, threads)
    if not is_remote or sums.products is None or v.size <= FEW:
        return sums
    return replace(sums, products=sums.products.astype(np.float32))


def _write(
    partition: Partition, closed: BoolArray, n_threads: int, v: FloatArray, T: float, out: NDArray[Any] | None
) -> None:
    posterior = _empty_posterior(partition) if out is None else out
    rows, threads = _rows(partition, closed, n_threads)
    rows.write(v, T, posterior, threads)
    _finish(partition, posterior)


def _write_labels(partition: Partition, labels: IntArray | None, out: NDArray[Any] | None) -> None:
    labels = partition.state["labels"] if labels is None else labels
    posterior = _empty_posterior(partition) if out is None else out
    posterior[...] = 0.0
    posterior[np.arange(partition.n_rows), labels] = 1.0
    _finish(partition, posterior)


def _empty_posterior(partition: Partition) -> NDArray[Any]:
    return np.empty(partition.costs.shape, np.float32 if partition.costs.dtype == np.float32 else np.float64)


def _finish(partition: Partition, posterior: NDArray[Any]) -> None:
    partition.state.clear()
    partition.state["posterior"] = posterior
