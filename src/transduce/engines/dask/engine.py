"""The engine over Dask: each step of a solver is one or a few round trips to all shards.

Every shard has the weights W. Their changes are summed on the workers, so the driver sees W itself only when a stage is
saved or a restart ends. Otherwise prices, class counts and sums travel.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from transduce.arrays import Array
from transduce.class_prior.bounds import Bounds
from transduce.design import undo_order
from transduce.engines.base import Engine, FittedLabels, StepSettings
from transduce.engines.dask.block_rows import ProblemSpec
from transduce.engines.dask.block_state import BlockState
from transduce.engines.dask.blocks import BlockSource
from transduce.engines.dask.restart import DaskRestart
from transduce.engines.dask.restart_state import RestartState
from transduce.engines.dask.sharded_state import ShardedState, send_weights
from transduce.engines.dask.shards import Shard, add_up, call_restart
from transduce.engines.dask.worker_pool import WorkerPool
from transduce.history import FitResult
from transduce.io.atomic_write import WriteError
from transduce.io.checkpoint import Checkpoint
from transduce.io.fingerprint import fingerprint
from transduce.io.strict_json import loads
from transduce.label_step.entropic import Entropic
from transduce.problem import TrainingProblem

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
        return self.spec.taxonomy.n_classes

    @property
    def forbids(self) -> bool:
        return self.spec.has_forbidden

    @property
    def n_threads(self) -> int:
        """Threads of each shard."""
        return self.spec.settings.n_jobs or 1

    def new_restart(self, settings: StepSettings, rng: np.random.Generator) -> DaskRestart:
        return DaskRestart(self, str(next(self.names)), settings, rng)

    def split_threads(self, n_restarts: int) -> tuple[int, Engine]:
        """Run restarts one at a time: each uses all workers."""
        return 1, self

    def in_original_order(self, W: Array) -> Array:
        return W if self.column_order is None else undo_order(W, self.column_order)

    def predicted_counts(self, W: Array) -> Array:
        return np.asarray(self._predictions(W)[0])

    def predicted_proportions(self, W: Array) -> Array:
        return np.asarray(self._predictions(W)[1] / max(self.n_unlabeled, 1))

    def _predictions(self, W: Array) -> list[Array]:
        sent, all_shards = send_weights(self.pool, W), range(self.pool.n_shards)
        return add_up(self.pool.results([self.pool.start(s, Shard.predictions, sent) for s in all_shards]))

    def fitted_labels(self, result: FitResult, bounds: Bounds, classes: Array) -> FittedLabels:
        """Return labels and distributions of all blocks, as lists: arrays where the blocks are local, else futures."""
        state, distributions = ShardedState(self, str(result.labels)), None
        state.run_with_weights(RestartState.compute_scores, result.W)
        counts, predicted = state.sum_blocks(BlockState.class_counts)
        transduction = self._each_block(state.name, RestartState.label_names, classes)
        if hasattr(self.spec.settings.loss, "posterior"):
            state.call_blocks(BlockState.set_posterior_costs)
            Entropic(1.0, tol=1e-3, n_threads=self.n_threads).solve_partitions(state, bounds)
            distributions = self._each_block(state.name, RestartState.distributions)
        return FittedLabels(transduction, counts, predicted, distributions)

    def _each_block(self, restart: str, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return function(restart, position of the block in its shard, *args) of all blocks; futures unless local."""
        tasks = {
            b: self.pool.start(s, call_restart, restart, function, position, *args)
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

    def total_weight(self, weight: float) -> float:
        """Return the weight of all rows, where those without a full label weigh `weight` together."""
        mean = self.spec.mean_weight
        return 1.0 + weight * (float(self.n_unlabeled > 0) if mean is None else mean * self.n_unlabeled)


def stored_groups(checkpoint: object) -> list[list[list[int]]] | None:
    """Return the blocks of each shard in each group that a checkpoint has stored, if any."""
    if not isinstance(checkpoint, (str, os.PathLike)):
        return None
    try:
        groups = loads(Path(checkpoint, GROUPS_FILE).read_bytes())
        return [[[int(b) for b in shard] for shard in group] for group in groups]
    except (OSError, ValueError, TypeError):
        return None
