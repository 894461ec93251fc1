"""The weight step over all shards: dual sweeps until the gap is met, or L-BFGS on exact sums of the gradient."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from transduce.engines.base import WeightSummary
from transduce.engines.dask import shard_labels, shard_weights
from transduce.engines.dask.shard_weights import SweepStats
from transduce.engines.dask.shards import call_blocks
from transduce.engines.dask.weight_deltas import WeightDelta, sum_deltas
from transduce.engines.dask.worker_pool import WorkerPool
from transduce.losses import smoothed
from transduce.weight_step import LBFGS, weight_step_for
from transduce.weight_step.lbfgs import minimize_regularized
from transduce.weight_step.sweep_schedule import CheckRule, Sweeps, run_sweeps, sweep_until_converged

if TYPE_CHECKING:
    from transduce.engines.dask.engine import DaskEngine

Array = NDArray[Any]

MAX_IN_TURN = 2
"""Shards that sweep in turn; more of them sweep at once, which needs more reductions but no waiting."""
MOSTLY_UNKNOWN = 0.5
"""Fraction of rows with an unknown gap above which shards sweep at once: most rows are to be visited."""
FAN_IN = 8
"""Deltas that one task of a tree reduction adds up."""


@dataclass(eq=False)
class ShardedWeightStep:
    """One weight step over all shards, from the weights that they have.

    Two shards sweep in turn, as if their rows were in one place, unless row weights have grown and most rows are to be
    visited. Then, or where there are more shards, they sweep at once, each with W changing `sigma` times as much, so
    that deltas can safely be added.
    """

    rows: "DaskEngine"
    restart: str
    rng: np.random.Generator
    weights_grew: bool = True

    def retarget(self, weight: float) -> bool:
        """Hand labels and row weights to the shards; returns whether a label has changed, which changes W too."""
        found = self.rows.pool.call(call_blocks, self.restart, shard_weights.retarget, weight)
        n_changed, n_unknown, n_live = sums_over_blocks(found)
        self.weights_grew = n_unknown > MOSTLY_UNKNOWN * n_live
        return bool(n_changed)

    def retarget_soft(self, weight: float, first: bool) -> int:
        """Hand distributions to the shards, and set W to what follows from them; returns rows with a new label."""
        pool, arguments = self.rows.pool, (shard_labels.retarget_soft, self.restart, weight, first)
        if isinstance(weight_step_for(smoothed(self.rows.spec.settings.loss), 0), LBFGS):
            return int(sum(pool.call(*arguments)))
        return int(sum(pool.call_and_reduce(self.restart, *arguments, replace=True)))

    def solve(self, step: Any, tol: float, bound: float, has_scores: bool, last: float = np.inf) -> WeightSummary:
        """Sweep until the gap is at most tol · J, or minimise, where the loss has no dual.

        J is at most `bound`, and was `last` in the step before; `has_scores` says that scores at W are known.
        """
        expected = min(last, bound)
        if isinstance(step, LBFGS):
            return self._minimize(step, tol)
        if has_scores:
            known = self._report(0.0, tol, has_scores=True)
            if known.converged:
                return known
            expected = min(known.objective, bound)
        return sweep_until_converged(
            step.max_sweeps, tol, expected, self._sweep, lambda n: self._report(n, tol, has_scores=False)
        )

    def _sweep(self, rule: CheckRule, max_sweeps: int) -> Sweeps:
        """Sweep in turn or at once; only one sweep when row weights have grown, for J then gives the gaps of all."""
        seed, pool = int(self.rng.integers(2**63)), self.rows.pool
        if not self.weights_grew and pool.n_shards <= MAX_IN_TURN:
            is_done = partial(_is_done, rule)
            by_shard = pool.call_in_turn(self.restart, max_sweeps, is_done, shard_weights.turn, self.restart, seed)
            turns = [_over_shards(turn) for turn in zip(*by_shard, strict=True)]
            return len(turns), sum(fraction for fraction, _ in turns), turns[-1][1]

        def sweep(count: int) -> tuple[float, float]:
            arguments = (self.restart, seed, count, float(pool.n_shards))
            return _over_shards(pool.call_and_reduce(self.restart, shard_weights.sweep, *arguments))

        max_sweeps = 1 if self.weights_grew else max_sweeps
        self.weights_grew = False
        return run_sweeps(sweep, rule, max_sweeps)

    def _report(self, n_sweeps: float, tol: float, has_scores: bool) -> WeightSummary:
        found = self.rows.pool.call(shard_weights.measure, self.restart, has_scores)
        losses, gaps, squares = zip(*found, strict=True)
        objective, gap = 0.5 * self.rows.spec.settings.alpha * squares[0] + sum(losses), sum(gaps)
        return WeightSummary(objective, gap, n_sweeps, gap <= tol * objective)

    def _minimize(self, step: LBFGS, tol: float) -> WeightSummary:
        rows, restart = self.rows, self.restart

        def loss_and_gradient(W: Array) -> tuple[float, Array]:
            rows.set_weights(restart, W)
            losses = rows.pool.call(shard_weights.loss_and_gradient, restart)
            _, gradient = tree_sum(rows.pool, shard_weights.take_delta, restart)
            return float(sum(losses)), np.asarray(gradient.values)

        W = rows.get_weights(restart, accepted=False)
        low = minimize_regularized(loss_and_gradient, W, rows.spec.settings.alpha, tol, step.max_iter)
        rows.set_weights(restart, low.W.astype(rows.spec.dtype))
        rows.pool.call(shard_weights.compute_scores, restart)
        return WeightSummary(low.value, low.gradient, low.n_evaluations, low.converged)


def sums_over_blocks(found: Sequence[Sequence[Any]]) -> list[Any]:
    """Add up tuples of numbers: first over the blocks of each shard, then over shards."""
    by_shard = [[sum(numbers) for numbers in zip(*blocks, strict=True)] for blocks in found]
    return [sum(numbers) for numbers in zip(*by_shard, strict=True)]


def _over_shards(stats: Sequence[SweepStats]) -> tuple[float, float]:
    """Return the fraction of all rows that were visited, and the sum of gaps."""
    n_visited, n_live = sum(one.n_visited for one in stats), sum(one.n_live for one in stats)
    return n_visited / max(n_live, 1), sum(one.gap for one in stats)


def _is_done(rule: CheckRule, count: int, stats: Sequence[SweepStats]) -> bool:
    return rule.is_due(count, *_over_shards(stats))


def tree_sum(pool: WorkerPool, function: Callable[..., WeightDelta], *args: Any) -> tuple[Future, WeightDelta]:
    """Add up dense deltas of all shards on the workers, a few at a time; returns the sum as a future and as it is."""
    parts = [pool.start(shard, function, *args) for shard in range(pool.n_shards)]
    while len(parts) > 1:
        groups = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
        addresses = [pool.shards[g * FAN_IN][0] for g in range(len(groups))]
        parts = [pool.submit(_sum, *group, address=address) for group, address in zip(groups, addresses, strict=True)]
    return parts[0], pool.results(parts)[0]


def _sum(*deltas: WeightDelta) -> WeightDelta:
    return sum_deltas(deltas, len(deltas[0].values))
