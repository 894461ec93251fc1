"""State of a restart on all shards, and its label costs as label steps see them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from transduce.engines.base import StepSettings
from transduce.engines.dask.shards import call_blocks, call_partitions
from transduce.engines.dask.worker_pool import WorkerPool
from transduce.label_step.partitions import Partition

if TYPE_CHECKING:
    from transduce.engines.dask.engine import DaskEngine

Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")


@dataclass(frozen=True, eq=False)
class ShardedPartitions:
    """The label costs of a restart, one partition for each block, as label steps see them."""

    rows: "DaskEngine"
    name: str

    def each(
        self,
        function: Callable[Concatenate[Partition, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> list[Answer]:
        """Return function(partition, *args) of all partitions."""
        return self._call(function, [args] * len(self.rows.source.X), kwargs)

    def each_with(self, function: Callable[[Partition, Any], Answer], own: Sequence[Any]) -> list[Answer]:
        """Return function(partition, own[p]) of all partitions p."""
        return self._call(function, [(one,) for one in own], {})

    def _call(self, function: Any, args: Sequence[Any], kwargs: Any) -> list[Any]:
        ends = np.cumsum([0, *map(len, self.rows.source.shards)])
        own = [(args[a:b], kwargs) for a, b in pairwise(ends)]
        answers = self.rows.pool.call(call_partitions, self.name, function, per_shard=own)
        return [answer for of_shard in answers for answer in of_shard]


@dataclass(eq=False)
class ShardedState:
    """State on all shards under a name."""

    rows: "DaskEngine"
    name: str
    settings: StepSettings
    rng: np.random.Generator

    @property
    def pool(self) -> WorkerPool:
        """The workers."""
        return self.rows.pool

    @property
    def partitions(self) -> ShardedPartitions:
        """The label costs."""
        return ShardedPartitions(self.rows, self.name)

    def call_blocks(self, function: Callable[..., Any], *args: Any) -> list[list[Any]]:
        """Return function(block, *args) of the blocks of each shard."""
        return self.pool.call(call_blocks, self.name, function, *args)
