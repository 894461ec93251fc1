"""One weight step over all shards: sweeps of their duals until the gap is met, or exact sums for L-BFGS."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from transduce.engines.base import WeightSummary
from transduce.engines.dask import shard_labels, shard_weights
from transduce.engines.dask.shard_weights import Swept
from transduce.engines.dask.weight_deltas import Change, Piece, total
from transduce.engines.dask.worker_pool import WorkerPool
from transduce.losses import Loss, smoothed
from transduce.weight_step import LBFGS, weight_step_for
from transduce.weight_step.lbfgs import minimize_regularized
from transduce.weight_step.sweep_schedule import CheckRule, SweepSummary, run_sweeps, sweep_until_converged

Array = NDArray[Any]

FAN_IN = 8
"""Changes that one task adds up."""
IN_TURN = 2
"""Shards that take turns; more of them sweep at once, which needs more sums but no waiting."""
GROWN = 0.5
"""Share of the rows above which, if these have new weights, nobody waits for a turn: most are to be visited."""


class Weighed(Protocol):
    """What a weight step must know of the rows."""

    @property
    def pool(self) -> WorkerPool:
        """Who has them."""
        ...

    @property
    def loss(self) -> Loss:
        """The loss."""
        ...

    @property
    def alpha(self) -> float:
        """λ."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Their type."""
        ...

    def spread(self, restart: str, W: Array) -> None:
        """Give all shards these weights."""
        ...

    def fetch(self, restart: str, kept: bool) -> Array:
        """Weights of a way."""
        ...


@dataclass(eq=False)
class Climb:
    """One weight step over all shards, from the weights they have.

    Two shards take turns, as if their rows were in one place, but when row weights have grown and most rows are to be
    visited. Then, or where there are more shards, they visit their rows at once, each bending W by `sigma` times what
    it knows of, so that changes can safely be added.
    """

    rows: Weighed
    restart: str
    rng: np.random.Generator
    weights_grew: bool = True

    @property
    def _pool(self) -> WorkerPool:
        return self.rows.pool

    @property
    def _sigma(self) -> float:
        """How much more a shard bends W than it knows of, where all visit their rows at once."""
        return float(len(self._pool.keys))

    def retarget(self, weight: float) -> bool:
        """Hand labels and row weights to the states; says whether a label, and so W, has changed.

        What that changes in W is added up with the first sweep.
        """
        changed, n_unknown, n_live = zip(*self._pool.each(shard_weights.retarget, self.restart, weight), strict=True)
        self.weights_grew = sum(n_unknown) > GROWN * sum(n_live)
        return any(changed)

    def soften(self, weight: float, fresh: bool) -> int:
        """Hand distributions to the states: W is what all rows put into it."""
        arguments = (shard_labels.soften, self.restart, weight, fresh)
        if isinstance(weight_step_for(smoothed(self.rows.loss), 0), LBFGS):
            return int(sum(self._pool.each(*arguments)))
        return int(sum(self._pool.each_and_add(self.restart, True, *arguments)))

    def solve(self, step: Any, tol: float, most: float, fresh: bool, last: float = np.inf) -> WeightSummary:
        """Sweep until the gap is at most tol · J; or minimise, where the loss has no dual.

        J is at most `most`, that of weights 0, and was `last` in the step before; `fresh` says that scores are known.
        """
        expected = min(last, most)
        if isinstance(step, LBFGS):
            return self._minimise(step, tol)
        if fresh:
            known = self._report(0.0, tol, fresh=True)
            if known.converged:
                return known
            expected = min(known.objective, most)

        return sweep_until_converged(
            step.max_sweeps, tol, expected, self._go, lambda n: self._report(n, tol, fresh=False)
        )

    def _go(self, rule: CheckRule, most: int) -> SweepSummary:
        """Sweeps in turn, or at once. When row weights have grown it is one sweep: then J gives gaps of all rows."""
        seed = int(self.rng.integers(2**63))
        if not self.weights_grew and len(self._pool.keys) <= IN_TURN:
            is_over = partial(_is_over, rule)
            swept = self._pool.each_in_turn(self.restart, most, is_over, shard_weights.turn, self.restart, seed)
            turns = [_of_all(turn) for turn in zip(*swept, strict=True)]
            return SweepSummary(len(turns), sum(share for share, _ in turns), turns[-1][1])

        def sweep(count: int) -> tuple[float, float]:
            how = (self.restart, seed, count, self._sigma)
            return _of_all(self._pool.each_and_add(self.restart, False, shard_weights.sweep, *how))

        most = 1 if self.weights_grew else most
        self.weights_grew = False
        return run_sweeps(sweep, rule, most)

    def _report(self, n_sweeps: float, tol: float, fresh: bool) -> WeightSummary:
        losses, gaps, squares = zip(*self._pool.each(shard_weights.measure, self.restart, fresh), strict=True)
        objective, gap = 0.5 * self.rows.alpha * squares[0] + sum(losses), sum(gaps)
        return WeightSummary(objective, gap, n_sweeps, gap <= tol * objective)

    def _minimise(self, step: LBFGS, tol: float) -> WeightSummary:

        def value_and_gradient(W: Array) -> tuple[float, Array]:
            self.rows.spread(self.restart, W)
            losses = self._pool.each(shard_weights.loss_and_slope, self.restart)
            _, slope = fetched_sum(self._pool, shard_weights.take_change, self.restart)
            return float(sum(losses)), np.asarray(slope.values)

        W = self.rows.fetch(self.restart, kept=False)
        low = minimize_regularized(value_and_gradient, W, self.rows.alpha, tol, step.max_iter)
        self.rows.spread(self.restart, low.W.astype(self.rows.dtype))
        self._pool.each(shard_weights.show, self.restart)
        return WeightSummary(low.value, low.gradient, low.n_evaluations, low.converged)


def _of_all(swept: Sequence[Swept]) -> tuple[float, float]:
    """The share of all rows that the shards have visited, and what gaps add up to."""
    n_visited, n_live = sum(one.n_visited for one in swept), sum(one.n_live for one in swept)
    return n_visited / max(n_live, 1), sum(one.seen for one in swept)


def _is_over(rule: CheckRule, count: int, swept: Sequence[Swept]) -> bool:
    return rule.is_due(count, *_of_all(swept))


def fetched_sum(pool: WorkerPool, function: Callable[..., Change], *args: Any) -> tuple[Future, Change]:
    """The sum of what a function says of all shards, there and here; added up on the workers, a few at a time."""
    parts = [pool.task(g, function, *args) for g in range(len(pool.keys))]
    while len(parts) > 1:
        groups = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
        parts = [pool.submit(combine, *group, home=pool.homes[g * FAN_IN]) for g, group in enumerate(groups)]
    return parts[0], pool.answers(parts)[0]


def combine(*changes: Change) -> Change:
    """The sum of changes of all of W."""
    return total([Piece(0, len(change.values), change) for change in changes]).change
