"""The engine over Dask: each step of a solver is one or a few round trips to all shards.

Every shard has the weights W. Their changes are summed on the workers, so the driver sees W itself only when a stage is
saved or a restart ends. Otherwise prices, class counts and sums travel.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Any, NamedTuple

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from transduce.class_prior.bounds import Bounds
from transduce.design import undo_order
from transduce.engines.base import Engine, FittedLabels, StepSettings, WeightSummary
from transduce.engines.dask import shard_labels, shard_weights
from transduce.engines.dask.blocks import BlockSource
from transduce.engines.dask.restart import DaskRestart
from transduce.engines.dask.sharded_state import ShardedPartitions
from transduce.engines.dask.shards import ProblemSpec, call_blocks
from transduce.engines.dask.weight_deltas import as_delta
from transduce.engines.dask.weight_step import sums_over_blocks
from transduce.engines.dask.worker_pool import WorkerPool
from transduce.history import FitResult
from transduce.io.atomic_write import WriteError
from transduce.io.checkpoint import Checkpoint
from transduce.io.fingerprint import fingerprint
from transduce.label_step.entropic import Entropic
from transduce.problem import TrainingProblem
from transduce.weight_step import WeightStep

Array = NDArray[Any]

GROUPS_FILE = "shards.json"
"""File of a checkpoint with the blocks of each shard in each group."""


class LabeledRows(NamedTuple):
    """The labelled rows of all shards in the driver: a problem of their own, their labels, and the number per shard."""

    problem: TrainingProblem
    labels: Array
    sizes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class DaskEngine:
    """Rows on the workers of a pool.

    content       what the fingerprint of a checkpoint depends on
    labeled       the labelled rows, if they are few enough to be here
    column_order  column of X of every row of W, or None if it is the same
    """

    pool: WorkerPool
    source: BlockSource
    spec: ProblemSpec
    n_unlabeled: int
    content: dict[str, Any]
    labeled: LabeledRows | None = None
    column_order: Array | None = None
    names: Any = field(default_factory=count)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.spec.taxonomy.n_classes

    @property
    def forbids(self) -> bool:
        """Whether some rows must not get some labels."""
        return self.spec.has_forbidden

    def new_restart(self, settings: StepSettings, rng: np.random.Generator) -> DaskRestart:
        """Start a restart."""
        return DaskRestart(self, str(next(self.names)), settings, rng)

    def split_threads(self, n_restarts: int) -> tuple[int, Engine]:
        """Run restarts one at a time: each uses all workers."""
        return 1, self

    def in_original_order(self, W: Array) -> Array:
        """Reorder weights so that they have one row for each column of X."""
        return W if self.column_order is None else undo_order(W, self.column_order)

    def predicted_counts(self, W: Array) -> Array:
        """Count rows without a full label by the class of the best allowed score (K,)."""
        return np.asarray(self._predictions(W)[0])

    def predicted_proportions(self, W: Array) -> Array:
        """Average the posterior of rows without a full label (K,); the best scores if the loss has no posterior."""
        return np.asarray(self._predictions(W)[1] / max(self.n_unlabeled, 1))

    def _predictions(self, W: Array) -> list[Array]:
        sent, all_shards = self.send_weights(W), range(self.pool.n_shards)
        found = self.pool.results([self.pool.start(s, shard_labels.predictions_at, sent) for s in all_shards])
        return sums_over_blocks(found)

    def fitted_labels(self, result: FitResult, bounds: Bounds, classes: Array) -> FittedLabels:
        """Return labels and distributions of all blocks, as lists: arrays where the blocks are local, else futures."""
        name = str(result.labels)
        counts = np.sum(
            [np.sum(own, axis=0) for own in self.pool.call(call_blocks, name, shard_labels.class_counts)], 0
        )
        transduction = self._each_block(shard_labels.label_names, name, classes)
        if not hasattr(self.spec.settings.loss, "posterior"):
            return FittedLabels(transduction, counts, self.predicted_counts(result.W), None)
        self.pool.run_all(shard_weights.compute_scores, name, self.send_weights(result.W))
        self.pool.call(call_blocks, name, shard_labels.set_costs, "posterior")
        soft = Entropic(1.0, tol=1e-3, n_threads=self.n_threads)
        soft.solve_partitions(ShardedPartitions(self, name), bounds)
        distributions = self._each_block(shard_labels.distributions, name)
        predicted = sums_over_blocks(self.pool.call(call_blocks, name, shard_labels.predictions))[0]
        return FittedLabels(transduction, counts, predicted, distributions)

    def _each_block(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        name, *rest = args
        tasks = {
            b: self.pool.start(s, function, name, position, *rest)
            for s, blocks in enumerate(self.source.shards)
            for position, b in enumerate(blocks)
        }
        futures = [tasks[b] for b in sorted(tasks)]
        return self.pool.results(futures, fetch=self.source.is_local) or futures

    def open_checkpoint(self, path: object, parameters: dict[str, Any], seeds: list[int]) -> Checkpoint:
        """Open the checkpoint folder of the fit, which stores the groups of shards too."""
        checkpoint = Checkpoint.open(path, fingerprint(parameters | self.content), seeds)
        try:
            checkpoint.note(GROUPS_FILE, json.dumps(self.source.groups))
        except WriteError as error:
            checkpoint.__exit__(None, None, None)
            raise ValueError(f"checkpoint {path} cannot be written ({error.reason}). Choose another place.") from error
        return checkpoint

    @property
    def n_threads(self) -> int:
        """Threads of each shard."""
        return self.spec.settings.n_jobs or 1

    def send_weights(self, W: Array) -> Future:
        """Send weights to one worker, from which the others fetch them."""
        return self.pool.send([(as_delta(W), self.pool.shards[0][0])])[0]

    def set_weights(self, name: str, W: Array) -> None:
        """Replace W on all shards."""
        self.pool.run_all(shard_weights.set_weights, name, self.send_weights(W))

    def get_weights(self, name: str, accepted: bool) -> Array:
        """Fetch W, or the accepted weights."""
        return np.asarray(self.pool.results([self.pool.start(0, shard_weights.get_weights, name, accepted)])[0])

    def total_weight(self, weight: float) -> float:
        """Return the weight of all rows, where those without a full label weigh `weight` together."""
        mean = self.spec.mean_weight
        return 1.0 + weight * (float(self.n_unlabeled > 0) if mean is None else mean * self.n_unlabeled)

    def fit_labeled(
        self, name: str, problem: TrainingProblem, step: WeightStep, targets: Array, tol: float, rng: Any
    ) -> WeightSummary:
        """Learn weights from the labelled rows in the driver; shards get these and the dual of their own rows."""
        assert self.labeled is not None
        state = step.start(problem, targets)
        step.retarget(problem, state, targets, problem.kappa(0.0))
        report = step.solve(problem, state, tol, rng)
        ends = np.cumsum((0, *self.labeled.sizes))
        duals = [(state.dual[a:b], state.gaps[a:b]) for a, b in pairwise(ends)]
        self.pool.call(shard_weights.adopt_dual, name, per_shard=duals)
        self.set_weights(name, state.W)
        self.pool.call(shard_weights.compute_scores, name)
        return WeightSummary(report.objective, report.gap, report.n_sweeps, report.converged)
