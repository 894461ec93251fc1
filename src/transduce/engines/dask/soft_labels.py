"""Soft labels over Dask: distributions stay on the workers; prices, column sums and their curvature travel."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transduce.engines.base import SoftRoundSummary
from transduce.engines.common import FIRST_SWEEPS, FIRST_TOL, SOFT_ITERATIONS, SOFT_SWEEPS
from transduce.engines.dask import shard_labels, shard_weights
from transduce.engines.dask.checkpoint import load, save
from transduce.engines.dask.sharded_state import ShardedState
from transduce.engines.dask.weight_step import ShardedWeightStep
from transduce.io.checkpoint import CheckpointSlot
from transduce.label_step import Exact
from transduce.label_step.entropic import solve_partitions_at_entropy
from transduce.losses import smoothed
from transduce.losses.blockwise import as_distributions
from transduce.weight_step import LBFGS, weight_step_for

if TYPE_CHECKING:
    from transduce.engines.dask.restart import DaskRestart

Array = NDArray[Any]


@dataclass(eq=False)
class DaskSoftLabels(ShardedState):
    """Distributions over the labels of a restart, with weights of their own."""

    restart: "DaskRestart"
    prices: Array = field(init=False)
    temperature: float | None = None

    def start(self) -> None:
        """Learn weights from the labelled rows alone; all other rows get the class proportions."""
        rows, labeled, loss = self.rows, self.rows.labeled, smoothed(self.rows.spec.settings.loss)
        self.pool.call(shard_labels.start_soft, self.name, self.settings.bounds, rows.n_unlabeled)
        self.prices, step = np.zeros(rows.n_classes), weight_step_for(loss, FIRST_SWEEPS)
        if labeled is None:
            sharded = ShardedWeightStep(rows, self.name, self.rng)
            sharded.retarget_soft(0.0, first=True)
            sharded.solve(step, FIRST_TOL, rows.total_weight(0.0), False)
        else:
            targets = as_distributions(labeled.labels, rows.n_classes, rows.spec.dtype)
            rows.fit_labeled(self.name, replace(labeled.problem, loss=loss), step, targets, FIRST_TOL, self.rng)

    def round(self, weight: float, entropy: float) -> SoftRoundSummary:
        """Choose distributions of this entropy at the present weights, then improve the weights a little."""
        rows, bounds = self.rows, self.settings.bounds
        self.call_blocks(shard_labels.set_costs, "soft")
        soft = solve_partitions_at_entropy(
            self.partitions, bounds, entropy, self.temperature, self.prices, n_threads=rows.n_threads
        )
        self.prices, self.temperature = soft.prices, soft.temperature
        sharded = ShardedWeightStep(rows, self.name, self.rng)
        n_moved = sharded.retarget_soft(weight, first=False)
        step = weight_step_for(smoothed(rows.spec.settings.loss), SOFT_SWEEPS)
        step = LBFGS(SOFT_ITERATIONS) if isinstance(step, LBFGS) else step
        report = sharded.solve(step, 0.0, rows.total_weight(weight), False)
        return SoftRoundSummary(report.objective, report.gap, n_moved, soft.temperature)

    def harden(self, weight: float) -> None:
        """Give the restart the best hard labels at the present weights, and reset its weights to 0."""
        self.call_blocks(shard_labels.set_hard_costs)
        Exact().solve_partitions(self.partitions, self.settings.bounds)
        self.pool.call(shard_labels.harden, self.restart.name, self.name)
        self.restart.reset_weights()

    def save(self, slot: CheckpointSlot, metadata: dict[str, Any]) -> None:
        """Save the state and these metadata."""
        if slot.path is None or not slot.disk.is_writable:
            return
        arrays = {"now": self.rows.get_weights(self.name, accepted=False), "prices": self.prices}
        own = {"temperature": self.temperature, "rng": self.rng.bit_generator.state}
        save(self.pool, slot, self.name, arrays, metadata | own, False)

    def load(self, slot: CheckpointSlot) -> dict[str, Any] | None:
        """Restore the state; return the metadata, or None if nothing was saved."""
        saved = load(self.pool, slot, self.name, soft=True)
        if saved is None:
            return None
        arrays, metadata = saved
        self.prices = arrays["prices"]
        self.rows.set_weights(self.name, arrays["now"])
        self.temperature, self.rng.bit_generator.state = metadata["temperature"], metadata["rng"]
        self.pool.call(shard_weights.compute_scores, self.name)
        return metadata
