"""Partitions of the rows of a label problem, possibly in many places.

A label step reaches partitions through `Partitions.each`: a module-level function goes to every partition and small
answers come back. Arguments and answers have the size of the classes, or of a few chosen rows; costs stay in place.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, TypeVarTuple

from numpy.typing import NDArray

from transduce.label_step.row_blocks import CostRows, IntArray

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
