"""State of a restart on all shards: calls to them, the partitions that label steps see, and the weight step.

A weight step is dual sweeps until the gap is met, or L-BFGS on exact sums of the gradient.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from distributed import Future

from transduce.arrays import Array
from transduce.engines.base import StepSettings, WeightSummary
from transduce.engines.dask.restart_state import RestartState
from transduce.engines.dask.shards import Function, add_up, call_blocks, call_partitions, call_restart
from transduce.engines.dask.worker_pool import WorkerPool
from transduce.label_step.partitions import Answer, Arguments, Partition
from transduce.weight_step import LBFGS
from transduce.weight_step.lbfgs import minimize_regularized
from transduce.weight_step.sweep_schedule import CheckRule, Sweeps, run_sweeps, sweep_until_converged

if TYPE_CHECKING:
    from transduce.engines.dask.engine import DaskEngine

MOSTLY_UNKNOWN = 0.5
"""Fraction of rows with an unknown gap above which J, which gives the gaps of all, is computed after one sweep."""
FAN_IN = 4
"""Arrays that one task of a sum over shards adds up."""


@dataclass(eq=False)
class ShardedState:
    """State on all shards under a name. To label steps it is the partitions of a label problem, one for each block."""

    rows: "DaskEngine"
    name: str

    @property
    def pool(self) -> WorkerPool:
        return self.rows.pool

    def call(self, function: Function, *args: Any, **options: Any) -> list[Any]:
        """Return function(restart, *args) of all shards; options are those of the pool."""
        return self.pool.call(call_restart, self.name, function, *args, **options)

    def call_blocks(self, function: Function, *args: Any) -> list[list[Any]]:
        """Return function(block, *args) of the blocks of each shard."""
        return self.pool.call(call_blocks, self.name, function, *args)

    def sum_blocks(self, function: Function, *args: Any) -> list[Any]:
        """Add up tuples function(block, *args): first over the blocks of each shard, then over shards."""
        return add_up(map(add_up, self.call_blocks(function, *args)))

    def each(self, function: Callable[[Partition, *Arguments], Answer], *args: *Arguments) -> list[Answer]:
        """Return function(partition, *args) of all partitions."""
        return self._call_partitions(function, [args] * len(self.rows.source.X))

    def each_with(self, function: Callable[[Partition, Any], Answer], own: Sequence[Any]) -> list[Answer]:
        """Return function(partition, own[p]) of all partitions p."""
        return self._call_partitions(function, [(one,) for one in own])

    def _call_partitions(self, function: Function, args: Sequence[Any]) -> list[Any]:
        ends = np.cumsum([0, *map(len, self.rows.source.shards)])
        own = [(args[a:b],) for a, b in pairwise(ends)]
        answers = self.pool.call(call_partitions, self.name, function, per_shard=own)
        return [answer for of_shard in answers for answer in of_shard]

    def set_weights(self, W: Array) -> None:
        self.run_with_weights(RestartState.set_weights, W)

    def run_with_weights(self, function: Function, W: Array) -> None:
        """Run function(restart, W) on all shards; W is sent to one worker, from which the others fetch it."""
        self.pool.run_all(call_restart, self.name, function, send_weights(self.pool, W))

    def get_weights(self, accepted: bool) -> Array:
        future = self.pool.start(0, call_restart, self.name, RestartState.get_weights, accepted)
        return np.asarray(self.pool.results([future])[0])


@dataclass(eq=False)
class ShardedWeights(ShardedState):
    """Weights on all shards, and weight steps from there.

    Shards sweep at the same time, each with W changing as many times as much as there are shards, so that changes
    can safely be added.
    """

    settings: StepSettings
    rng: np.random.Generator
    weights_grew: bool = True

    def retarget(self, weight: float) -> bool:
        """Hand labels and row weights to the shards; returns whether a label has changed, which changes W too."""
        n_new, n_unknown, n_live = add_up(self.call(RestartState.retarget, weight))
        self.weights_grew = n_unknown > MOSTLY_UNKNOWN * n_live
        return bool(n_new)

    def solve(self, step: Any, tol: float, weight: float, has_scores: bool, last: float = np.inf) -> WeightSummary:
        """Sweep until the gap is at most tol · J, or minimise, where the loss has no dual.

        J was `last` in the step before; `has_scores` says that scores at W are known. All rows without a full label
        weigh `weight` together.
        """
        if isinstance(step, LBFGS):
            return self._minimize(step, tol)
        bound = self.rows.total_weight(weight)  # J at W = 0
        if has_scores:
            known = self._measure(tol, has_scores, 0.0)
            if known.converged:
                return known
            last = known.objective
        return sweep_until_converged(
            step.max_sweeps, tol, min(last, bound), self._sweep, partial(self._measure, tol, False)
        )

    def _sweep(self, rule: CheckRule, max_sweeps: int) -> Sweeps:
        """Sweep until J is due; only once when row weights have grown, for J then gives the gaps of all."""
        seed, pool, shards = int(self.rng.integers(2**63)), self.pool, range(self.pool.n_shards)

        def sweep(count: int) -> tuple[float, float]:
            total = tree_sum(pool, call_restart, self.name, RestartState.sweep, seed, count, float(pool.n_shards))
            received = [pool.start(s, call_restart, self.name, RestartState.receive, total) for s in shards]
            n_visited, gap, n_live = pool.results(received)[0]
            return n_visited / max(n_live, 1), gap

        max_sweeps = 1 if self.weights_grew else max_sweeps
        self.weights_grew = False
        return run_sweeps(sweep, rule, max_sweeps)

    def _measure(self, tol: float, has_scores: bool, n_sweeps: float) -> WeightSummary:
        losses, gaps, squares = zip(*self.call(RestartState.measure, has_scores), strict=True)
        objective, gap = 0.5 * self.rows.spec.settings.alpha * squares[0] + sum(losses), sum(gaps)
        return WeightSummary(objective, gap, n_sweeps, gap <= tol * objective)

    def _minimize(self, step: LBFGS, tol: float) -> WeightSummary:
        def loss_and_gradient(W: Array) -> tuple[float, Array]:
            sent = send_weights(self.pool, W)
            total = tree_sum(self.pool, call_restart, self.name, RestartState.loss_and_gradient, sent)
            ((loss,), gradient) = self.pool.results([total])[0]
            return float(loss), np.asarray(gradient)

        settings, W = self.rows.spec.settings, self.get_weights(accepted=False)
        low = minimize_regularized(loss_and_gradient, W, settings.alpha, tol, step.max_iter)
        self.set_weights(low.W.astype(W.dtype))
        self.call(RestartState.compute_scores)
        return WeightSummary(low.value, low.gradient, low.n_evaluations, low.converged)


def tree_sum(pool: WorkerPool, function: Function, *args: Any) -> Future:
    """Add up function(shard, *args) of all shards, which is (numbers, array), on the workers; returns a future.

    First come the shards of each group, then a few groups at a time. So the sum is bit for bit the same wherever groups
    are placed.
    """
    tasks = iter([pool.start(shard, function, *args) for shard in range(pool.n_shards)])
    parts = [(_add(pool, [next(tasks) for _ in group.keys], group.address), group.address) for group in pool.groups]
    while len(parts) > 1:
        some = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
        parts = [(_add(pool, [future for future, _ in one], one[0][1]), one[0][1]) for one in some]
    return parts[0][0]


def _add(pool: WorkerPool, parts: list[Future], address: str) -> Future:
    return parts[0] if len(parts) == 1 else pool.submit(sum_parts, *parts, address=address)


def sum_parts(*parts: tuple[Sequence[Any], Array]) -> tuple[Sequence[Any], Array]:
    """Add up numbers, and arrays of one shape, of two parts or more."""
    numbers, arrays = zip(*parts, strict=True)
    total = arrays[0] + arrays[1]
    for array in arrays[2:]:
        total += array
    return add_up(numbers), total


def send_weights(pool: WorkerPool, W: Array) -> Future:
    """Send weights to one worker, from which the others fetch them."""
    return pool.send([(W, pool.shards[0][0])])[0]
