"""Partitions of the rows of a label problem, possibly in many places.

A label step reaches partitions through `Partitions.each`: a module-level function goes to every partition and small
answers come back. Arguments and answers have the size of the classes, or of a few chosen rows; costs stay in place.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, TypeVarTuple

import numpy as np
from numpy.typing import NDArray

from transduce.label_step._kernels.ties import choose_with_margins
from transduce.label_step.row_blocks import BoolArray, CostRows, FloatArray, IntArray
from transduce.label_step.softmax_sums import SoftmaxRows
from transduce.parallel import Threads

Answer = TypeVar("Answer")
Arguments = TypeVarTuple("Arguments")


@dataclass(eq=False)
class Partition(CostRows):
    """Some of the rows, and what a label step keeps here between calls.

    In the end its state holds "labels" (n,), or "posterior" (n, K) of a soft label step, and nothing else.
    """

    costs: NDArray[Any]  # (n, K), +inf where a label is forbidden
    labels: IntArray  # (n,) present labels, or −1
    state: dict[str, Any] = field(default_factory=dict)

    def cheapest(self, prices: FloatArray, tie_prices: FloatArray, first: int) -> tuple[IntArray, FloatArray]:
        """The cheapest label of each row at some prices, and its margin; `first` is the number of the first row."""
        labels, margins = np.empty(self.n_rows, np.int64), np.empty(self.n_rows)
        for block, costs in self.blocks():
            rows = np.arange(first + block.start, first + block.stop)
            choose_with_margins(costs, prices, tie_prices, rows, self.labels[block], labels[block], margins[block])
        return labels, margins

    def softmax_rows(self, closed: BoolArray, n_threads: int | Threads) -> SoftmaxRows:
        """The rows as an entropic label step sees them; some classes (K,) are closed."""
        return SoftmaxRows.create(self.costs, closed, Threads.of(n_threads))

    def empty_posterior(self) -> Any:
        """An array for the distributions (n, K) of the rows."""
        return np.empty(self.costs.shape, np.float32 if self.costs.dtype == np.float32 else np.float64)

    def write_labels(self, labels: IntArray, out: Any) -> None:
        """Write labels (n,) as distributions (n, K)."""
        out[...] = 0.0
        out[np.arange(self.n_rows), labels] = 1.0

    def reset(self, **result: Any) -> None:
        """Forget everything that a label step has kept, but for its result."""
        self.state = result


class Partitions(Protocol):
    """All partitions, wherever they are."""

    def each(self, function: Callable[[Partition, *Arguments], Answer], *args: *Arguments) -> list[Answer]:
        """Return function(partition, *args) for all partitions, in order."""
        ...

    def each_with(self, function: Callable[[Partition, Any], Answer], own: Sequence[Any]) -> list[Answer]:
        """Return function(partition, own[p]) for all partitions p, in order."""
        ...


@dataclass(frozen=True, eq=False)
class LocalPartitions:
    """Partitions in this process."""

    partitions: Sequence[Partition]

    def each(self, function: Callable[[Partition, *Arguments], Answer], *args: *Arguments) -> list[Answer]:
        """Return function(partition, *args) for all partitions, in order."""
        return [function(partition, *args) for partition in self.partitions]

    def each_with(self, function: Callable[[Partition, Any], Answer], own: Sequence[Any]) -> list[Answer]:
        """Return function(partition, own[p]) for all partitions p, in order."""
        return [function(partition, mine) for partition, mine in zip(self.partitions, own, strict=True)]
