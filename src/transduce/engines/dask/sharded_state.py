"""State of a restart on all shards: calls to them, the partitions that label steps see, and the weight step.

A weight step is dual sweeps until the gap is met, or L-BFGS on exact sums of the gradient.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from distributed import Future

from transduce.arrays import Array
from transduce.engines.base import StepSettings, WeightSummary
from transduce.engines.dask.restart_state import RestartState, SweepStats
from transduce.engines.dask.shards import Function, Shard, add_up, call_blocks, call_partitions, call_restart
from transduce.engines.dask.weight_deltas import WeightDelta, as_delta, sum_deltas
from transduce.engines.dask.worker_pool import WorkerPool
from transduce.io.atomic_write import WriteError
from transduce.io.checkpoint import CheckpointSlot, Stage
from transduce.label_step.partitions import Answer, Arguments, Partition
from transduce.problem import TrainingProblem
from transduce.weight_step import LBFGS, WeightStep
from transduce.weight_step.lbfgs import minimize_regularized
from transduce.weight_step.sweep_schedule import CheckRule, Sweeps, run_sweeps, sweep_until_converged

if TYPE_CHECKING:
    from transduce.engines.dask.engine import DaskEngine

MAX_IN_TURN = 2
"""Shards that sweep in turn; more of them sweep at once, which needs more reductions but no waiting."""
MOSTLY_UNKNOWN = 0.5
"""Fraction of rows with an unknown gap above which shards sweep at once: most rows are to be visited."""
FAN_IN = 8
"""Deltas that one task of a tree reduction adds up."""


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

    def accept_weights(self) -> None:
        """Accept W, on the first shard."""
        self.pool.call_first(call_restart, self.name, RestartState.accept_weights)

    def save_stage(
        self, slot: CheckpointSlot, arrays: dict[str, Array], metadata: dict[str, Any], done: bool = False
    ) -> None:
        """Let every shard write its state, then write the slot, which names their files; remove older files."""
        assert slot.path is not None
        folder, stem, token = slot.path.parent, slot.path.stem, secrets.token_hex(6)
        names = [f"{stem} {token} shard {g}.stage" for g in range(self.pool.n_shards)]
        errors = self.pool.call(Shard.save, self.name, done, per_shard=[(str(folder / name),) for name in names])
        if any(errors):
            slot.disk.fail(folder, WriteError(folder, OSError(*next(filter(None, errors)))))
            return
        slot.save(arrays, metadata | {"shards": names})
        for old in folder.glob(f"{stem} * shard *.stage"):
            if old.name not in names:
                old.unlink(missing_ok=True)
        self.pool.n_checkpoints += 1

    def load_stage(self, slot: CheckpointSlot, soft: bool) -> Stage | None:
        """Restore the state of all shards but for W; None where there is none, or the file of a shard is damaged."""
        saved = slot.load()
        if saved is None or slot.path is None or len(saved.metadata["shards"]) != self.pool.n_shards:
            return None
        paths = [(str(slot.path.with_name(name)),) for name in saved.metadata["shards"]]
        return saved if all(self.pool.call(Shard.load, self.name, soft, per_shard=paths)) else None


@dataclass(eq=False)
class ShardedWeights(ShardedState):
    """Weights on all shards, and weight steps from there.

    Two shards sweep in turn, as if their rows were in one place, unless row weights have grown and most rows are to be
    visited. Then, or where there are more shards, they sweep at once, each with W changing `sigma` times as much, so
    that deltas can safely be added.
    """

    settings: StepSettings
    rng: np.random.Generator
    weights_grew: bool = True

    def retarget(self, weight: float) -> bool:
        """Hand labels and row weights to the shards; returns whether a label has changed, which changes W too."""
        n_new, n_unknown, n_live = add_up(self.call(RestartState.retarget, weight))
        self.weights_grew = n_unknown > MOSTLY_UNKNOWN * n_live
        return bool(n_new)

    def fit_labeled(self, problem: TrainingProblem, step: WeightStep, targets: Array, tol: float) -> WeightSummary:
        """Learn weights from the labelled rows in the driver; shards get these and the dual of their own rows."""
        assert self.rows.labeled is not None
        state = step.start(problem, targets)
        step.retarget(problem, state, targets, problem.kappa(0.0))
        report = step.solve(problem, state, tol, self.rng)
        ends = np.cumsum((0, *self.rows.labeled.sizes))
        self.call(RestartState.adopt_dual, per_shard=[(state.dual[a:b], state.gaps[a:b]) for a, b in pairwise(ends)])
        self.set_weights(state.W)
        self.call(RestartState.compute_scores)
        return WeightSummary(report.objective, report.gap, report.n_sweeps, report.converged)

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
        """Sweep in turn or at once; only one sweep when row weights have grown, for J then gives the gaps of all."""
        seed, pool = int(self.rng.integers(2**63)), self.pool
        if not self.weights_grew and pool.n_shards <= MAX_IN_TURN:
            by_shard = pool.call_and_reduce(
                self.name, RestartState.turn, seed, max_turns=max_sweeps, is_done=partial(_is_done, rule)
            )
            turns = [_over_shards(turn) for turn in zip(*by_shard, strict=True)]
            return len(turns), sum(fraction for fraction, _ in turns), turns[-1][1]

        def sweep(count: int) -> tuple[float, float]:
            arguments = (seed, count, float(pool.n_shards))
            return _over_shards(pool.call_and_reduce(self.name, RestartState.sweep, *arguments))

        max_sweeps = 1 if self.weights_grew else max_sweeps
        self.weights_grew = False
        return run_sweeps(sweep, rule, max_sweeps)

    def _measure(self, tol: float, has_scores: bool, n_sweeps: float) -> WeightSummary:
        losses, gaps, squares = zip(*self.call(RestartState.measure, has_scores), strict=True)
        objective, gap = 0.5 * self.rows.spec.settings.alpha * squares[0] + sum(losses), sum(gaps)
        return WeightSummary(objective, gap, n_sweeps, gap <= tol * objective)

    def _minimize(self, step: LBFGS, tol: float) -> WeightSummary:
        def loss_and_gradient(W: Array) -> tuple[float, Array]:
            self.set_weights(W)
            losses = self.call(RestartState.loss_and_gradient)
            _, gradient = tree_sum(self.pool, call_restart, self.name, RestartState.take_delta)
            return float(sum(losses)), np.asarray(gradient.values)

        settings, W = self.rows.spec.settings, self.get_weights(accepted=False)
        low = minimize_regularized(loss_and_gradient, W, settings.alpha, tol, step.max_iter)
        self.set_weights(low.W.astype(W.dtype))
        self.call(RestartState.compute_scores)
        return WeightSummary(low.value, low.gradient, low.n_evaluations, low.converged)


def _over_shards(stats: Sequence[SweepStats]) -> tuple[float, float]:
    """Return the fraction of all rows that were visited, and the sum of gaps."""
    n_visited, gap, n_live = add_up(stats)
    return n_visited / max(n_live, 1), gap


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


def send_weights(pool: WorkerPool, W: Array) -> Future:
    """Send weights to one worker, from which the others fetch them."""
    return pool.send([(as_delta(W), pool.shards[0][0])])[0]
