"""State of a restart on all shards: calls to them, the partitions that label steps see, and the weight step.

A weight step is dual sweeps until the gap is met, or L-BFGS on exact sums of the gradient.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from transduce.arrays import Array
from transduce.engines.base import StepSettings, WeightSummary
from transduce.engines.dask.restart_state import RestartState
from transduce.engines.dask.shards import (
    Function,
    add_up,
    call_blocks,
    call_partitions,
    call_restart,
    call_with_weights,
)
from transduce.engines.dask.worker_pool import WorkerPool
from transduce.label_step.partitions import Answer, Arguments, Partition
from transduce.weight_step import LBFGS
from transduce.weight_step.dual import DualLargeMargin
from transduce.weight_step.lbfgs import minimize_regularized

if TYPE_CHECKING:
    from transduce.engines.dask.engine import DaskEngine


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

    def run_with_weights(self, function: Function, W: Array) -> None:
        """Run function(restart, W) on all shards."""
        self.pool.exchange(take=(call_with_weights, self.name, function), value=(None, W))

    def get_weights(self, accepted: bool) -> Array:
        return np.asarray(self.pool.call_first(call_restart, self.name, RestartState.get_weights, accepted))


@dataclass(eq=False)
class ShardedWeights(ShardedState):
    """Weights on all shards, and weight steps from there.

    In each round shards sweep at the same time, each with W changing as many times as much as there are shards, so that
    changes can safely be added. That is a proximal step in all dual variables at once. So rounds have momentum (Beck
    and Teboulle 2009), which begins again where the gap grows.
    """

    settings: StepSettings
    rng: np.random.Generator

    def retarget(self, weight: float) -> bool:
        """Hand labels and row weights to the shards; returns whether a label has changed, which changes W too."""
        (n_new,) = add_up(self.call(RestartState.retarget, weight))
        return bool(n_new)

    def solve(self, step: Any, tol: float, has_scores: bool) -> WeightSummary:
        """Run rounds until the gap is at most tol · J, or minimise, where the loss has no dual.

        `has_scores` says that scores at W are known.
        """
        if isinstance(step, LBFGS):
            return self._minimize(step, tol)
        if has_scores:
            known = self._report(self.call(RestartState.measure, has_scores), tol, 0)
            if known.converged:
                return known
        keeps_simplex = isinstance(step, DualLargeMargin) and not self.rows.spec.taxonomy.is_flat
        momentum, last = 1.0, np.inf
        for count in range(1, step.max_sweeps + 1):
            after = 1.0 if keeps_simplex else 0.5 + np.sqrt(0.25 + momentum**2)
            report = self._report(self._round((momentum - 1.0) / after), tol, count)
            if report.converged:
                break
            momentum, last = (after if report.gap <= last else 1.0), report.gap
        return report

    def _round(self, beta: float) -> list[tuple[float, float, float]]:
        """Sweep over all rows once, with momentum beta; returns the loss and gap of each shard, and ‖W‖²."""
        seed, shard = int(self.rng.integers(2**63)), (call_restart, self.name)
        part = *shard, RestartState.sweep, seed, beta, float(self.pool.n_shards)
        return self.pool.exchange(part, (*shard, RestartState.combine, seed), (*shard, RestartState.receive))

    def _report(self, measured: list[tuple[float, float, float]], tol: float, n_sweeps: int) -> WeightSummary:
        losses, gaps, squares = zip(*measured, strict=True)
        objective, gap = 0.5 * self.rows.spec.settings.alpha * squares[0] + sum(losses), sum(gaps)
        return WeightSummary(objective, gap, n_sweeps, gap <= tol * objective)

    def _minimize(self, step: LBFGS, tol: float) -> WeightSummary:
        def loss_and_gradient(W: Array) -> tuple[float, Array]:
            self.run_with_weights(RestartState.set_weights, W)
            (((loss,), gradient),) = self.pool.exchange((call_restart, self.name, RestartState.loss_and_gradient))
            return float(loss), np.asarray(gradient)

        settings, W = self.rows.spec.settings, self.get_weights(accepted=False)
        low = minimize_regularized(loss_and_gradient, W, settings.alpha, tol, step.max_iter)
        self.run_with_weights(RestartState.set_weights, low.W.astype(W.dtype))
        self.call(RestartState.compute_scores)
        return WeightSummary(low.value, low.gradient, low.n_evaluations, low.converged)
